// SPDX-License-Identifier: Apache-2.0
#include "model/json_fields.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <utility>

#include "model/canonical_json.h"
#include "model/json_parser.h"

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
  return no_id(fmt::format("the body has no usable value at {} ({})", pointer,
                           simdjson::error_message(error)));
}

Result<ondemand::value> find(std::string_view pointer) {
  ondemand::value found;
  if (const auto error = thread_parser().document.at_pointer(pointer).get(found))
    return no_id(pointer, error);
  return found;
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
  if (body.empty()) return no_id("the body is empty");
  const simdjson::error_code error = thread_parser().parse(body);
  if (error == simdjson::MEMALLOC)
    return fail(Remedy::retry, "exhausted", "there is no memory to parse a JSON body");
  if (error) return no_id(fmt::format("the body is not JSON ({})", simdjson::error_message(error)));
  return JsonFields();
}

Result<std::string> JsonFields::scalar(std::string_view pointer) const {
  ondemand::value value = ONCE_TRY(find(pointer));
  ondemand::json_type type;
  if (const auto error = value.type().get(type)) return no_id(pointer, error);
  if (type == ondemand::json_type::string) {
    std::string_view text;
    if (const auto error = value.get_string().get(text)) return no_id(pointer, error);
    if (text.empty()) return no_id(fmt::format("the body has an empty string at {}", pointer));
    return std::string(text);
  }
  if (type != ondemand::json_type::number && type != ondemand::json_type::boolean)
    return no_id(fmt::format("the body has no string, number or boolean at {}", pointer));
  std::string text;
  if (const auto error = append_canonical(text, value, NumberSpelling::binary))
    return no_id(pointer, error);
  return text;
}

Result<std::string> JsonFields::canonical(std::string_view pointer, NumberSpelling numbers) const {
  const ondemand::value value = ONCE_TRY(find(pointer));
  std::string text;
  if (const auto error = append_canonical(text, value, numbers)) return no_id(pointer, error);
  return text;
}

}  // namespace once
