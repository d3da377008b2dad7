// SPDX-License-Identifier: Apache-2.0
#include "config/toml_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <sstream>

#include "base/url.h"

namespace once {
namespace {

std::string_view type_name(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::none: return "nothing";
    case toml::node_type::table: return "a table";
    case toml::node_type::array: return "a list";
    case toml::node_type::string: return "a string";
    case toml::node_type::integer: return "an integer";
    case toml::node_type::floating_point: return "a number";
    case toml::node_type::boolean: return "a boolean";
    case toml::node_type::date:
    case toml::node_type::time:
    case toml::node_type::date_time: return "a date or time";
  }
  return "something else";
}

bool is_variable_name(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && is_letter(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9');
  });
}

std::string guess_of(std::string_view word, std::span<const std::string_view> known) {
  const std::string_view guess = nearest(word, known);
  return guess.empty() ? std::string() : fmt::format(", did you mean \"{}\"?", guess);
}

}  // namespace

Place place_of(const toml::node& node) {
  return {node.source().begin.line, node.source().begin.column};
}

tl::unexpected<Error> TomlFile::refuse(Place place, std::string_view text) const {
  return fail(Remedy::stop, "config",
              fmt::format("{}:{}:{}: {}", name, place.line, place.column, text));
}

Result<std::string> TomlFile::expanded(std::string_view text, Place place) {
  std::string made;
  while (true) {
    const std::size_t dollar = text.find('$');
    made += text.substr(0, dollar);
    if (dollar == std::string_view::npos) return made;
    text.remove_prefix(dollar + 1);
    if (text.starts_with('$')) {
      made += '$';
      text.remove_prefix(1);
      continue;
    }
    const std::size_t end = text.find('}');
    if (!text.starts_with('{') || end == std::string_view::npos)
      return refuse(place,
                    "a dollar begins ${NAME}, ${NAME:-default} or ${file:PATH}; write $$ for a "
                    "dollar");
    std::string_view inside = text.substr(1, end - 1);
    const std::size_t colon = inside.find(":-");
    const std::string variable(inside.substr(0, colon));
    const bool is_file = variable.starts_with("file:");
    if (!is_file && !is_variable_name(variable))
      return refuse(place, fmt::format("\"{}\" is no name of a variable", variable));
    std::optional<std::string> value = environment(variable);
    if (!value && colon == std::string_view::npos && is_file)
      return refuse(place, fmt::format("{} cannot be read, or has more than {} bytes",
                                       variable.substr(5), secret_bytes_max));
    if (!value && colon == std::string_view::npos)
      return refuse(place, fmt::format("the environment has no variable {0}; set it, or write "
                                       "${{{0}:-default}}",
                                       variable));
    if (value) variables[variable] = *value;
    made += value ? *value : std::string(inside.substr(colon + 2));
    text.remove_prefix(end + 1);
  }
}

Result<TomlTable> TomlTable::open(TomlFile& file, const toml::table& table, std::string name,
                                  std::span<const std::string_view> known) {
  for (const auto& [key, node] : table) {
    if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
    return file.refuse({key.source().begin.line, key.source().begin.column},
                       fmt::format("there is no key \"{}\"{}{}; known: {}", key.str(),
                                   name.empty() ? "" : " in " + name, guess_of(key.str(), known),
                                   fmt::join(known, ", ")));
  }
  return TomlTable(file, table, std::move(name));
}

std::string TomlTable::path_of(std::string_view key) const {
  return name_.empty() ? std::string(key) : fmt::format("{}.{}", name_, key);
}

Place TomlTable::place(std::string_view key) const {
  const toml::node* node = table_->get(key);
  return place_of(node != nullptr ? *node : *table_);
}

tl::unexpected<Error> TomlTable::refuse(std::string_view key, std::string_view text) const {
  return file_->refuse(place(key), fmt::format("{} {}", path_of(key), text));
}

tl::unexpected<Error> TomlTable::wrong_type(std::string_view key, std::string_view wanted) const {
  return refuse(key, fmt::format("must be {}, not {}", wanted, type_name(*table_->get(key))));
}

Result<std::optional<std::string>> TomlTable::literal_text(std::string_view key) const {
  const toml::node* node = table_->get(key);
  if (node == nullptr) return std::nullopt;
  if (!node->is_string()) return wrong_type(key, "a string");
  return node->as_string()->get();
}

Result<std::optional<std::string>> TomlTable::text(std::string_view key) const {
  const auto literal = ONCE_TRY(literal_text(key));
  if (!literal) return std::nullopt;
  return ONCE_TRY(file_->expanded(*literal, place(key)));
}

Result<std::string> TomlTable::required_text(std::string_view key,
                                             std::string_view explanation) const {
  auto found = ONCE_TRY(text(key));
  if (found && !found->empty()) return std::move(*found);
  return refuse(key, fmt::format("{}: {}", found ? "is empty" : "is missing", explanation));
}

