// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <toml++/toml.h>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/plan.h"

namespace once {

// Which file is read, and with which variables; remembers those that were used.
struct TomlFile {
  std::string name;
  const Environment& environment;
  std::map<std::string, std::string> variables = {};

  [[nodiscard]] tl::unexpected<Error> refuse(Place place, std::string_view text) const;

  // `${NAME}`, `${NAME:-default}` and `$$` replaced.
  [[nodiscard]] Result<std::string> expanded(std::string_view text, Place place);
};

[[nodiscard]] Place place_of(const toml::node& node);

// One table of the file. A key that is not in `known` is refused when it is opened, with the
// nearest one that is. Each function answers what a key holds, or unset if it is not there; another
// type than the function's is an error that says where.
class TomlTable {
 public:
  static Result<TomlTable> open(TomlFile& file, const toml::table& table, std::string name,
                                std::span<const std::string_view> known);

  Place place() const { return place_of(*table_); }
  Place place(std::string_view key) const;
  bool has(std::string_view key) const { return table_->contains(key); }
  const toml::table& native() const { return *table_; }
  TomlFile& file() const { return *file_; }

  [[nodiscard]] Result<std::optional<std::string>> text(std::string_view key) const;
  [[nodiscard]] Result<std::optional<std::string>> literal_text(std::string_view key) const;
  [[nodiscard]] Result<std::string> required_text(std::string_view key,
                                                  std::string_view explanation) const;
  [[nodiscard]] Result<std::optional<std::int64_t>> integer(std::string_view key, std::int64_t min,
                                                            std::int64_t max) const;
  [[nodiscard]] Result<std::optional<bool>> boolean(std::string_view key) const;
  // A string, number or boolean in one spelling.
  [[nodiscard]] Result<std::optional<std::string>> scalar(std::string_view key) const;
  // One of them, or a list.
  [[nodiscard]] Result<std::vector<std::string>> scalars(std::string_view key) const;
  [[nodiscard]] Result<std::vector<std::string>> texts(std::string_view key) const;
  // One of these words; answers its number.
  [[nodiscard]] Result<std::optional<std::size_t>> word(
      std::string_view key, std::span<const std::string_view> words) const;
  // "10ms", "5s", "30m", "12h", "7d" in milliseconds.
  [[nodiscard]] Result<std::optional<std::int64_t>> duration_ms(std::string_view key) const;
  [[nodiscard]] Result<std::optional<TomlTable>> table(
      std::string_view key, std::span<const std::string_view> known) const;
  // A table whose keys are the user's.
  [[nodiscard]] Result<const toml::table*> free_table(std::string_view key) const;
  // [[key]]
  [[nodiscard]] Result<std::vector<TomlTable>> tables(
      std::string_view key, std::span<const std::string_view> known) const;

  [[nodiscard]] tl::unexpected<Error> refuse(std::string_view key, std::string_view text) const;

 private:
  TomlTable(TomlFile& file, const toml::table& table, std::string name)
      : file_(&file), table_(&table), name_(std::move(name)) {}

  std::string path_of(std::string_view key) const;
  tl::unexpected<Error> wrong_type(std::string_view key, std::string_view wanted) const;

  TomlFile* file_;
  const toml::table* table_;
  std::string name_;  // "source"; empty for the whole file
};

// "10ms", "5s", "30m", "12h", "7d"; unset if it is none of these.
[[nodiscard]] std::optional<std::int64_t> parse_duration_ms(std::string_view text);

// A string, number or boolean in one spelling, strings expanded; unset if it is none of these.
[[nodiscard]] Result<std::optional<std::string>> scalar_of(TomlFile& file, const toml::node& node);

}  // namespace once
