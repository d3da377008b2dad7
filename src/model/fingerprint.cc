// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <once/identity.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "model/canonical_json.h"
#include "model/fingerprint.h"
#include "model/json_fields.h"
#include "model/schema_frame.h"
#include "model/sha256.h"

namespace once {
namespace {

// Of a part: it has bytes, is empty or absent.
std::uint8_t kind_of(std::string_view part) {
  if (part.data() == nullptr) return 2;
  return part.empty() ? 1 : 0;
}

bool starts_with_ignoring_case(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), text.begin(), [](char expected, char actual) {
           return expected == std::tolower(static_cast<unsigned char>(actual));
         });
}

// Headers that change with every sending although the message says the same.
bool is_volatile(std::string_view name) {
  constexpr std::array<std::string_view, 4> names{"traceparent", "tracestate", "baggage", "b3"};
  constexpr std::array<std::string_view, 2> prefixes{"once-", "x-b3-"};
  const auto is = [&](std::string_view candidate) {
    return name.size() == candidate.size() && starts_with_ignoring_case(name, candidate);
  };
  const auto begins = [&](std::string_view prefix) {
    return starts_with_ignoring_case(name, prefix);
  };
  return std::any_of(names.begin(), names.end(), is) ||
         std::any_of(prefixes.begin(), prefixes.end(), begins);
}

void hash_headers(Sha256& hash, std::span<const HeaderView> headers) {
  std::vector<const HeaderView*> lasting;
  lasting.reserve(headers.size());
  for (const HeaderView& header : headers)
    if (!is_volatile(header.name)) lasting.push_back(&header);
  // Brokers keep headers in tables: their order is not part of what a message says.
  std::sort(lasting.begin(), lasting.end(), [](const HeaderView* a, const HeaderView* b) {
    return a->name != b->name ? a->name < b->name : a->value < b->value;
  });
  for (const HeaderView* header : lasting) {
    hash.field(header->name);
    hash.field(header->value);
  }
}

Fingerprint everything_of(const Delivery& delivery) {
  Sha256 hash("once fingerprint 1");
  hash.field(delivery.key);
  hash.field(delivery.body);
  if (!delivery.headers.empty()) hash_headers(hash, delivery.headers);
  const auto parts = static_cast<std::uint8_t>(3 * kind_of(delivery.key) + kind_of(delivery.body));
  const auto version =
      parts == 0 ? fingerprint_version::everything
                 : static_cast<std::uint8_t>(fingerprint_version::everything_in_part + parts - 1);
  return {version, hash.digest128()};
}

Fingerprint json_of(const Delivery& delivery) {
  thread_local std::string text;
  text.clear();
  const bool json = append_canonical_text(text, without_schema_frame(delivery.body));
  Sha256 hash(json ? "once fingerprint of JSON" : "once fingerprint of a body");
  hash.field(json ? std::string_view(text) : delivery.body);
  constexpr std::array<std::uint8_t, 3> versions{
      fingerprint_version::json, fingerprint_version::json_empty, fingerprint_version::json_absent};
  return {versions[kind_of(delivery.body)], hash.digest128()};
}

constexpr std::string_view header_prefix = "header:";

std::optional<std::string> text_of(std::string_view part) {
  return part.data() == nullptr ? std::nullopt : std::optional<std::string>(part);
}

// One field as text; unset if the message has none.
std::optional<std::string> field_of(const Delivery& delivery, const Result<JsonFields>& json,
                                    std::string_view field) {
  if (field == "key") return text_of(delivery.key);
  if (field.starts_with(header_prefix)) {
    const std::string_view* value = delivery.header(field.substr(header_prefix.size()));
    return value == nullptr ? std::nullopt : text_of(*value);
  }
  // Where the body is no JSON there are no fields to choose, and all of it is what it says.
  if (!json) return text_of(delivery.body);
  auto value = json->canonical(field, NumberSpelling::scientific);
  return value ? std::optional<std::string>(std::move(*value)) : std::nullopt;
}

