// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <amqp.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace once::rabbitmq {

inline std::string_view view_of_bytes(amqp_bytes_t bytes) {
  return {static_cast<const char*>(bytes.bytes), bytes.len};
}
// Refers to the text.
inline amqp_bytes_t bytes_of(std::string_view text) {
  // librabbitmq never writes through it.
  return {text.size(), const_cast<char*>(text.data())};
}

// A value of a table as a text: numbers and booleans as in JSON, tables and arrays as JSON. Unset:
// the value is void.
std::optional<std::string> text_of(const amqp_field_value_t& value);
// A whole number, whatever its type; unset for anything else.
std::optional<std::int64_t> number_of(const amqp_field_value_t& value);

// A table to send. It refers to names and texts, which outlive it.
class Table {
 public:
  void add_text(std::string_view name, std::string_view text);
  void add_void(std::string_view name);
  void add_number(std::string_view name, std::int64_t number);
  void add_flag(std::string_view name, bool flag);
  void add_table(std::string_view name, Table& table);

  bool empty() const { return entries_.empty(); }
  // Refers to this.
  amqp_table_t get();
  // How many bytes it has in a frame, at most.
  std::size_t bytes() const { return bytes_; }

 private:
  amqp_field_value_t& add(std::string_view name, amqp_field_value_kind_t kind, std::size_t bytes);

  std::vector<amqp_table_entry_t> entries_;
  std::size_t bytes_ = 4;
};

}  // namespace once::rabbitmq
