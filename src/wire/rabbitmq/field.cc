// SPDX-License-Identifier: Apache-2.0
#include "wire/rabbitmq/field.h"

#include <fmt/format.h>

#include <limits>

#include "model/json_text.h"

namespace once::rabbitmq {
namespace {

// What a broker sends is nested as deep as a frame allows.
constexpr int depth_max = 16;

std::string json_of(const amqp_field_value_t& value, int depth);

std::string json_of(const amqp_table_t& table, int depth) {
  std::string json = "{";
  for (int i = 0; i < table.num_entries; ++i) {
    if (i > 0) json += ", ";
    append_json_text(json, view_of_bytes(table.entries[i].key));
    json += ": ";
    json += json_of(table.entries[i].value, depth + 1);
  }
  json += "}";
  return json;
}

std::string json_of(const amqp_array_t& array, int depth) {
  std::string json = "[";
  for (int i = 0; i < array.num_entries; ++i) {
    if (i > 0) json += ", ";
    json += json_of(array.entries[i], depth + 1);
  }
  json += "]";
  return json;
}

std::string decimal_of(const amqp_decimal_t& decimal) {
  const std::string digits = fmt::format("{:0>{}}", decimal.value, decimal.decimals + 1);
  if (decimal.decimals == 0) return digits;
  const std::string_view all = digits;
  const std::size_t whole = all.size() - decimal.decimals;
  return fmt::format("{}.{}", all.substr(0, whole), all.substr(whole));
}

bool is_text(const amqp_field_value_t& value) {
  return value.kind == AMQP_FIELD_KIND_UTF8 || value.kind == AMQP_FIELD_KIND_BYTES;
}

std::string json_of(const amqp_field_value_t& value, int depth) {
  if (depth > depth_max) return "null";
  if (value.kind == AMQP_FIELD_KIND_TABLE) return json_of(value.value.table, depth);
  if (value.kind == AMQP_FIELD_KIND_ARRAY) return json_of(value.value.array, depth);
  if (!is_text(value)) return text_of(value).value_or("null");
  std::string json;
  append_json_text(json, view_of_bytes(value.value.bytes));
  return json;
}

}  // namespace

std::optional<std::int64_t> number_of(const amqp_field_value_t& value) {
  switch (value.kind) {
    case AMQP_FIELD_KIND_I8: return value.value.i8;
    case AMQP_FIELD_KIND_U8: return value.value.u8;
    case AMQP_FIELD_KIND_I16: return value.value.i16;
    case AMQP_FIELD_KIND_U16: return value.value.u16;
    case AMQP_FIELD_KIND_I32: return value.value.i32;
    case AMQP_FIELD_KIND_U32: return value.value.u32;
    case AMQP_FIELD_KIND_I64: return value.value.i64;
    case AMQP_FIELD_KIND_U64:
    case AMQP_FIELD_KIND_TIMESTAMP:
      if (value.value.u64 > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
      return static_cast<std::int64_t>(value.value.u64);
    default: return std::nullopt;
  }
}

std::optional<std::string> text_of(const amqp_field_value_t& value) {
  if (const auto number = number_of(value)) return fmt::format("{}", *number);
  switch (value.kind) {
    case AMQP_FIELD_KIND_UTF8:
    case AMQP_FIELD_KIND_BYTES: return std::string(view_of_bytes(value.value.bytes));
    case AMQP_FIELD_KIND_BOOLEAN: return value.value.boolean != 0 ? "true" : "false";
    case AMQP_FIELD_KIND_U64:
    case AMQP_FIELD_KIND_TIMESTAMP: return fmt::format("{}", value.value.u64);
    case AMQP_FIELD_KIND_F32: return fmt::format("{}", value.value.f32);
    case AMQP_FIELD_KIND_F64: return fmt::format("{}", value.value.f64);
    case AMQP_FIELD_KIND_DECIMAL: return decimal_of(value.value.decimal);
    case AMQP_FIELD_KIND_TABLE:
    case AMQP_FIELD_KIND_ARRAY: return json_of(value, 0);
    default: return std::nullopt;
  }
}

amqp_field_value_t& Table::add(std::string_view name, amqp_field_value_kind_t kind,
                               std::size_t bytes) {
  amqp_table_entry_t& entry = entries_.emplace_back();
  entry.key = bytes_of(name);
  entry.value.kind = static_cast<std::uint8_t>(kind);
  bytes_ += 1 + name.size() + 1 + bytes;
  return entry.value;
}

void Table::add_text(std::string_view name, std::string_view text) {
  add(name, AMQP_FIELD_KIND_UTF8, 4 + text.size()).value.bytes = bytes_of(text);
}
void Table::add_void(std::string_view name) { add(name, AMQP_FIELD_KIND_VOID, 0); }
void Table::add_number(std::string_view name, std::int64_t number) {
  add(name, AMQP_FIELD_KIND_I64, 8).value.i64 = number;
}
void Table::add_flag(std::string_view name, bool flag) {
  add(name, AMQP_FIELD_KIND_BOOLEAN, 1).value.boolean = flag ? 1 : 0;
}
void Table::add_table(std::string_view name, Table& table) {
  add(name, AMQP_FIELD_KIND_TABLE, table.bytes()).value.table = table.get();
}

amqp_table_t Table::get() { return {static_cast<int>(entries_.size()), entries_.data()}; }

}  // namespace once::rabbitmq
