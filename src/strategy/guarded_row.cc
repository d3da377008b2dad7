// SPDX-License-Identifier: Apache-2.0
#include "strategy/guarded_row.h"

#include <fmt/format.h>
#include <once/key_value.h>

#include <algorithm>

namespace once {
namespace {

constexpr std::size_t name_bytes_max = 63;  // PostgreSQL cuts longer ones
constexpr std::size_t columns_max = 100;

tl::unexpected<Error> refuse(std::string text) {
  return fail(Remedy::stop, "config", std::move(text));
}

Status check_names(Columns columns) {
  if (columns.size() > columns_max)
    return refuse(
        fmt::format("{} columns are too many, the limit is {}", columns.size(), columns_max));
  for (const Column& column : columns) ONCE_TRY(check_name(column.name));
  return {};
}

Status check_read(std::span<const std::string_view> columns) {
  if (columns.empty() || columns.size() > columns_max)
    return refuse(
        fmt::format("{} columns cannot be read, 1 to {} can", columns.size(), columns_max));
  for (const std::string_view column : columns) ONCE_TRY(check_name(column));
  return {};
}

// A column that is named twice would be written twice, and some databases take the last.
Status check_distinct(Columns key, Columns others) {
  std::vector<std::string_view> names;
  for (const Column& column : key) names.push_back(column.name);
  for (const Column& column : others) names.push_back(column.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return {};
  return refuse(fmt::format(
      "the column {} is named twice, or belongs to the key or to the strategy itself", *twice));
}

Status check_key(std::string_view table, Columns key) {
  if (key.size() == 0) return refuse(fmt::format("table {}: a key needs a column", table));
  for (const Column& column : key)
    if (std::holds_alternative<std::nullptr_t>(column.value.variant()))
      return fail(Remedy::park, "key",
                  fmt::format("table {}: {} is null, and null is never equal to null: such a key "
                              "could be there twice",
                              table, column.name));
  return {};
}

}  // namespace

Status check_name(std::string_view name) {
  const auto is_good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  const bool good = !name.empty() && name.size() <= name_bytes_max &&
                    !(name[0] >= '0' && name[0] <= '9') &&
                    std::all_of(name.begin(), name.end(), is_good);
  if (good) return {};
  return refuse(
      fmt::format("\"{}\" is not a name of a table or a column: use [a-z_][a-z0-9_]{{0,62}}",
                  name.substr(0, name_bytes_max + 1)));
}

Result<bool> GuardedRow::insert(Columns rest) {
  ONCE_TRY(check_names(rest));
  ONCE_TRY(check_distinct(key_, rest));
  return do_insert(rest);
}

Result<std::optional<Row>> GuardedRow::read(std::span<const std::string_view> columns,
                                            Freshness freshness) {
  ONCE_TRY(check_read(columns));
  return do_read(columns, freshness);
}

Result<LockAnswer> GuardedRow::lock(std::span<const std::string_view> columns, Row& row) {
  ONCE_TRY(check_read(columns));
  return do_lock(columns, row);
}

Result<bool> GuardedRow::update(std::span<const Condition> conditions, Columns changes) {
  ONCE_TRY(check_names(changes));
  ONCE_TRY(check_distinct(key_, changes));
  for (const Condition& condition : conditions) ONCE_TRY(check_name(condition.column));
  return do_update(conditions, changes);
}

Result<std::unique_ptr<GuardedRow>> guarded_row(Transaction& transaction, std::string_view table,
                                                Columns key) {
  ONCE_TRY(check_name(table));
  if (table.starts_with("once_"))
    return refuse(fmt::format("the table {} belongs to Once; use one of your own", table));
  ONCE_TRY(check_names(key));
  ONCE_TRY(check_distinct(key, {}));
  ONCE_TRY(check_key(table, key));
  if (SqlTransaction* sql = transaction.sql()) return sql_row(*sql, table, key);
  if (KeyValueTransaction* values = transaction.key_value())
    return key_value_row(*values, table, key);
  return refuse(fmt::format(
      "table {}: this store has neither SQL nor values under keys; strategies need one", table));
}

}  // namespace once
