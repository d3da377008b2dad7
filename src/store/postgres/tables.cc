// SPDX-License-Identifier: Apache-2.0
// Which tables a statement reaches, and whether they survive what the ledger survives.
#include <fmt/format.h>

#include "store/postgres/postgres.h"
#include "store/postgres/set_update.h"

namespace once {
namespace {

// Triggers may write tables that have triggers.
constexpr int rounds_max = 8;

// From names to tables, to their partitions and to what views and rules stand on. Answers those
// that are a problem, and the bodies of the functions of all triggers.
constexpr std::string_view reached_sql =
    "WITH RECURSIVE reached (oid) AS (SELECT to_regclass(name)::oid FROM unnest(?::text[]) AS name "
    "UNION SELECT next.oid FROM reached AS r CROSS JOIN LATERAL ("
    "SELECT inhrelid FROM pg_inherits WHERE inhparent = r.oid UNION ALL "
    "SELECT d.refobjid FROM pg_rewrite AS w JOIN pg_depend AS d "
    "ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid "
    "AND d.refclassid = 'pg_class'::regclass WHERE w.ev_class = r.oid) AS next (oid)) "
    "SELECT c.relpersistence::text || c.relkind::text, c.oid::regclass::text "
    "FROM reached AS r JOIN pg_class AS c ON c.oid = r.oid "
    "WHERE c.relkind = 'f' OR (c.relpersistence = 'u' AND c.relkind IN ('r', 'p')) UNION ALL "
    "SELECT 'body', p.prosrc FROM reached AS r JOIN pg_trigger AS g ON g.tgrelid = r.oid "
    "AND NOT g.tgisinternal JOIN pg_proc AS p ON p.oid = g.tgfoid";

}  // namespace

Status PostgresStore::check_own_tables(PgConnection& connection) {
  std::vector<SqlName> names;
  for (const char* name :
       {"once_schema", "once_name", "once_ledger", "once_position", "once_horizon", "once_outbox",
        "once_route", "once_parked", "once_operation", "once_counter", "once_claim"})
    names.push_back({.text = name, .path = {name}});
  const std::string why = ONCE_TRY(untransactional(connection, names));
  return why.empty() ? Status() : Status(fail(Remedy::stop, "unsafe", where() + ": " + why));
}

Result<std::string> PostgresStore::untransactional(SqlConnection& connection,
                                                   const std::vector<SqlName>& names) {
  std::vector<SqlName> due = names;
  for (int round = 0; round < rounds_max && !due.empty(); ++round) {
    std::vector<Value> texts;
    for (const SqlName& name : due)
      if (!name.is_routine) texts.emplace_back(name.text);
    const auto found = ONCE_TRY(connection.ask(reached_sql, {array_literal(texts)}));
    due.clear();
    for (int row = 0; row < found->rows(); ++row) {
      const std::string kind = found->bytes(row, 0);
      const std::string text = found->bytes(row, 1);
      if (kind.ends_with('f'))
        return fmt::format(
            "{} is a foreign table, which another server commits by itself; write "
            "it with a keyed effect (docs/claims.md)",
            text);
      if (kind != "body")
        return fmt::format(
            "the table {} is UNLOGGED: a crash of the server empties it, and the "
            "ledger stays; ALTER TABLE {} SET LOGGED",
            text, text);
      for (SqlName& name : written_tables(text, postgres_syntax)) due.push_back(std::move(name));
    }
  }
  return std::string();
}

}  // namespace once