// The version follows from the list of fields: ids that were recorded under another list are not
// compared (but for one change in 240, by chance). Half of the versions away are those that fields
// had while an absent one counted as empty.
std::uint8_t version_of(const std::vector<std::string>& fields) {
  std::uint32_t hash = 2166136261u;
  for (const std::string& field : fields)
    for (const char byte : field + ",")
      hash = (hash ^ static_cast<unsigned char>(byte)) * 16777619u;
  constexpr std::uint32_t versions = 256 - fingerprint_version::first_fields;
  return static_cast<std::uint8_t>(fingerprint_version::first_fields +
                                   (hash + versions / 2) % versions);
}

Fingerprint fields_of(const Delivery& delivery, const std::vector<std::string>& fields) {
  const bool reads_body = std::any_of(fields.begin(), fields.end(),
                                      [](const auto& field) { return field.starts_with('/'); });
  const Result<JsonFields> json = reads_body && may_be_json(without_schema_frame(delivery.body))
                                      ? JsonFields::parse(delivery.body)
                                      : fail(Remedy::park, "no_id", "there are no fields");
  std::vector<std::optional<std::string>> values;
  for (const std::string& field : fields) values.push_back(field_of(delivery, json, field));
  Sha256 hash("once fingerprint of fields");
  for (const auto& value : values) {
    hash.field(value ? "has" : "lacks");
    hash.field(value ? std::string_view(*value) : std::string_view());
  }
  return {version_of(fields), hash.digest128()};
}

tl::unexpected<Error> bad_rule(std::string_view text, std::string_view why) {
  return fail(Remedy::stop, "config",
              fmt::format("the content rule \"{}\" {}; known rules: none, json, everything, "
                          "fields:/POINTER,key,header:NAME",
                          text, why));
}

bool is_field(std::string_view field) {
  if (field.starts_with(header_prefix)) return field.size() > header_prefix.size();
  return field == "key" || is_json_pointer(field);
}

}  // namespace

Result<ContentRule> ContentRule::parse(std::string_view text) {
  if (text == "none") return ContentRule{Kind::none, {}};
  if (text == "json") return ContentRule{Kind::json, {}};
  if (text == "everything") return ContentRule{Kind::everything, {}};
  constexpr std::string_view prefix = "fields:";
  if (!text.starts_with(prefix)) return bad_rule(text, "is not known");
  ContentRule rule{Kind::fields, {}};
  for (std::string_view rest = text.substr(prefix.size());;) {
    const auto comma = rest.find(',');
    rule.fields.emplace_back(rest.substr(0, comma));
    if (!is_field(rule.fields.back()))
      return bad_rule(text, fmt::format("has \"{}\", which is no field", rule.fields.back()));
    if (comma == std::string_view::npos) return rule;
    rest.remove_prefix(comma + 1);
  }
}

std::string ContentRule::text() const {
  switch (kind) {
    case Kind::none: return "none";
    case Kind::fields: return fmt::format("fields:{}", fmt::join(fields, ","));
    case Kind::json: return "json";
    case Kind::everything: return "everything";
  }
  return "?";
}

std::string_view ContentRule::explanation() const {
  switch (kind) {
    case Kind::none: return "nothing";
    case Kind::fields: return "each of these fields";
    case Kind::json: return "the body as JSON, without key and headers,";
    case Kind::everything: return "all of key, body and headers";
  }
  return "?";
}

Fingerprint fingerprint_of(const Delivery& delivery, const ContentRule& content) {
  switch (content.kind) {
    case ContentRule::Kind::none: break;
    case ContentRule::Kind::fields: return fields_of(delivery, content.fields);
    case ContentRule::Kind::json: return json_of(delivery);
    case ContentRule::Kind::everything: return everything_of(delivery);
  }
  return {};
}

}  // namespace once
