// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "config/cell.h"
#include "config/plan_parts.h"
#include "model/json_fields.h"

namespace once {
namespace {

constexpr std::array<std::string_view, 14> value_keys{
    "json",      "header",   "key",     "body",          "id",   "partition", "offset",
    "timestamp", "constant", "element", "element_index", "type", "null",      "default"};
constexpr std::size_t origins = 11;  // the first keys of a value say where it comes from
// In the order of ValueType.
constexpr std::array<std::string_view, 9> type_words{"text",    "integer",   "number",
                                                     "decimal", "boolean",   "bytes",
                                                     "json",    "timestamp", "milliseconds"};

// What is written as `name = true`.
struct Whole {
  std::string_view key;
  ValueFrom from;
  ValueType type;
};
constexpr std::array<Whole, 7> wholes{{
    {"key", ValueFrom::key, ValueType::text},
    {"body", ValueFrom::body, ValueType::text},
    {"id", ValueFrom::id, ValueType::text},
    {"partition", ValueFrom::partition, ValueType::text},
    {"offset", ValueFrom::offset, ValueType::integer},
    {"timestamp", ValueFrom::timestamp, ValueType::timestamp},
    {"element_index", ValueFrom::element_index, ValueType::integer},
}};

Result<std::optional<ValueRule>> parse_json_origin(const TomlTable& table) {
  const auto pointer = ONCE_TRY(table.text("json"));
  if (!pointer) return std::nullopt;
  if (!is_json_pointer(*pointer))
    return table.refuse("json",
                        fmt::format("is a JSON pointer, \"/order/id\", not \"{}\"", *pointer));
  return ValueRule{.name = {}, .from = ValueFrom::json, .field = *pointer};
}

Result<std::optional<ValueRule>> parse_element_origin(const TomlTable& table) {
  const auto pointer = ONCE_TRY(table.text("element"));
  if (!pointer) return std::nullopt;
  if (!pointer->empty() && !is_json_pointer(*pointer))
    return table.refuse("element", fmt::format("is a JSON pointer into the element, \"/sku\", or "
                                               "\"\" for all of it, not \"{}\"",
                                               *pointer));
  return ValueRule{.name = {}, .from = ValueFrom::element, .field = *pointer};
}

Result<std::optional<ValueRule>> parse_header_origin(const TomlTable& table) {
  const auto header = ONCE_TRY(table.text("header"));
  if (!header) return std::nullopt;
  if (header->empty()) return table.refuse("header", "is the name of a header");
  return ValueRule{.name = {}, .from = ValueFrom::header, .field = *header};
}

Result<std::optional<ValueRule>> parse_constant_origin(const TomlTable& table) {
  const auto constant = ONCE_TRY(table.scalar("constant"));
  if (!constant) return std::nullopt;
  return ValueRule{.name = {}, .from = ValueFrom::constant, .field = *constant};
}

Result<std::optional<ValueRule>> parse_whole_origin(const TomlTable& table, const Whole& whole) {
  const auto chosen = ONCE_TRY(table.boolean(whole.key));
  if (!chosen) return std::nullopt;
  if (!*chosen) return table.refuse(whole.key, "is either true or not there");
  return ValueRule{.name = {}, .from = whole.from, .type = whole.type};
}

// A text of the file in the place of a value must fit the value's type, too.
Status check_text(const TomlTable& table, std::string_view key, const std::string& text,
                  ValueType type) {
  const auto cell = cell_from_text(text, type);
  if (!cell) return table.refuse(key, cell.error().text);
  return {};
}

// What it must be, and what stands in for it.
Status parse_kind(const TomlTable& table, ValueRule& rule) {
  if (const auto type = ONCE_TRY(parse_type(table))) rule.type = *type;
  if (const auto nullable = ONCE_TRY(table.boolean("null"))) rule.nullable = *nullable;
  rule.fallback = ONCE_TRY(table.scalar("default"));
  if (rule.fallback && rule.nullable)
    return table.refuse("default",
                        "and null = true say two things about an absent value; drop one");
  if (rule.fallback) ONCE_TRY(check_text(table, "default", *rule.fallback, rule.type));
  return {};
}

Result<ValueRule> parse_value(const TomlTable& table, const std::string& name) {
  ValueRule rule = ONCE_TRY(parse_origin(table, fmt::format("the value \"{}\"", name)));
  rule.name = name;
  rule.place = table.place();
  ONCE_TRY(parse_kind(table, rule));
  if (rule.from == ValueFrom::constant)
    ONCE_TRY(check_text(table, "constant", rule.field, rule.type));
  return rule;
}

// A type, or a table with more.
Result<ValueRule> parse_column(const TomlTable& of, std::string_view name, const toml::node& node) {
  constexpr std::array<std::string_view, 3> column_keys{"type", "null", "default"};
  if (!is_value_name(name))
    return of.file().refuse(place_of(node),
                            fmt::format("\"{}\" cannot be the name of a value", name));
  toml::table only_type;
  const toml::table* table = node.as_table();
  if (table == nullptr) {
    only_type.insert("type", node);
    table = &only_type;
  }
  const TomlTable column =
      ONCE_TRY(TomlTable::open(of.file(), *table, fmt::format("do.into.{}", name), column_keys));
  ValueRule rule{.name = std::string(name), .from = ValueFrom::result};
  ONCE_TRY(parse_kind(column, rule));
  rule.place = place_of(node);
  return rule;
}

void add_whole_values(std::vector<ValueRule>& values) {
  for (const Whole& whole : wholes) {
    const auto is_it = [&](const ValueRule& rule) { return rule.name == whole.key; };
    if (std::any_of(values.begin(), values.end(), is_it)) continue;
    values.push_back({.name = std::string(whole.key), .from = whole.from, .type = whole.type});
  }
}

}  // namespace

std::span<const std::string_view> origin_keys() { return std::span(value_keys).first(origins); }

Result<ValueRule> parse_origin(const TomlTable& table, std::string_view what) {
  std::vector<ValueRule> found;
  const auto take = [&](std::optional<ValueRule> rule) {
    if (rule) found.push_back(std::move(*rule));
  };
  take(ONCE_TRY(parse_json_origin(table)));
  take(ONCE_TRY(parse_element_origin(table)));
  take(ONCE_TRY(parse_header_origin(table)));
  take(ONCE_TRY(parse_constant_origin(table)));
  for (const Whole& whole : wholes) take(ONCE_TRY(parse_whole_origin(table, whole)));
  if (found.size() == 1) return std::move(found.front());
  return table.file().refuse(table.place(),
                             fmt::format("{} must say one place that it comes from: {}", what,
                                         fmt::join(origin_keys(), ", ")));
}

std::string_view word_of(ValueType type) { return type_words[static_cast<std::size_t>(type)]; }

Result<std::optional<ValueType>> parse_type(const TomlTable& table) {
  const auto type = ONCE_TRY(table.word("type", type_words));
  if (!type) return std::nullopt;
  return static_cast<ValueType>(*type);
}

Result<std::optional<std::string>> parse_each(const TomlTable& of) {
  auto pointer = ONCE_TRY(of.text("each"));
  if (pointer && !pointer->empty() && !is_json_pointer(*pointer))
    return of.refuse("each", fmt::format("is a JSON pointer to an array, \"/lines\", or \"\" for "
                                         "the whole body, not \"{}\"",
                                         *pointer));
  return pointer;
}

Result<std::vector<ValueRef>> parse_into(const TomlTable& of, std::size_t step,
                                         std::vector<ValueRule>& values) {
  const toml::table* columns = ONCE_TRY(of.free_table("into"));
  if (columns == nullptr) return std::vector<ValueRef>{};
  std::vector<ValueRule> rules;
  for (const auto& [name, node] : *columns)
    rules.push_back(ONCE_TRY(parse_column(of, name.str(), node)));
  if (rules.empty()) return of.refuse("into", "names no column");
  // A table of the parser is sorted by its names; columns come as the file has them.
  std::sort(rules.begin(), rules.end(), [](const ValueRule& a, const ValueRule& b) {
    return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
  });
  std::vector<ValueRef> refs;
  for (ValueRule& rule : rules) {
    for (const ValueRule& other : values)
      if (other.name == rule.name)
        return of.file().refuse(rule.place,
                                fmt::format("there is another value \"{}\"", rule.name));
    rule.step = step;
    rule.column = refs.size();
    refs.push_back({rule.name, rule.place});
    values.push_back(std::move(rule));
  }
  return refs;
}

bool is_of_element(const ValueRule& rule) {
  return rule.from == ValueFrom::element || rule.from == ValueFrom::element_index;
}

bool is_value_name(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && is_letter(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9');
  });
}

