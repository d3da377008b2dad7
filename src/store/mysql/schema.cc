// SPDX-License-Identifier: Apache-2.0
#include "store/mysql/schema.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "model/own_tables.h"

namespace once {
namespace {

// Ids, names and what messages carry are bytes: no collation makes two of them equal. Names of
// scopes, partitions and destinations are kept once; a ledger row has their numbers.
constexpr auto first_step = std::to_array<MysqlChange>({
    {"CREATE TABLE IF NOT EXISTS once_schema (version INT NOT NULL) ENGINE = InnoDB"},
    {"CREATE TABLE IF NOT EXISTS once_name (number INT NOT NULL AUTO_INCREMENT PRIMARY KEY, "
     "name VARBINARY(255) NOT NULL UNIQUE) ENGINE = InnoDB"},
    {"CREATE TABLE IF NOT EXISTS once_ledger (scope INT NOT NULL, id VARBINARY(1025) NOT NULL, "
     "born_ms BIGINT NOT NULL, recorded_ms BIGINT NOT NULL, at_offset BIGINT NOT NULL, "
     "source_partition INT NOT NULL, outcome TINYINT NOT NULL, admitted_by BIGINT NOT NULL, "
     "fingerprint VARBINARY(17), result LONGBLOB, PRIMARY KEY (scope, id), "
     "KEY once_ledger_born (scope, born_ms)) ENGINE = InnoDB"},
    {"CREATE TABLE IF NOT EXISTS once_position (scope INT NOT NULL, source_partition INT NOT NULL, "
     "at_offset BIGINT NOT NULL, fence BIGINT NOT NULL, PRIMARY KEY (scope, source_partition)) "
     "ENGINE = InnoDB"},
    {"CREATE TABLE IF NOT EXISTS once_horizon (scope INT NOT NULL PRIMARY KEY, "
     "horizon_ms BIGINT NOT NULL) ENGINE = InnoDB"},
    {"CREATE TABLE IF NOT EXISTS once_outbox (number BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, "
     "destination INT NOT NULL, id VARBINARY(1024) NOT NULL, message_key LONGBLOB NOT NULL, "
     "body LONGBLOB NOT NULL, headers LONGBLOB NOT NULL, timestamp_ms BIGINT NOT NULL, "
     "target_partition BIGINT, target_sequence BIGINT, KEY once_outbox_order (destination, "
     "number)) "
     "ENGINE = InnoDB"},
    {"CREATE TABLE IF NOT EXISTS once_route (destination INT NOT NULL, "
     "target_partition BIGINT NOT NULL, next_sequence BIGINT NOT NULL, "
     "PRIMARY KEY (destination, target_partition)) ENGINE = InnoDB"},
    {"CREATE TABLE IF NOT EXISTS once_parked (number BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, "
     "scope INT NOT NULL, source_partition VARBINARY(255) NOT NULL, at_offset BIGINT NOT NULL, "
     "attempts BIGINT NOT NULL, parked_ms BIGINT NOT NULL, reason LONGBLOB NOT NULL, "
     "id VARBINARY(1024) NOT NULL, message_key LONGBLOB NOT NULL, body LONGBLOB NOT NULL, "
     "headers LONGBLOB NOT NULL, timestamp_ms BIGINT NOT NULL, "
     "KEY once_parked_order (scope, number)) ENGINE = InnoDB"},
    {"CREATE TABLE IF NOT EXISTS once_operation (number BIGINT NOT NULL AUTO_INCREMENT PRIMARY "
     "KEY, "
     "scope INT NOT NULL, at_ms BIGINT NOT NULL, action VARBINARY(64) NOT NULL, "
     "subject LONGBLOB NOT NULL, reason LONGBLOB NOT NULL, KEY once_operation_order (scope, "
     "number)) "
     "ENGINE = InnoDB"},
    {"CREATE TABLE IF NOT EXISTS once_counter (name VARCHAR(255) CHARACTER SET utf8mb4 COLLATE "
     "utf8mb4_bin NOT NULL PRIMARY KEY, last BIGINT NOT NULL) ENGINE = InnoDB"},
    {"CREATE TABLE IF NOT EXISTS once_claim (scope INT NOT NULL, id VARBINARY(1025) NOT NULL, "
     "state TINYINT NOT NULL, generation BIGINT NOT NULL, fence BIGINT NOT NULL, "
     "attempts BIGINT NOT NULL, after_loss TINYINT NOT NULL, fingerprint VARBINARY(17), "
     "born_ms BIGINT NOT NULL, changed_ms BIGINT NOT NULL, lease_until_ms BIGINT NOT NULL, "
     "owner VARBINARY(255) NOT NULL, result LONGBLOB, reason LONGBLOB NOT NULL, "
     "steps LONGBLOB NOT NULL, PRIMARY KEY (scope, id), KEY once_claim_born (scope, born_ms)) "
     "ENGINE = InnoDB"},
});

// The order of the outbox is that in which rows are sent: those with a sequence first. This
// database puts NULL first, so that a column of its own says it.
constexpr auto second_step = std::to_array<MysqlChange>({
    {"CREATE TABLE IF NOT EXISTS once_identity (number INT NOT NULL PRIMARY KEY, "
     "identity VARBINARY(255) NOT NULL) ENGINE = InnoDB"},
    {"ALTER TABLE once_position ADD COLUMN source_identity VARBINARY(255) NOT NULL DEFAULT '', "
     "ADD COLUMN settled_ms BIGINT NOT NULL DEFAULT -1, "
     "ADD COLUMN waiting_ms BIGINT NOT NULL DEFAULT -1, "
     "ADD COLUMN drained_ms BIGINT NOT NULL DEFAULT -1, "
     "ADD COLUMN witness_offset BIGINT NOT NULL DEFAULT -1, "
     "ADD COLUMN witness_digest BIGINT NOT NULL DEFAULT 0",
     "SELECT 1 FROM information_schema.columns WHERE table_schema = database() "
     "AND table_name = 'once_position' AND column_name = 'witness_digest'"},
    {"ALTER TABLE once_outbox ADD COLUMN send_order BIGINT GENERATED ALWAYS AS "
     "(coalesce(target_sequence, 9223372036854775807)) VIRTUAL",
     "SELECT 1 FROM information_schema.columns WHERE table_schema = database() "
     "AND table_name = 'once_outbox' AND column_name = 'send_order'"},
    {"ALTER TABLE once_outbox DROP KEY once_outbox_order, "
     "ADD KEY once_outbox_send_order (destination, send_order, number)",
     "SELECT 1 FROM information_schema.statistics WHERE table_schema = database() "
     "AND table_name = 'once_outbox' AND index_name = 'once_outbox_send_order'"},
});

// Messages that wait: by due time, and by key where those that come later wait behind them.
constexpr auto third_step = std::to_array<MysqlChange>({
    {"CREATE TABLE IF NOT EXISTS once_deferred (number BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, "
     "scope INT NOT NULL, source_partition VARBINARY(255) NOT NULL, at_offset BIGINT NOT NULL, "
     "attempts BIGINT NOT NULL, deferred_ms BIGINT NOT NULL, due_ms BIGINT NOT NULL, "
     "order_token VARBINARY(16), reason LONGBLOB NOT NULL, id VARBINARY(1024) NOT NULL, "
     "message_key LONGBLOB NOT NULL, body LONGBLOB NOT NULL, headers LONGBLOB NOT NULL, "
     "timestamp_ms BIGINT NOT NULL, KEY once_deferred_due (scope, due_ms, number), "
     "KEY once_deferred_order (scope, order_token, number)) ENGINE = InnoDB"},
    {"ALTER TABLE once_parked ADD KEY once_parked_id (scope, id)",
     "SELECT 1 FROM information_schema.statistics WHERE table_schema = database() "
     "AND table_name = 'once_parked' AND index_name = 'once_parked_id'"},
});

// A horizon that a person has set stays where it is.
constexpr auto fourth_step = std::to_array<MysqlChange>({
    {"ALTER TABLE once_horizon ADD COLUMN held TINYINT NOT NULL DEFAULT 0",
     "SELECT 1 FROM information_schema.columns WHERE table_schema = database() "
     "AND table_name = 'once_horizon' AND column_name = 'held'"},
});

constexpr auto steps_of_all =
    std::to_array<MysqlStep>({first_step, second_step, third_step, fourth_step});

std::vector<std::string> own_tables() {
  std::vector<std::string_view> scripts;
  for (const MysqlStep step : steps_of_all)
    for (const MysqlChange& change : step) scripts.push_back(change.statement);
  return tables_made_by(scripts);
}

Result<bool> has_schema_table(SqlConnection& connection) {
  const auto table =
      ONCE_TRY(connection.ask("SELECT 1 FROM information_schema.tables "
                              "WHERE table_schema = database() AND table_name = 'once_schema'"));
  return table->rows() > 0;
}

Result<std::size_t> version_of(SqlConnection& connection) {
  if (!ONCE_TRY(has_schema_table(connection))) return std::size_t{0};
  const auto versions = ONCE_TRY(connection.ask("SELECT max(version) FROM once_schema"));
  return versions->is_null(0, 0) ? std::size_t{0}
                                 : static_cast<std::size_t>(versions->number(0, 0));
}

Status take_step(SqlConnection& connection, MysqlStep step, std::size_t to) {
  for (const MysqlChange& change : step) {
    if (!change.made.empty() && ONCE_TRY(connection.ask(change.made))->rows() > 0) continue;
    ONCE_TRY(connection.send(change.statement));
  }
  ONCE_TRY(connection.send("INSERT IGNORE INTO once_name (name) VALUES (?)", {Blob{"once.store"}}));
  // Last: until this is there, all of it is looked at again.
  ONCE_TRY(connection.send("BEGIN"));
  const std::string reason = fmt::format("from version {} to {}", to - 1, to);
  ONCE_TRY(connection.send(
      "INSERT INTO once_operation (scope, at_ms, action, subject, reason) "
      "SELECT number, CAST(unix_timestamp(now(3)) * 1000 AS SIGNED), ?, ?, ? FROM once_name "
      "WHERE name = ?",
      {Blob{"migrate"}, Blob{"schema"}, Blob{reason}, Blob{"once.store"}}));
  ONCE_TRY(connection.send("INSERT INTO once_schema VALUES (?)", {to}));
  ONCE_TRY(connection.send("COMMIT"));
  return connection.sync();
}

}  // namespace

const std::span<const MysqlStep> mysql_schema_steps = steps_of_all;

// The table of the version is the first that is made, so that what is there without it is not ours.
Status check_no_foreign_tables(SqlConnection& connection, std::string_view where) {
  if (ONCE_TRY(has_schema_table(connection))) return {};
  const auto found = ONCE_TRY(connection.ask(
      fmt::format("SELECT table_name FROM information_schema.tables WHERE table_schema = database()"
                  " AND table_name IN ({}) ORDER BY table_name LIMIT 1",
                  quoted_names(own_tables()))));
  if (found->rows() == 0) return {};
  return fail(foreign_table_error(where, found->bytes(0, 0)));
}

Status migrate_mysql(SqlConnection& connection, std::string_view where,
                     std::span<const MysqlStep> steps) {
  // Whoever finds the newest version needs no right to change it.
  const std::size_t found = ONCE_TRY(version_of(connection));
  if (found == steps.size()) return {};
  if (found > steps.size())
    return fail(Remedy::stop, "newer",
                fmt::format("{}: the schema has version {}, this program knows up to {}; use the "
                            "newer program",
                            where, found, steps.size()));
  const auto locked = ONCE_TRY(connection.ask("SELECT get_lock('once_schema', 60)"));
  if (locked->bytes(0, 0) != "1")
    return fail(Remedy::retry, "busy", fmt::format("{}: another program makes the tables", where));
  const auto migrate = [&]() -> Status {
    ONCE_TRY(check_no_foreign_tables(connection, where));
    for (std::size_t at = ONCE_TRY(version_of(connection)); at < steps.size(); ++at)
      ONCE_TRY(take_step(connection, steps[at], at + 1));
    return {};
  };
  Status migrated = migrate();
  (void)connection.ask("SELECT release_lock('once_schema')");
  return migrated;
}

}  // namespace once
