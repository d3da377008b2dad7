// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/sql.h>

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace once {

// A text cannot hold a zero byte in PostgreSQL.
bool has_zero_in_text(std::span<const Value> values);

// The parameters of one statement as libpq takes them. Numbers and text travel as text, so that the
// server gives them the type of their place; bytes and arrays travel in binary.
class Parameters {
 public:
  Parameters() = default;
  explicit Parameters(std::span<const Value> values);
  Parameters(std::initializer_list<Value> values)
      : Parameters(std::span(values.begin(), values.size())) {}
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;
  Parameters(Parameters&&) noexcept = default;  // the strings stay where they are

  void add(const Value& value);
  void add_array(std::span<const std::int64_t> numbers);    // bigint[]
  void add_array(std::span<const std::string_view> bytes);  // bytea[]; a null view is NULL

  int count() const { return static_cast<int>(values_.size()); }
  const char* const* values() const { return values_.data(); }
  const int* lengths() const { return lengths_.data(); }
  const int* formats() const { return formats_.data(); }

 private:
  void add_null();
  void add_text(std::string text);
  void add_binary(std::string bytes);

  std::deque<std::string> owned_;
  std::vector<const char*> values_;
  std::vector<int> lengths_;
  std::vector<int> formats_;
};

}  // namespace once
