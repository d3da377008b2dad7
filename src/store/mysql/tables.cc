// SPDX-License-Identifier: Apache-2.0
// Which tables a statement reaches, and whether their engines have transactions.
#include <fmt/format.h>

#include <deque>
#include <set>
#include <utility>

#include "store/mysql/mysql.h"

namespace once {
namespace {

constexpr std::size_t names_max = 1000;

constexpr std::string_view table_sql =
    "SELECT t.TABLE_TYPE, t.ENGINE, (SELECT e.TRANSACTIONS FROM information_schema.ENGINES AS e "
    "WHERE e.ENGINE = t.ENGINE) FROM information_schema.TABLES AS t "
    "WHERE t.TABLE_SCHEMA = coalesce(?, DATABASE()) AND t.TABLE_NAME = ? "
    "AND t.TABLE_TYPE <> 'SEQUENCE'";

constexpr std::string_view view_sql =
    "SELECT VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_SCHEMA = "
    "coalesce(?, DATABASE()) AND TABLE_NAME = ?";

constexpr std::string_view triggers_sql =
    "SELECT ACTION_STATEMENT FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = "
    "coalesce(?, DATABASE()) AND EVENT_OBJECT_TABLE = ?";

constexpr std::string_view routine_sql =
    "SELECT ROUTINE_DEFINITION FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = "
    "coalesce(?, DATABASE()) AND ROUTINE_NAME = ? AND ROUTINE_DEFINITION IS NOT NULL";

// Tables, and what stands behind them: views, triggers, procedures and functions.
class Search {
 public:
  Search(SqlConnection& connection, const std::vector<SqlName>& names)
      : connection_(connection), due_(names.begin(), names.end()) {}

  Result<std::string> run() {
    while (!due_.empty()) {
      const SqlName name = std::move(due_.front());
      due_.pop_front();
      if (!seen_.insert({name.path, name.is_routine}).second || seen_.size() > names_max) continue;
      if (name.is_routine) {
        ONCE_TRY(follow(routine_sql, name));
        continue;
      }
      std::string why = ONCE_TRY(look_at(name));
      if (!why.empty()) return why;
      ONCE_TRY(follow(triggers_sql, name));
    }
    return std::string();
  }

 private:
  Result<std::unique_ptr<SqlAnswer>> ask(std::string_view statement, const SqlName& name) {
    const bool has_schema = name.path.size() == 2;
    return connection_.ask(statement, {has_schema ? Value(name.path.front()) : Value(nullptr),
                                       Value(name.path.back())});
  }

  Result<std::string> look_at(const SqlName& name) {
    const auto found = ONCE_TRY(ask(table_sql, name));
    if (found->rows() == 0) return std::string();  // a column, an alias, a temporary table
    if (found->bytes(0, 0) == "VIEW") {
      ONCE_TRY(look_behind(name));
      return std::string();
    }
    if (found->is_null(0, 1) || found->bytes(0, 2) == "YES") return std::string();
    return fmt::format(
        "the table {} has the engine {}, which has no transactions: what is rolled back would stay "
        "in it; ALTER TABLE {} ENGINE = InnoDB",
        name.text, found->bytes(0, 1), name.text);
  }

  // All names in a view but those of its columns: some of them are its tables.
  Status look_behind(const SqlName& view) {
    const auto found = ONCE_TRY(ask(view_sql, view));
    for (int row = 0; row < found->rows(); ++row)
      add(written_tables("DELETE FROM " + after_from(found->bytes(row, 0)), mysql_syntax), view);
    return {};
  }

  static std::string after_from(const std::string& view) {
    const std::size_t from = view.find(" from ");
    return from == std::string::npos ? std::string() : view.substr(from + 6);
  }

  Status follow(std::string_view statement, const SqlName& name) {
    const auto found = ONCE_TRY(ask(statement, name));
    for (int row = 0; row < found->rows(); ++row)
      add(written_tables(found->bytes(row, 0), mysql_syntax), name);
    return {};
  }

  // Names without a schema are those of the schema in which they were found.
  void add(std::vector<SqlName> names, const SqlName& from) {
    for (SqlName& name : names) {
      if (name.path.size() == 1 && from.path.size() == 2)
        name.path.insert(name.path.begin(), from.path.front());
      due_.push_back(std::move(name));
    }
  }

  SqlConnection& connection_;
  std::deque<SqlName> due_;
  std::set<std::pair<std::vector<std::string>, bool>> seen_;
};

}  // namespace

Status MysqlStore::check_own_tables(SqlConnection& connection) const {
  const auto found = ONCE_TRY(connection.ask(
      "SELECT TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() "
      "AND TABLE_NAME LIKE 'once\\_%' AND TABLE_TYPE = 'BASE TABLE' AND ENGINE <> 'InnoDB'"));
  if (found->rows() == 0) return {};
  return fail(Remedy::stop, "unsafe",
              fmt::format("{0}: the table {1} has the engine {2}, and Once makes it with InnoDB; "
                          "ALTER TABLE {1} ENGINE = InnoDB",
                          where(), found->bytes(0, 0), found->bytes(0, 1)));
}

Result<std::string> MysqlStore::untransactional(SqlConnection& connection,
                                                const std::vector<SqlName>& names) {
  return Search(connection, names).run();
}

}  // namespace once
