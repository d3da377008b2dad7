// SPDX-License-Identifier: Apache-2.0
#include "model/json_fields.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <optional>
#include <utility>

#include "model/canonical_json.h"
#include "model/json_parser.h"
#include "model/schema_frame.h"

namespace once {
namespace {

namespace ondemand = simdjson::ondemand;

// The buffers stay from one message to the next.
JsonParser& thread_parser() {
  thread_local JsonParser own;
  return own;
}

tl::unexpected<Error> no_id(std::string text) {
  return fail(Remedy::park, "no_id", std::move(text));
}

tl::unexpected<Error> no_id(std::string_view pointer, simdjson::error_code error) {
  if (error == simdjson::NO_SUCH_FIELD)
    return no_id(fmt::format("the body has no value at {}", pointer));
  return no_id(
      fmt::format("the body has no usable value at {} ({})", pointer, json_error_text(error)));
}

// A string, number or boolean; unset in place of anything else.
simdjson::error_code append_scalar(std::optional<std::string>& out, ondemand::value& value) {
  ondemand::json_type type;
  if (const auto error = value.type().get(type)) return error;
  if (type == ondemand::json_type::string) {
    std::string_view text;
    if (const auto error = value.get_string().get(text)) return error;
    out = text;
    return simdjson::SUCCESS;
  }
  if (type != ondemand::json_type::number && type != ondemand::json_type::boolean)
    return simdjson::SUCCESS;
  return append_canonical(out.emplace(), value, NumberSpelling::plain);
}

}  // namespace

bool is_json_pointer(std::string_view pointer) {
  if (pointer.empty() || pointer[0] != '/') return false;
  for (std::size_t i = 0; i < pointer.size(); ++i) {
    if (pointer[i] != '~') continue;
    if (i + 1 == pointer.size() || (pointer[i + 1] != '0' && pointer[i + 1] != '1')) return false;
  }
  return true;
}

Result<JsonFields> JsonFields::parse(std::string_view body) {
  if (body.data() == nullptr) return no_id("the message has no body");
  if (is_framed_binary(body)) return no_id(std::string(framed_binary_text));
  if (body.empty()) return no_id("the body is empty");
  const simdjson::error_code error = thread_parser().parse(without_schema_frame(body));
  if (error == simdjson::MEMALLOC)
    return fail(Remedy::retry, "exhausted", "there is no memory to parse a JSON body");
  if (error) return no_id(fmt::format("the body is not JSON ({})", json_error_text(error)));
  return JsonFields();
}

Result<std::string> JsonFields::scalar(std::string_view pointer) const {
  std::optional<std::string> text;
  const auto error = use_value_at(thread_parser().document, pointer, [&](ondemand::value& value) {
    return append_scalar(text, value);
  });
  if (error) return no_id(pointer, error);
  if (!text) return no_id(fmt::format("the body has no string, number or boolean at {}", pointer));
  if (text->empty()) return no_id(fmt::format("the body has an empty string at {}", pointer));
  return std::move(*text);
}

Result<std::string> JsonFields::canonical(std::string_view pointer, NumberSpelling numbers) const {
  std::string text;
  const auto error = use_value_at(thread_parser().document, pointer, [&](ondemand::value& value) {
    return append_canonical(text, value, numbers);
  });
  if (error) return no_id(pointer, error);
  return text;
}

}  // namespace once
