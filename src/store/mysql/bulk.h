// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mysql.h>
#include <once/sql.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/mysql/error.h"
#include "store/sql/kept_values.h"

namespace once {

// The types of the parameters of rows that can be sent together. A null fits every type. A decimal
// fits none: how many digits a result has depends on those of the number itself.
class RowTypes {
 public:
  explicit RowTypes(std::size_t columns) : types_(columns, null) {}
  // False: the row is left out.
  bool take(std::span<const Value> row);
  enum_field_types of(std::size_t column) const;

 private:
  static constexpr std::size_t null = 0;
  std::vector<std::size_t> types_;  // as in Value::Variant
};

// A statement that the server has prepared and runs for many rows in one round trip, one after the
// other. MariaDB has this, MySQL has not. Used by the owner of the connection.
class BulkStatement {
 public:
  static bool is_known_to(MYSQL& connection);
  // Null: the server cannot run this one so.
  static std::unique_ptr<BulkStatement> prepare(MYSQL& connection, const std::string& statement);
  BulkStatement(const BulkStatement&) = delete;
  BulkStatement& operator=(const BulkStatement&) = delete;
  ~BulkStatement() { mysql_stmt_close(handle_); }

  // `values` row by row, all of the same types. Answers how many rows they touched together; unset:
  // one of them failed, those behind it were not run, and nobody says which it was.
  std::optional<std::int64_t> run(std::span<const Value> values, std::size_t rows);
  MysqlFailure failure() const {
    return {mysql_stmt_errno(handle_), mysql_stmt_sqlstate(handle_), mysql_stmt_error(handle_)};
  }

 private:
  explicit BulkStatement(MYSQL_STMT* handle) : handle_(handle) {}

  MYSQL_STMT* handle_;
};

}  // namespace once
