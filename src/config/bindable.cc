// SPDX-License-Identifier: Apache-2.0
#include "config/bindable.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>

#include "config/plan_parts.h"

namespace once {
namespace {

// What types of a database have in common when a value is bound to them.
enum class Kind : std::uint8_t {
  other,
  small_integer,  // has no room for milliseconds since 1970
  number,
  boolean,
  moment,
  date,
  duration,
  uuid,
  json_text,
  json_binary,
};

struct Named {
  std::string_view name;
  Kind kind;
};
constexpr std::array<Named, 15> kinds{{
    {"smallint", Kind::small_integer},
    {"integer", Kind::small_integer},
    {"bigint", Kind::number},
    {"numeric", Kind::number},
    {"real", Kind::number},
    {"double precision", Kind::number},
    {"money", Kind::number},
    {"boolean", Kind::boolean},
    {"timestamp with time zone", Kind::moment},
    {"timestamp without time zone", Kind::moment},
    {"date", Kind::date},
    {"interval", Kind::duration},
    {"uuid", Kind::uuid},
    {"json", Kind::json_text},
    {"jsonb", Kind::json_binary},
}};

Kind kind_of(std::string_view database_type) {
  const auto* const found = std::find_if(
      kinds.begin(), kinds.end(), [&](const Named& one) { return one.name == database_type; });
  return found == kinds.end() ? Kind::other : found->kind;
}

bool is_one_of(Kind kind, std::initializer_list<Kind> kinds_to_find) {
  return std::find(kinds_to_find.begin(), kinds_to_find.end(), kind) != kinds_to_find.end();
}

// Values travel as text, bytes as they are (store/postgres/parameters.h); a boolean is 0 or 1, and
// a timestamp a date with a time and a zone.
bool is_refused(ValueType type, Kind kind) {
  switch (type) {
    case ValueType::text: return false;  // may hold anything
    case ValueType::integer:
    case ValueType::json: return is_one_of(kind, {Kind::moment, Kind::uuid});
    case ValueType::number:
    case ValueType::decimal:
    case ValueType::boolean: return is_one_of(kind, {Kind::moment, Kind::date, Kind::uuid});
    case ValueType::bytes: return !is_one_of(kind, {Kind::other, Kind::uuid, Kind::json_text});
    case ValueType::timestamp: return !is_one_of(kind, {Kind::other, Kind::moment, Kind::date});
    case ValueType::milliseconds:
      return is_one_of(kind,
                       {Kind::small_integer, Kind::boolean, Kind::moment, Kind::date, Kind::uuid});
  }
  return false;
}

std::string advice_for(const ValueRule& rule, Kind kind) {
  const bool is_count = rule.type == ValueType::integer || rule.type == ValueType::number ||
                        rule.type == ValueType::decimal || rule.type == ValueType::milliseconds;
  if (is_count && is_one_of(kind, {Kind::moment, Kind::date}))
    return fmt::format(
        "declare it with type = \"timestamp\", or, in SQL, write to_timestamp(:{} / 1000.0) for "
        "milliseconds since 1970",
        rule.name);
  if (rule.type == ValueType::milliseconds && kind == Kind::small_integer)
    return "make the column a bigint";
  if (rule.type == ValueType::timestamp && is_one_of(kind, {Kind::small_integer, Kind::number}))
    return fmt::format(
        "declare it with type = \"milliseconds\", or, in SQL, write extract(epoch FROM "
        ":{}::timestamptz)",
        rule.name);
  if (rule.type == ValueType::timestamp && is_one_of(kind, {Kind::json_text, Kind::json_binary}))
    return fmt::format("in SQL, write to_json(:{}::timestamptz)", rule.name);
  if (rule.type == ValueType::bytes && kind == Kind::json_binary)
    return "declare it with type = \"json\"";
  return "declare the value with the type that it has, or use another column";
}

}  // namespace

std::string reason_not_bindable(const ValueRule& rule, std::string_view database_type) {
  const Kind kind = kind_of(database_type);
  if (!is_refused(rule.type, kind)) return {};
  return fmt::format("the value \"{}\" has the type {}, and the database wants {}: {}", rule.name,
                     word_of(rule.type), database_type, advice_for(rule, kind));
}

}  // namespace once
