// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "config/plan_parts.h"

namespace once {
namespace {

constexpr std::size_t depth_max = 16;

struct KeyOfKind {
  std::string_view key;
  WhenRule::Kind kind;
};
constexpr std::array<KeyOfKind, 3> joint_keys{{{"all", WhenRule::Kind::all},
                                               {"any", WhenRule::Kind::any},
                                               {"not", WhenRule::Kind::negation}}};
constexpr std::array<KeyOfKind, 8> test_keys{{{"is", WhenRule::Kind::is},
                                              {"exists", WhenRule::Kind::exists},
                                              {"missing", WhenRule::Kind::missing},
                                              {"below", WhenRule::Kind::below},
                                              {"at_most", WhenRule::Kind::at_most},
                                              {"above", WhenRule::Kind::above},
                                              {"at_least", WhenRule::Kind::at_least},
                                              {"prefix", WhenRule::Kind::prefix}}};

std::vector<std::string_view> known_keys() {
  std::vector<std::string_view> keys{"value"};
  keys.insert(keys.end(), origin_keys().begin(), origin_keys().end());
  keys.emplace_back("type");
  for (const KeyOfKind& test : test_keys) keys.push_back(test.key);
  for (const KeyOfKind& joint : joint_keys) keys.push_back(joint.key);
  return keys;
}

bool is_order(WhenRule::Kind kind) {
  return kind == WhenRule::Kind::below || kind == WhenRule::Kind::at_most ||
         kind == WhenRule::Kind::above || kind == WhenRule::Kind::at_least;
}

// A value that the file does not type is ordered as what it is compared with: numbers as numbers,
// not as text, in which "99" comes after "100".
std::optional<ValueType> type_of_bound(const TomlTable& table) {
  for (const KeyOfKind& test : test_keys) {
    const toml::node* bound = table.native().get(test.key);
    if (bound == nullptr || !is_order(test.kind)) continue;
    if (bound->is_number()) return ValueType::decimal;
    if (bound->is_date_time()) return ValueType::timestamp;
  }
  return std::nullopt;
}

Result<ValueRef> parse_tested(const TomlTable& table, std::vector<ValueRule>& values) {
  if (const toml::node* name = table.native().get("value")) {
    for (const std::string_view key : origin_keys())
      if (table.has(key))
        return table.refuse("value", fmt::format("and {} say two things; drop one", key));
    if (table.has("type")) return table.refuse("type", "is said where the value is declared");
    return ref_of(table.file(), *name, "a value to be tested", values);
  }
  ValueRule rule = ONCE_TRY(parse_origin(table, "a condition"));
  rule.place = table.place();
  // No user can have this name.
  rule.name = fmt::format("when@{}:{}", rule.place.line, rule.place.column);
  rule.nullable = true;
  if (const auto type = ONCE_TRY(parse_type(table)))
    rule.type = *type;
  else if (rule.type == ValueType::text)
    rule.type = type_of_bound(table).value_or(ValueType::text);
  ValueRef ref{rule.name, rule.place};
  values.push_back(std::move(rule));
  return ref;
}

Result<WhenRule> parse_test(const TomlTable& table, const KeyOfKind& test, const ValueRef& ref) {
  WhenRule made{.kind = test.kind, .place = table.place(test.key), .ref = ref};
  if (test.kind == WhenRule::Kind::exists || test.kind == WhenRule::Kind::missing) {
    if (!*ONCE_TRY(table.boolean(test.key)))
      return table.refuse(test.key,
                          "is either true or not there; the opposite of exists is "
                          "missing");
    return made;
  }
  made.operands = ONCE_TRY(table.scalars(test.key));
  if (made.operands.empty())
    return table.refuse(test.key, "is compared with a string, number or boolean, or a list");
  if (is_order(test.kind) && made.operands.size() > 1)
    return table.refuse(test.key, "is compared with one value, not with a list");
  return made;
}

// Several tests in one table are about one value, and all must hold.
Result<WhenRule> parse_tests(const TomlTable& table, std::vector<ValueRule>& values) {
  const ValueRef ref = ONCE_TRY(parse_tested(table, values));
  WhenRule all{.kind = WhenRule::Kind::all, .place = table.place()};
  for (const KeyOfKind& test : test_keys)
    if (table.has(test.key)) all.parts.push_back(ONCE_TRY(parse_test(table, test, ref)));
  if (all.parts.empty()) {
    std::vector<std::string_view> names;
    for (const KeyOfKind& test : test_keys) names.push_back(test.key);
    return table.file().refuse(
        table.place(), fmt::format("a condition tests a value: {}", fmt::join(names, ", ")));
  }
  if (all.parts.size() > 1) return all;
  WhenRule only = std::move(all.parts.front());
  return only;
}

class ConditionReader {
 public:
  ConditionReader(TomlFile& file, std::vector<ValueRule>& values) : file_(file), values_(values) {}

  Result<WhenRule> read(const toml::node& node, std::size_t depth) {
    if (depth > depth_max)
      return file_.refuse(place_of(node), fmt::format("conditions are at most {} deep", depth_max));
    if (!node.is_table())
      return file_.refuse(
          place_of(node),
          "a condition is a table, for example { json = \"/type\", is = \"paid\" }");
    const TomlTable table = ONCE_TRY(TomlTable::open(file_, *node.as_table(), "when", keys_));
    for (const KeyOfKind& joint : joint_keys)
      if (table.has(joint.key)) return read_joint(table, joint, depth);
    return parse_tests(table, values_);
  }

 private:
  Result<WhenRule> read_joint(const TomlTable& table, const KeyOfKind& joint, std::size_t depth) {
    if (table.native().size() > 1)
      return table.refuse(joint.key, "stands alone in its table; join conditions with all or any");
    WhenRule made{.kind = joint.kind, .place = table.place(joint.key)};
    const toml::node& inner = *table.native().get(joint.key);
    if (joint.kind == WhenRule::Kind::negation) {
      made.parts.push_back(ONCE_TRY(read(inner, depth + 1)));
      return made;
    }
    if (!inner.is_array() || inner.as_array()->empty())
      return table.refuse(joint.key, "is a list of conditions");
    for (const toml::node& part : *inner.as_array())
      made.parts.push_back(ONCE_TRY(read(part, depth + 1)));
    return made;
  }

  TomlFile& file_;
  std::vector<ValueRule>& values_;
  const std::vector<std::string_view> keys_ = known_keys();
};

}  // namespace

Result<std::optional<WhenRule>> parse_when(const TomlTable& of, std::vector<ValueRule>& values) {
  const toml::node* when = of.native().get("when");
  if (when == nullptr) return std::nullopt;
  return ONCE_TRY(ConditionReader(of.file(), values).read(*when, 1));
}

}  // namespace once
