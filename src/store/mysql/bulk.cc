// SPDX-License-Identifier: Apache-2.0
#include "store/mysql/bulk.h"

#include <variant>

#include "base/assert.h"

namespace once {
namespace {

// One parameter of all rows, as the library wants it.
struct Column {
  std::vector<std::int64_t> integers = {};
  std::vector<double> numbers = {};
  std::vector<const char*> texts = {};
  std::vector<unsigned long> lengths = {};
  std::vector<char> indicators = {};
  MYSQL_BIND bind{};

  void add(const Value& value) {
    const auto& variant = value.variant();
    const bool is_null = std::holds_alternative<std::nullptr_t>(variant);
    indicators.push_back(is_null ? STMT_INDICATOR_NULL : STMT_INDICATOR_NONE);
    switch (bind.buffer_type) {
      case MYSQL_TYPE_LONGLONG:
        integers.push_back(is_null ? 0 : std::get<std::int64_t>(variant));
        break;
      case MYSQL_TYPE_DOUBLE: numbers.push_back(is_null ? 0 : std::get<double>(variant)); break;
      default:
        // A null pointer would be taken for a null.
        texts.push_back(bytes_of(value).empty() ? "" : bytes_of(value).data());
        lengths.push_back(bytes_of(value).size());
    }
  }

  const MYSQL_BIND& finished() {
    bind.u.indicator = indicators.data();
    if (bind.buffer_type == MYSQL_TYPE_LONGLONG)
      bind.buffer = integers.data();
    else if (bind.buffer_type == MYSQL_TYPE_DOUBLE)
      bind.buffer = numbers.data();
    else
      bind.buffer = texts.data();
    bind.length = lengths.empty() ? nullptr : lengths.data();
    return bind;
  }
};

}  // namespace

bool RowTypes::take(std::span<const Value> row) {
  for (std::size_t i = 0; i < types_.size(); ++i) {
    if (std::holds_alternative<Decimal>(row[i].variant())) return false;
    const std::size_t type = row[i].variant().index();
    if (type != null && types_[i] != null && types_[i] != type) return false;
  }
  for (std::size_t i = 0; i < types_.size(); ++i)
    if (types_[i] == null) types_[i] = row[i].variant().index();
  return true;
}

enum_field_types RowTypes::of(std::size_t column) const {
  constexpr enum_field_types types[] = {MYSQL_TYPE_STRING, MYSQL_TYPE_LONGLONG,
                                        MYSQL_TYPE_DOUBLE, MYSQL_TYPE_STRING,
                                        MYSQL_TYPE_BLOB,   MYSQL_TYPE_NEWDECIMAL};
  static_assert(std::variant_size_v<Value::Variant> == std::size(types));
  return types[types_[column]];
}

bool BulkStatement::is_known_to(MYSQL& connection) {
  unsigned long capabilities = 0;
  if (mariadb_get_infov(&connection, MARIADB_CONNECTION_EXTENDED_SERVER_CAPABILITIES,
                        &capabilities) != 0)
    return false;
  const bool is_mysql = (connection.server_capabilities & CLIENT_MYSQL) != 0;
  return !is_mysql && (capabilities & (MARIADB_CLIENT_STMT_BULK_OPERATIONS >> 32)) != 0;
}

std::unique_ptr<BulkStatement> BulkStatement::prepare(MYSQL& connection,
                                                      const std::string& statement) {
  std::unique_ptr<BulkStatement> made(new BulkStatement(mysql_stmt_init(&connection)));
  if (made->handle_ == nullptr ||
      mysql_stmt_prepare(made->handle_, statement.data(), statement.size()) != 0 ||
      mysql_stmt_field_count(made->handle_) != 0 || mysql_stmt_param_count(made->handle_) == 0)
    return nullptr;
  return made;
}

std::optional<std::int64_t> BulkStatement::run(std::span<const Value> values, std::size_t rows) {
  const std::size_t count = values.size() / rows;
  RowTypes types(count);
  for (std::size_t row = 0; row < rows; ++row)
    ONCE_ASSERT(types.take(values.subspan(row * count, count)));
  std::vector<Column> columns(count);
  std::vector<MYSQL_BIND> binds;
  for (std::size_t i = 0; i < count; ++i) {
    columns[i].bind.buffer_type = types.of(i);
    for (std::size_t row = 0; row < rows; ++row) columns[i].add(values[row * count + i]);
    binds.push_back(columns[i].finished());
  }
  const auto size = static_cast<unsigned>(rows);
  mysql_stmt_attr_set(handle_, STMT_ATTR_ARRAY_SIZE, &size);
  if (mysql_stmt_bind_param(handle_, binds.data()) != 0 || mysql_stmt_execute(handle_) != 0)
    return std::nullopt;
  return static_cast<std::int64_t>(mysql_stmt_affected_rows(handle_));
}

}  // namespace once