Result<ValueRef> ref_of(TomlFile& file, const toml::node& node, std::string_view what,
                        std::vector<ValueRule>& values) {
  const Place place = place_of(node);
  if (const toml::table* inline_value = node.as_table()) {
    const TomlTable table =
        ONCE_TRY(TomlTable::open(file, *inline_value, std::string(what), value_keys));
    // No user can give this name.
    const auto name = fmt::format("value@{}:{}", place.line, place.column);
    values.push_back(ONCE_TRY(parse_value(table, name)));
    return ValueRef{name, place};
  }
  const auto* name = node.as_string();
  if (name == nullptr || !is_value_name(name->get()))
    return file.refuse(place, fmt::format("{} is the name of a value of [values], or a value, for "
                                          "example {{ constant = \"eu\" }}",
                                          what));
  return ValueRef{name->get(), place};
}

Result<std::vector<ValueRule>> parse_values(const TomlTable& root) {
  std::vector<ValueRule> values;
  if (const toml::table* table = ONCE_TRY(root.free_table("values"))) {
    for (const auto& [key, node] : *table) {
      const std::string name(key.str());
      if (!is_value_name(name))
        return root.file().refuse(
            place_of(node), fmt::format("\"{}\" cannot be the name of a value: letters, digits "
                                        "and _, and no digit first",
                                        name));
      if (!node.is_table())
        return root.file().refuse(place_of(node),
                                  fmt::format("the value \"{}\" is a table, for example "
                                              "{{ json = \"/{}\", type = \"integer\" }}",
                                              name, name));
      const TomlTable of =
          ONCE_TRY(TomlTable::open(root.file(), *node.as_table(), "values." + name, value_keys));
      values.push_back(ONCE_TRY(parse_value(of, name)));
    }
  }
  add_whole_values(values);
  return values;
}

}  // namespace once