Result<std::optional<std::int64_t>> TomlTable::integer(std::string_view key, std::int64_t min,
                                                       std::int64_t max) const {
  const toml::node* node = table_->get(key);
  if (node == nullptr) return std::nullopt;
  if (!node->is_integer()) return wrong_type(key, "an integer");
  const std::int64_t number = node->as_integer()->get();
  if (number >= min && number <= max) return number;
  return refuse(key, fmt::format("must be between {} and {}, not {}", min, max, number));
}

Result<std::optional<bool>> TomlTable::boolean(std::string_view key) const {
  const toml::node* node = table_->get(key);
  if (node == nullptr) return std::nullopt;
  if (!node->is_boolean()) return wrong_type(key, "true or false");
  return node->as_boolean()->get();
}

Result<std::optional<std::string>> scalar_of(TomlFile& file, const toml::node& node) {
  if (const auto* text = node.as_string())
    return ONCE_TRY(file.expanded(text->get(), place_of(node)));
  if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  if (const auto* moment = node.as_date_time()) {
    std::ostringstream text;
    text << moment->get();
    return text.str();
  }
  return std::nullopt;
}

Result<std::optional<std::string>> TomlTable::scalar(std::string_view key) const {
  const toml::node* node = table_->get(key);
  if (node == nullptr) return std::nullopt;
  auto found = ONCE_TRY(scalar_of(*file_, *node));
  if (!found) return wrong_type(key, "a string, number or boolean");
  return found;
}

Result<std::vector<std::string>> TomlTable::scalars(std::string_view key) const {
  std::vector<std::string> found;
  const toml::node* node = table_->get(key);
  if (node == nullptr) return found;
  if (!node->is_array()) {
    found.push_back(*ONCE_TRY(scalar(key)));
    return found;
  }
  for (const toml::node& item : *node->as_array()) {
    auto one = ONCE_TRY(scalar_of(*file_, item));
    if (!one) return refuse(key, "must be a list of strings, numbers or booleans");
    found.push_back(std::move(*one));
  }
  return found;
}

Result<std::vector<std::string>> TomlTable::texts(std::string_view key) const {
  std::vector<std::string> found;
  const toml::node* node = table_->get(key);
  if (node == nullptr) return found;
  if (!node->is_array()) return wrong_type(key, "a list of strings");
  for (const toml::node& item : *node->as_array()) {
    if (!item.is_string()) return refuse(key, "must be a list of strings");
    found.push_back(ONCE_TRY(file_->expanded(item.as_string()->get(), place_of(item))));
  }
  return found;
}

Result<std::optional<std::size_t>> TomlTable::word(std::string_view key,
                                                   std::span<const std::string_view> words) const {
  const auto found = ONCE_TRY(text(key));
  if (!found) return std::nullopt;
  const auto known = std::find(words.begin(), words.end(), *found);
  if (known != words.end()) return static_cast<std::size_t>(known - words.begin());
  return refuse(key, fmt::format("cannot be \"{}\"{}; known: {}", *found, guess_of(*found, words),
                                 fmt::join(words, ", ")));
}

std::optional<std::int64_t> parse_duration_ms(std::string_view text) {
  std::int64_t count = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc() || count < 0) return std::nullopt;
  struct Unit {
    std::string_view name;
    std::int64_t ms;
  };
  constexpr Unit units[] = {
      {"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}};
  const std::string_view name(stop, static_cast<std::size_t>(end - stop));
  for (const Unit& unit : units)
    if (name == unit.name && count <= std::numeric_limits<std::int64_t>::max() / unit.ms)
      return count * unit.ms;
  return std::nullopt;
}

Result<std::optional<std::int64_t>> TomlTable::duration_ms(std::string_view key) const {
  const auto found = ONCE_TRY(text(key));
  if (!found) return std::nullopt;
  const auto parsed = parse_duration_ms(*found);
  if (!parsed)
    return refuse(key, fmt::format("is a duration, \"10ms\", \"5s\", \"30m\", \"12h\" or \"7d\", "
                                   "not \"{}\"",
                                   *found));
  return parsed;
}

Result<const toml::table*> TomlTable::free_table(std::string_view key) const {
  const toml::node* node = table_->get(key);
  if (node == nullptr) return nullptr;
  if (!node->is_table()) return wrong_type(key, "a table");
  return node->as_table();
}

Result<std::optional<TomlTable>> TomlTable::table(std::string_view key,
                                                  std::span<const std::string_view> known) const {
  const toml::table* found = ONCE_TRY(free_table(key));
  if (found == nullptr) return std::nullopt;
  return ONCE_TRY(open(*file_, *found, path_of(key), known));
}

Result<std::vector<TomlTable>> TomlTable::tables(std::string_view key,
                                                 std::span<const std::string_view> known) const {
  std::vector<TomlTable> found;
  const toml::node* node = table_->get(key);
  if (node == nullptr) return found;
  const auto wrong = fmt::format("is a list of tables: write [[{}]]", path_of(key));
  if (!node->is_array()) return refuse(key, wrong);
  for (const toml::node& item : *node->as_array()) {
    if (!item.is_table()) return refuse(key, wrong);
    found.push_back(ONCE_TRY(open(*file_, *item.as_table(), path_of(key), known)));
  }
  return found;
}

}  // namespace once
