// SPDX-License-Identifier: Apache-2.0
// Equal writes whose rows somebody counts. An update that finds its row by a unique key is run for
// many rows of values at once: if as many rows were changed as there were values, each changed one.
// If not, or if it is anything else, a block runs it row by row and counts.
#include <algorithm>
#include <map>
#include <utility>

#include "base/assert.h"
#include "store/mysql/connection.h"
#include "store/mysql/loop.h"
#include "store/mysql/set_update.h"

namespace once {
namespace {

// Who may not see the triggers of a table cannot know that there are none.
constexpr std::string_view table_sql =
    "SELECT (SELECT count(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? "
    "AND TABLE_NAME = ? AND TABLE_TYPE = 'BASE TABLE' AND ENGINE = 'InnoDB') = 1 "
    "AND NOT EXISTS (SELECT * FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = ? "
    "AND EVENT_OBJECT_TABLE = ?) "
    "AND (EXISTS (SELECT * FROM information_schema.USER_PRIVILEGES "
    "WHERE PRIVILEGE_TYPE = 'TRIGGER' AND GRANTEE = ?) "
    "OR EXISTS (SELECT * FROM information_schema.SCHEMA_PRIVILEGES "
    "WHERE PRIVILEGE_TYPE = 'TRIGGER' AND GRANTEE = ? AND ? LIKE TABLE_SCHEMA) "
    "OR EXISTS (SELECT * FROM information_schema.TABLE_PRIVILEGES "
    "WHERE PRIVILEGE_TYPE = 'TRIGGER' AND GRANTEE = ? AND TABLE_SCHEMA = ? AND TABLE_NAME = ?))";

constexpr std::string_view here_sql =
    "SELECT DATABASE(), CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), '''')";

// Columns that follow others are a reason not to touch the table.
constexpr std::string_view columns_sql =
    "SELECT LOWER(COLUMN_NAME), DATA_TYPE, IS_GENERATED = 'ALWAYS' OR EXTRA LIKE '%on update%' "
    "FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?";

constexpr std::string_view indexes_sql =
    "SELECT INDEX_NAME, LOWER(COLUMN_NAME), NON_UNIQUE FROM information_schema.STATISTICS "
    "WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?";

bool is_integer(std::string_view type) {
  return type == "tinyint" || type == "smallint" || type == "mediumint" || type == "int" ||
         type == "bigint";
}

bool is_number(std::string_view type) {
  return is_integer(type) || type == "decimal" || type == "float" || type == "double";
}

// The types of columns by name; none if some of them follow others.
std::map<std::string, std::string> types_in(const SqlAnswer& columns) {
  std::map<std::string, std::string> types;
  for (int row = 0; row < columns.rows(); ++row) {
    if (columns.number(row, 2) != 0) return {};
    types.emplace(columns.bytes(row, 0), columns.bytes(row, 1));
  }
  return types;
}

// Whatever is not a number is compared and converted by other rules if it comes from a table.
bool are_known(const KeyedUpdate& update, const std::map<std::string, std::string>& types) {
  const auto is_number_here = [&](const std::string& name) {
    const auto found = types.find(name);
    return found != types.end() && is_number(found->second);
  };
  return std::all_of(update.read.begin(), update.read.end(), is_number_here) &&
         std::all_of(update.computed.begin(), update.computed.end(), is_number_here) &&
         std::all_of(update.assigned.begin(), update.assigned.end(),
                     [&](const std::string& name) { return types.contains(name); });
}

// The columns of each index. A column that is assigned must be in none: in which order the rows of
// a unique one are changed matters, and others may be what a foreign key refers to.
std::optional<std::set<std::string>> unique_columns(const SqlAnswer& indexes,
                                                    const KeyedUpdate& update) {
  std::map<std::string, std::set<std::string>> unique;
  for (int row = 0; row < indexes.rows(); ++row) {
    if (update.assigned.contains(indexes.bytes(row, 1))) return std::nullopt;
    if (indexes.number(row, 2) == 0) unique[indexes.bytes(row, 0)].insert(indexes.bytes(row, 1));
  }
  std::set<std::string> alone;
  for (const auto& [name, columns] : unique)
    if (columns.size() == 1) alone.insert(*columns.begin());
  return alone;
}

}  // namespace

MysqlConnection::EqualRows::EqualRows(std::span<const Pending> pending)
    : statement(pending.front().statement), types(pending.front().values.values().size()) {
  for (const Pending& one : pending) {
    rows.push_back(one.values.values());
    ONCE_ASSERT(types.take(rows.back()));
  }
}

std::optional<Error> MysqlConnection::run_counted(std::span<const Pending> pending) {
  const EqualRows equal(pending);
  const std::string prepared = pending.front().pieces->prepared();
  auto counts = run_together(equal, prepared);
  if (counts && counts->empty()) counts = run_loop(equal, prepared);
  if (!counts) return counts.error();
  watch(SqlStage::statement, equal.statement);
  for (std::size_t i = 0; i < pending.size(); ++i)
    if (pending[i].then) remember(pending[i].then(std::make_unique<SqlCount>((*counts)[i])));
  return std::nullopt;
}

Result<MysqlConnection::Counts> MysqlConnection::run_together(const EqualRows& equal,
                                                              const std::string& prepared) {
  const SetUpdate& set = set_update(equal.statement);
  if (!set.key || !can_be_table(*set.update, equal.types)) return Counts{};
  const auto waves = cut_into_waves(equal.rows, *set.key, KeyKind::number);
  if (!waves || waves->together.empty()) return Counts{};
  Counts counts(equal.rows.size(), 1);
  Result<bool> done = true;
  for (std::size_t i = 0; i < waves->together.size() && done && *done; ++i)
    done = run_wave(*set.update, equal, waves->together[i]);
  if (done && *done && !waves->rest.empty()) {
    EqualRows rest = equal;
    rest.rows.clear();
    for (const std::size_t place : waves->rest) rest.rows.push_back(equal.rows[place]);
    const auto rest_counts = run_loop(rest, prepared);
    done = rest_counts ? Result<bool>(true) : Result<bool>(fail(rest_counts.error()));
    for (std::size_t i = 0; rest_counts && i < rest_counts->size(); ++i)
      counts[waves->rest[i]] = (*rest_counts)[i];
  }
  if (done && *done) return counts;
  // A store that is away, or a rival: nothing that another way would help with.
  if (!done && is_transient(done.error().remedy)) return fail(done.error());
  if (!command("ROLLBACK TO SAVEPOINT once_bulk"))
    return fail(error(SqlStage::statement, "ROLLBACK TO SAVEPOINT"));
  return Counts{};
}

// False: one of them did not find its row.
Result<bool> MysqlConnection::run_wave(const KeyedUpdate& update, const EqualRows& equal,
                                       std::span<const std::size_t> wave) {
  std::vector<std::span<const Value>> rows;
  for (const std::size_t place : wave) rows.push_back(equal.rows[place]);
  if (!command(once::set_update(update, equal.types, rows)))
    return fail(error(SqlStage::statement, equal.statement));
  return mysql_affected_rows(&handle_) == wave.size();
}

Result<MysqlConnection::Counts> MysqlConnection::run_loop(const EqualRows& equal,
                                                          const std::string& prepared) {
  const auto text = text_of_command(loop_block(prepared, equal.types, equal.rows));
  if (!text) return fail(error(SqlStage::statement, equal.statement));
  auto counts = counts_of_loop(*text, equal.rows.size());
  if (!counts)
    return fail(Remedy::stop, "protocol", where_ + ": a loop was answered with " + *text);
  return std::move(*counts);
}

const MysqlConnection::SetUpdate& MysqlConnection::set_update(const std::string& statement) {
  if (sets_.size() >= sets_max) sets_.clear();
  SetUpdate& set = sets_[statement];
  const auto now = std::chrono::steady_clock::now();
  if (now - set.learned_at <= learned_for) return set;
  set = {.learned_at = now, .update = keyed_update(statement, mysql_syntax)};
  if (set.update && !set.update->reads_assigned) set.key = unique_key(*set.update);
  return set;
}

// None if the table is not what we can be sure of.
std::optional<std::size_t> MysqlConnection::unique_key(const KeyedUpdate& update) {
  const auto here = answer_to(here_sql, {});
  if (here == nullptr) return std::nullopt;
  const std::string schema = update.path.size() == 2 ? update.path.front() : here->bytes(0, 0);
  const std::string grantee = here->bytes(0, 1);
  const std::string& name = update.path.back();
  const std::vector<Value> place{schema, name};
  const auto table =
      answer_to(table_sql, std::vector<Value>{schema, name, schema, name, grantee, grantee, schema,
                                              grantee, schema, name});
  const auto columns = answer_to(columns_sql, place);
  const auto indexes = answer_to(indexes_sql, place);
  // A temporary table hides another of its name, and only this tells of it.
  const auto made = answer_to("SHOW CREATE TABLE " + update.table, {});
  if (table == nullptr || columns == nullptr || indexes == nullptr || made == nullptr ||
      table->number(0, 0) != 1 || !made->bytes(0, 1).starts_with("CREATE TABLE "))
    return std::nullopt;
  const auto types = types_in(*columns);
  const auto unique = unique_columns(*indexes, update);
  if (!unique || !are_known(update, types)) return std::nullopt;
  for (const KeyedUpdate::Key& key : update.keys)
    if (unique->contains(key.column) && is_integer(types.at(key.column))) return key.parameter;
  return std::nullopt;
}

std::unique_ptr<MysqlAnswer> MysqlConnection::answer_to(std::string_view statement,
                                                        std::span<const Value> values) {
  const auto text = render(statement, values);
  if (!text || !command(*text)) return nullptr;
  MYSQL_RES* const result = mysql_store_result(&handle_);
  return result == nullptr ? nullptr : std::make_unique<MysqlAnswer>(result, 0);
}

}  // namespace once
