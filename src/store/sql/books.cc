// SPDX-License-Identifier: Apache-2.0
#include "store/sql/books.h"

#include <fmt/format.h>

#include "model/ledger.h"

namespace once {

Result<std::unique_ptr<SqlAnswer>> SqlBooks::ask(std::string_view statement,
                                                 std::initializer_list<Value> values) {
  return read([&](SqlSession& session) { return session.ask(statement, values); });
}

Result<std::int64_t> SqlBooks::now_ms(SqlSession& session) const {
  const auto answer = ONCE_TRY(session.ask(fmt::format("SELECT {}", words_.now_ms)));
  return answer->number(0, 0) + skew_ms();
}

Status SqlBooks::log_operation(SqlSession& session, std::int64_t scope, std::string_view action,
                               std::string_view subject, std::string_view reason) const {
  return session.send(
      fmt::format("INSERT INTO once_operation (scope, at_ms, action, subject, reason) "
                  "VALUES (?, {}, ?, ?, ?)",
                  words_.now_ms),
      {scope, words_.name(action), Blob{subject}, words_.name(reason)});
}

// The select is nested because MySQL deletes from no table that the statement reads itself.
Status SqlBooks::trim_operations(SqlSession& session, std::int64_t scope) {
  return session.send(
      "DELETE FROM once_operation WHERE scope = ? AND number <= (SELECT number FROM "
      "(SELECT number FROM once_operation WHERE scope = ? ORDER BY number DESC LIMIT 1 OFFSET ?) "
      "AS oldest)",
      {scope, scope, operations_max});
}

// A fence that is not ours may be that of another database.
Error SqlBooks::fenced(std::string_view scope, std::string_view partition, const Position& from,
                       const Position& actual) {
  forget_numbers();
  return fenced_error(scope, partition, from, actual);
}

}  // namespace once
