// SPDX-License-Identifier: Apache-2.0
// Which tables a statement reaches, and whether they survive what the ledger survives.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "store/postgres/postgres.h"
#include "store/postgres/schema.h"
#include "store/postgres/set_update.h"

namespace once {
namespace {

// Triggers may write tables that have triggers, and functions may call others.
constexpr int rounds_max = 16;

// From names to tables, to their partitions and to what views and rules stand on. Answers those
// that are a problem, and the bodies of the functions that are called: by name, by aggregates, by
// triggers, by the defaults of columns, and by the checks of tables and of domains of columns. A
// body is behind the search path that its function sets for itself.
constexpr std::string_view reached_sql =
    "WITH RECURSIVE reached (oid) AS (SELECT to_regclass(name)::oid FROM unnest(?::text[]) AS name "
    "UNION SELECT next.oid FROM reached AS r CROSS JOIN LATERAL ("
    "SELECT inhrelid FROM pg_inherits WHERE inhparent = r.oid UNION ALL "
    "SELECT d.refobjid FROM pg_rewrite AS w JOIN pg_depend AS d "
    "ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid "
    "AND d.refclassid = 'pg_class'::regclass WHERE w.ev_class = r.oid) AS next (oid)), "
    "called (oid) AS (SELECT p.oid FROM unnest(?::text[], ?::text[]) AS n (schema, name) "
    "JOIN pg_proc AS p ON p.proname = n.name JOIN pg_namespace AS s ON s.oid = p.pronamespace "
    "WHERE CASE n.schema WHEN '' THEN pg_function_is_visible(p.oid) ELSE s.nspname = n.schema END "
    "UNION SELECT g.tgfoid FROM reached AS r JOIN pg_trigger AS g ON g.tgrelid = r.oid "
    "AND NOT g.tgisinternal "
    "UNION SELECT d.refobjid FROM reached AS r JOIN pg_attrdef AS a ON a.adrelid = r.oid "
    "JOIN pg_depend AS d ON d.classid = 'pg_attrdef'::regclass AND d.objid = a.oid "
    "AND d.refclassid = 'pg_proc'::regclass "
    "UNION SELECT d.refobjid FROM reached AS r JOIN pg_constraint AS k ON k.conrelid = r.oid "
    "OR k.contypid IN (SELECT a.atttypid FROM pg_attribute AS a WHERE a.attrelid = r.oid) "
    "JOIN pg_depend AS d ON d.classid = 'pg_constraint'::regclass AND d.objid = k.oid "
    "AND d.refclassid = 'pg_proc'::regclass), "
    "run (oid) AS (SELECT oid FROM called UNION SELECT f.oid FROM called AS c "
    "JOIN pg_aggregate AS a ON a.aggfnoid = c.oid CROSS JOIN LATERAL (VALUES "
    "(a.aggtransfn::oid), (a.aggfinalfn), (a.aggcombinefn), (a.aggmtransfn), (a.aggminvtransfn), "
    "(a.aggmfinalfn)) AS f (oid)) "
    "SELECT c.relpersistence::text || c.relkind::text, c.oid::regclass::text, '' "
    "FROM reached AS r JOIN pg_class AS c ON c.oid = r.oid "
    "WHERE c.relkind = 'f' OR (c.relpersistence = 'u' AND c.relkind IN ('r', 'p')) UNION ALL "
    "SELECT 'body', CASE p.prosrc WHEN '' THEN pg_get_functiondef(p.oid) ELSE p.prosrc END, "
    "coalesce((SELECT split_part(setting, '=', 2) FROM unnest(p.proconfig) AS setting "
    "WHERE setting LIKE 'search_path=%'), '') "
    "FROM run AS f JOIN pg_proc AS p ON p.oid = f.oid JOIN pg_language AS l ON l.oid = "
    "p.prolang "
    "WHERE l.lanname IN ('sql', 'plpgsql') AND p.pronamespace <> 'pg_catalog'::regnamespace";

// Names that wait for the server to say what they are.
class Due {
 public:
  explicit Due(const std::vector<SqlName>& names) {
    for (const SqlName& name : names) add(name);
  }
  bool is_empty() const { return tables_.empty() && routines_.empty(); }

  // Those in the body of a function. With a search path of its own, names without a schema are
  // found there and nowhere else.
  void add_body(std::string_view body, std::string_view search_path) {
    for (const SqlName& name : written_tables(body, postgres_syntax)) {
      if (search_path.empty() || name.path.size() > 1)
        add(name);
      else
        for (const std::string& schema : schemas_in(search_path)) add(within(schema, name));
    }
  }

  // The parameters of `reached_sql`: tables, schemas of routines and their names.
  std::array<std::string, 3> take() {
    const std::vector<Value> tables(tables_.begin(), tables_.end());
    std::vector<Value> schemas, names;
    for (const auto& path : routines_) {
      schemas.emplace_back(path.size() > 1 ? std::string_view(path.front()) : "");
      names.emplace_back(path.back());
    }
    std::array<std::string, 3> made{array_literal(tables), array_literal(schemas),
                                    array_literal(names)};
    tables_.clear();
    routines_.clear();
    return made;
  }

 private:
  void add(const SqlName& name) {
    if (!seen_.emplace(name.path, name.is_routine).second) return;
    if (name.is_routine)
      routines_.push_back(name.path);
    else
      tables_.push_back(name.text);
  }

  // As they stand in the setting, where the server has quoted what has to be.
  static std::vector<std::string> schemas_in(std::string_view search_path) {
    std::vector<std::string> schemas;
    while (!search_path.empty()) {
      const std::size_t comma = std::min(search_path.find(", "), search_path.size());
      schemas.emplace_back(search_path.substr(0, comma));
      search_path.remove_prefix(std::min(search_path.size(), comma + 2));
    }
    return schemas;
  }

  static SqlName within(const std::string& schema, const SqlName& name) {
    const bool is_quoted = schema.starts_with('"') && schema.size() >= 2;
    SqlName made = name;
    made.text = schema + "." + name.text;
    made.path.insert(made.path.begin(), is_quoted ? schema.substr(1, schema.size() - 2) : schema);
    return made;
  }

  std::vector<std::string> tables_;
  std::vector<std::vector<std::string>> routines_;
  std::set<std::pair<std::vector<std::string>, bool>> seen_;
};

}  // namespace

Status PostgresStore::check_own_tables(PgConnection& connection) {
  std::vector<SqlName> names;
  for (const std::string& name : postgres_own_tables())
    names.push_back({.text = name, .path = {name}});
  const std::string why = ONCE_TRY(untransactional(connection, names));
  return why.empty() ? Status() : Status(fail(Remedy::stop, "unsafe", where() + ": " + why));
}

Result<std::string> PostgresStore::untransactional(SqlConnection& connection,
                                                   const std::vector<SqlName>& names) {
  Due due(names);
  for (int round = 0; round < rounds_max && !due.is_empty(); ++round) {
    const auto [tables, schemas, routines] = due.take();
    const auto found = ONCE_TRY(connection.ask(reached_sql, {tables, schemas, routines}));
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
      due.add_body(text, found->bytes(row, 2));
    }
  }
  return std::string();
}

}  // namespace once
