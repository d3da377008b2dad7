// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <once/identity.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "model/json_fields.h"
#include "model/ledger.h"
#include "model/sha256.h"

namespace once {
namespace {

constexpr std::string_view known_rules =
    "carried, key, header:NAME, json:/POINTER[,/POINTER], cloudevents, coordinates, "
    "digest:[/POINTER,...]";

tl::unexpected<Error> bad_rule(std::string_view text, std::string_view why) {
  return fail(Remedy::stop, "config",
              fmt::format("the id rule \"{}\" {}; known rules: {}", text, why, known_rules));
}

// "/a,/b" are two pointers; "/a,b" is one, whose member name has a comma.
std::vector<std::string> split_pointers(std::string_view text) {
  std::vector<std::string> pointers;
  for (;;) {
    const auto comma = text.find(",/");
    pointers.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return pointers;
    text.remove_prefix(comma + 1);
  }
}

std::string_view name_of_kind(IdRule::Kind kind) {
  switch (kind) {
    case IdRule::Kind::carried: return "carried";
    case IdRule::Kind::key: return "key";
    case IdRule::Kind::header: return "header";
    case IdRule::Kind::json: return "json";
    case IdRule::Kind::cloudevents: return "cloudevents";
    case IdRule::Kind::coordinates: return "coordinates";
    case IdRule::Kind::digest: return "digest";
  }
  return "?";
}

std::optional<IdRule::Kind> kind_named(std::string_view name) {
  using Kind = IdRule::Kind;
  for (const Kind kind : {Kind::carried, Kind::key, Kind::header, Kind::json, Kind::cloudevents,
                          Kind::coordinates, Kind::digest})
    if (name_of_kind(kind) == name) return kind;
  return std::nullopt;
}

tl::unexpected<Error> no_id(std::string_view why) {
  return fail(Remedy::park, "no_id", std::string(why));
}

std::string tuple_of(const std::vector<std::string>& parts) {
  const std::vector<std::string_view> views(parts.begin(), parts.end());
  return encode_tuple(views);
}

Result<std::string> header_id(const Delivery& delivery, std::string_view name) {
  const std::string_view* value = delivery.header(name);
  if (value == nullptr) return no_id("there is no such header");
  return std::string(*value);
}

Result<std::string> json_id(const Delivery& delivery, const std::vector<std::string>& pointers) {
  const JsonFields json = ONCE_TRY(JsonFields::parse(delivery.body));
  if (pointers.size() == 1) return json.scalar(pointers[0]);
  std::vector<std::string> parts;
  for (const std::string& pointer : pointers) parts.push_back(ONCE_TRY(json.scalar(pointer)));
  return tuple_of(parts);
}

Result<std::string> digest_id(const Delivery& delivery, const std::vector<std::string>& pointers) {
  if (pointers.empty()) {
    if (!delivery.has_body()) return no_id("the message has no body");
    if (delivery.body.empty()) return no_id("the body is empty");
    Sha256 hash("once digest of the body");
    hash.field(delivery.body);
    return to_hex(hash.digest128());
  }
  const JsonFields json = ONCE_TRY(JsonFields::parse(delivery.body));
  Sha256 hash("once digest of fields");
  for (const std::string& pointer : pointers) hash.field(ONCE_TRY(json.canonical(pointer)));
  return to_hex(hash.digest128());
}

// The attribute from the headers of the HTTP, Kafka and AMQP bindings of CloudEvents. That of MQTT
// has no prefix, so that only the version tells it from other headers.
std::string_view cloudevents_header(const Delivery& delivery, std::string_view attribute) {
  if (delivery.header("specversion") != nullptr)
    if (const std::string_view* bare = delivery.header(attribute)) return *bare;
  constexpr std::array<std::string_view, 4> prefixes{"ce-", "ce_", "cloudEvents:", "cloudEvents_"};
  for (const HeaderView& header : delivery.headers)
    for (const std::string_view prefix : prefixes)
      if (header.name.size() == prefix.size() + attribute.size() &&
          header.name.starts_with(prefix) && header.name.ends_with(attribute))
        return header.value;
  return {};
}

Result<std::string> cloudevents_id(const Delivery& delivery) {
  const std::string_view source = cloudevents_header(delivery, "source");
  const std::string_view id = cloudevents_header(delivery, "id");
  if (!source.empty() && !id.empty())
    return encode_tuple(std::array<std::string_view, 2>{source, id});
  if (!source.empty() || !id.empty()) return no_id("the headers have only one of source and id");
  const JsonFields json = ONCE_TRY(JsonFields::parse(delivery.body));
  ONCE_TRY(json.scalar("/specversion"));  // else it is some other JSON that happens to have an id
  std::string body_source = ONCE_TRY(json.scalar("/source"));
  std::string body_id = ONCE_TRY(json.scalar("/id"));
  return tuple_of({std::move(body_source), std::move(body_id)});
}

Result<std::string> carried_id(const Delivery& delivery) {
  if (!delivery.id.empty()) return std::string(delivery.id);
  const std::string_view* value = delivery.header(id_header);
  if (value == nullptr) return no_id("the message carries none");
  return std::string(*value);
}

Result<std::string> raw_id(const IdRule& rule, const Delivery& delivery) {
  switch (rule.kind) {
    case IdRule::Kind::carried: return carried_id(delivery);
    case IdRule::Kind::key: return std::string(delivery.key);
    case IdRule::Kind::header:
      return header_id(delivery, rule.fields.empty() ? "" : rule.fields[0]);
    case IdRule::Kind::json: return json_id(delivery, rule.fields);
    case IdRule::Kind::cloudevents: return cloudevents_id(delivery);
    case IdRule::Kind::coordinates:
      return tuple_of({std::string(delivery.partition), std::to_string(delivery.offset)});
    case IdRule::Kind::digest: return digest_id(delivery, rule.fields);
  }
  return no_id("the rule is of no known kind");
}

}  // namespace

Result<IdRule> IdRule::parse(std::string_view text) {
  const auto colon = text.find(':');
  const auto kind = kind_named(text.substr(0, colon));
  if (!kind) return bad_rule(text, "is not known");
  IdRule rule{*kind, {}};
  const bool has_fields = colon != std::string_view::npos;
  const std::string_view rest = has_fields ? text.substr(colon + 1) : std::string_view();
  switch (*kind) {
    case Kind::carried:
    case Kind::key:
    case Kind::cloudevents:
    case Kind::coordinates:
      if (has_fields) return bad_rule(text, "takes nothing after a colon");
      return rule;
    case Kind::header:
      if (rest.empty()) return bad_rule(text, "lacks the name of the header");
      rule.fields.emplace_back(rest);
      return rule;
    case Kind::digest:
      if (!has_fields) return bad_rule(text, "lacks its colon");
      if (rest.empty()) return rule;
      break;
    case Kind::json:
      if (rest.empty()) return bad_rule(text, "lacks a JSON pointer");
      break;
  }
  rule.fields = split_pointers(rest);
  for (const std::string& pointer : rule.fields)
    if (!is_json_pointer(pointer))
      return bad_rule(text, fmt::format("has \"{}\", which is no JSON pointer", pointer));
  return rule;
}

std::string IdRule::text() const {
  const std::string_view name = name_of_kind(kind);
  if (kind != Kind::header && kind != Kind::json && kind != Kind::digest) return std::string(name);
  return fmt::format("{}:{}", name, fmt::join(fields, ","));
}

Result<std::string> IdRule::id_of(const Delivery& delivery) const {
  const auto where = [&] {
    return fmt::format("at offset {} of partition \"{}\"", delivery.offset, delivery.partition);
  };
  auto id = raw_id(*this, delivery);
  if (!id) {
    Error error = std::move(id).error();
    error.text = fmt::format("the rule \"{}\" finds no id in the message {}: {}", text(), where(),
                             error.text);
    return fail(std::move(error));
  }
  if (id->empty())
    return fail(
        Remedy::park, "no_id",
        fmt::format("the rule \"{}\" finds an empty id in the message {}", text(), where()));
  if (id->size() > id_bytes_max)
    return fail(Remedy::park, "long_id",
                fmt::format("the rule \"{}\" finds an id of {} bytes in the message {}; at most {} "
                            "are allowed, a digest rule makes it shorter",
                            text(), id->size(), where(), id_bytes_max));
  return id;
}

Result<std::int64_t> born_ms_of(BornRule rule, const Delivery& delivery, std::string_view id) {
  switch (rule) {
    case BornRule::timestamp: return ledger_time(delivery.timestamp_ms);
    case BornRule::uuid7: return uuid7_time_ms(id);
    case BornRule::snowflake: return snowflake_time_ms(id);
  }
  return fail(Remedy::stop, "config", "unknown rule for the time of birth");
}

}  // namespace once
