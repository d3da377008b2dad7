// SPDX-License-Identifier: Apache-2.0
// What the server says of a statement that it has prepared.
#include <fmt/format.h>

#include <utility>

#include "store/postgres/connection.h"

namespace once {
namespace {

// A domain is bound as the type below it.
constexpr std::string_view type_names_sql =
    "SELECT format_type(coalesce(nullif(t.typbasetype, 0), t.oid), NULL) "
    "FROM unnest(?::oid[]) WITH ORDINALITY AS p (type, place) "
    "LEFT JOIN pg_type AS t ON t.oid = p.type ORDER BY p.place";

}  // namespace

Result<std::unique_ptr<SqlAnswer>> PgConnection::ask_shape(const std::string& name,
                                                           std::string_view statement) {
  std::unique_ptr<SqlAnswer> shape;
  const auto take = [&](Result<std::unique_ptr<SqlAnswer>> answer) -> Status {
    shape = ONCE_TRY(std::move(answer));
    return {};
  };
  if (PQsendDescribePrepared(handle_, name.c_str()) != 1)
    return fail(broken(SqlStage::statement, statement));
  pending_.push_back({std::string(statement), take});
  ONCE_TRY(take_answers());
  return shape;
}

// Without a name, so that nothing is left of it; without types, as a transaction sends it.
Result<StatementShape> PgConnection::describe(std::string_view statement) {
  const StatementText numbered = number_parameters(statement);
  if (broken_ || PQsendPrepare(handle_, "", numbered.text.c_str(), 0, nullptr) != 1)
    return fail(broken(SqlStage::statement, statement));
  pending_.push_back({std::string(statement)});
  const auto answer = ONCE_TRY(ask_shape("", statement));
  const PGresult* const described = static_cast<PgAnswer&>(*answer).native();
  StatementShape shape;
  std::string types;
  const auto add = [&](Oid type) { types += fmt::format("{}{}", types.empty() ? "" : ",", type); };
  for (int i = 0; i < PQnparams(described); ++i) add(PQparamtype(described, i));
  for (int i = 0; i < PQnfields(described); ++i) add(PQftype(described, i));
  const auto names = ONCE_TRY(ask(type_names_sql, {fmt::format("{{{}}}", types)}));
  for (int row = 0; row < names->rows(); ++row)
    (row < PQnparams(described) ? shape.parameters : shape.columns).push_back(names->bytes(row, 0));
  return shape;
}

}  // namespace once
