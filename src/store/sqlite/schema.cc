// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/schema.h"

#include <fmt/format.h>

#include "model/compact_id.h"
#include "model/own_tables.h"
#include "model/random.h"

namespace once {

// Names of scopes, partitions and destinations are kept once; a ledger row has their numbers.
// The ledger has no index by birth: it would make every admit dearer, and forgetting works in the
// order of ids (docs/decisions/0006-forgetting-scans-the-ledger.md).
const std::array<std::string_view, 8> schema_steps = {
    R"(
CREATE TABLE once_schema (version INTEGER NOT NULL) STRICT;
INSERT INTO once_schema VALUES (1);

CREATE TABLE once_name (
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE once_ledger (
  scope INTEGER NOT NULL,
  id BLOB NOT NULL,
  fingerprint BLOB,
  born_ms INTEGER NOT NULL,
  recorded_ms INTEGER NOT NULL,
  outcome INTEGER NOT NULL,
  partition INTEGER NOT NULL,
  offset INTEGER NOT NULL,
  result BLOB,
  PRIMARY KEY (scope, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE once_position (
  scope INTEGER NOT NULL,
  partition INTEGER NOT NULL,
  offset INTEGER NOT NULL,
  fence INTEGER NOT NULL,
  PRIMARY KEY (scope, partition)
) STRICT, WITHOUT ROWID;

CREATE TABLE once_horizon (
  scope INTEGER PRIMARY KEY,
  horizon_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE once_outbox (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  destination INTEGER NOT NULL,
  id BLOB NOT NULL,
  key BLOB NOT NULL,
  body BLOB NOT NULL,
  headers BLOB NOT NULL,
  timestamp_ms INTEGER NOT NULL,
  partition INTEGER,
  sequence INTEGER
) STRICT;
CREATE INDEX once_outbox_destination ON once_outbox (destination);

CREATE TABLE once_route (
  destination INTEGER NOT NULL,
  partition INTEGER NOT NULL,
  next_sequence INTEGER NOT NULL,
  PRIMARY KEY (destination, partition)
) STRICT, WITHOUT ROWID;

CREATE TABLE once_parked (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  scope INTEGER NOT NULL,
  partition TEXT NOT NULL,
  offset INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  parked_ms INTEGER NOT NULL,
  reason TEXT NOT NULL,
  id BLOB NOT NULL,
  key BLOB NOT NULL,
  body BLOB NOT NULL,
  headers BLOB NOT NULL,
  timestamp_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX once_parked_scope ON once_parked (scope);

CREATE TABLE once_operation (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  scope INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  action TEXT NOT NULL,
  subject BLOB NOT NULL,
  reason TEXT NOT NULL
) STRICT;
CREATE INDEX once_operation_scope ON once_operation (scope);
)",
    R"(
UPDATE once_schema SET version = 2;

CREATE TABLE once_counter (
  name TEXT PRIMARY KEY,
  last INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE VIEW once_ledger_readable AS
SELECT scopes.name AS scope, CAST(id AS TEXT) AS id,
  CASE outcome WHEN 0 THEN 'applied' WHEN 1 THEN 'rejected' WHEN 4 THEN 'parked' ELSE '?' END
    AS outcome,
  CAST(result AS TEXT) AS result, partitions.name AS partition, offset,
  strftime('%Y-%m-%dT%H:%M:%fZ', born_ms / 1000.0, 'unixepoch') AS born,
  strftime('%Y-%m-%dT%H:%M:%fZ', recorded_ms / 1000.0, 'unixepoch') AS recorded,
  hex(fingerprint) AS fingerprint
FROM once_ledger
JOIN once_name AS scopes ON scopes.number = scope
JOIN once_name AS partitions ON partitions.number = partition;
)",
    R"(
UPDATE once_schema SET version = 3;
UPDATE once_ledger SET id = once_compact_id(id) WHERE id <> once_compact_id(id);

DROP VIEW once_ledger_readable;
CREATE VIEW once_ledger_readable AS
SELECT scopes.name AS scope,
  CASE substr(id, 1, 1)
    WHEN x'00' THEN CAST(substr(id, 2) AS TEXT)
    WHEN x'01' THEN lower(printf('%s-%s-%s-%s-%s', hex(substr(id, 2, 4)), hex(substr(id, 6, 2)),
      hex(substr(id, 8, 2)), hex(substr(id, 10, 2)), hex(substr(id, 12, 6))))
    ELSE CAST(id AS TEXT) END AS id,
  CASE outcome WHEN 0 THEN 'applied' WHEN 1 THEN 'rejected' WHEN 4 THEN 'parked' ELSE '?' END
    AS outcome,
  CAST(result AS TEXT) AS result, partitions.name AS partition, offset,
  strftime('%Y-%m-%dT%H:%M:%fZ', born_ms / 1000.0, 'unixepoch') AS born,
  strftime('%Y-%m-%dT%H:%M:%fZ', recorded_ms / 1000.0, 'unixepoch') AS recorded,
  hex(fingerprint) AS fingerprint
FROM once_ledger
JOIN once_name AS scopes ON scopes.number = scope
JOIN once_name AS partitions ON partitions.number = partition;
)",
    R"(
UPDATE once_schema SET version = 4;

CREATE TABLE once_claim (
  scope INTEGER NOT NULL,
  id BLOB NOT NULL,
  state INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  fence INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  after_loss INTEGER NOT NULL,
  fingerprint BLOB,
  born_ms INTEGER NOT NULL,
  changed_ms INTEGER NOT NULL,
  lease_until_ms INTEGER NOT NULL,
  owner TEXT NOT NULL,
  result BLOB,
  reason TEXT NOT NULL,
  steps BLOB NOT NULL,
  PRIMARY KEY (scope, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX once_claim_open ON once_claim (scope, id) WHERE state IN (0, 1, 2);
CREATE INDEX once_claim_settled ON once_claim (scope, born_ms) WHERE state IN (3, 4);
)",
    // The index of the outbox is the order in which rows are sent: those with a sequence first.
    R"(
UPDATE once_schema SET version = 5;

CREATE TABLE once_identity (identity TEXT NOT NULL) STRICT;

ALTER TABLE once_position ADD COLUMN source_identity BLOB NOT NULL DEFAULT x'';
ALTER TABLE once_position ADD COLUMN settled_ms INTEGER NOT NULL DEFAULT -1;
ALTER TABLE once_position ADD COLUMN waiting_ms INTEGER NOT NULL DEFAULT -1;
ALTER TABLE once_position ADD COLUMN drained_ms INTEGER NOT NULL DEFAULT -1;
ALTER TABLE once_position ADD COLUMN witness_offset INTEGER NOT NULL DEFAULT -1;
ALTER TABLE once_position ADD COLUMN witness_digest INTEGER NOT NULL DEFAULT 0;

DROP INDEX once_outbox_destination;
CREATE INDEX once_outbox_order ON once_outbox (destination, sequence);
)",
    // Messages that wait: by due time, and by key where those that come later wait behind them.
    R"(
UPDATE once_schema SET version = 6;

CREATE TABLE once_deferred (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  scope INTEGER NOT NULL,
  partition TEXT NOT NULL,
  offset INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  deferred_ms INTEGER NOT NULL,
  due_ms INTEGER NOT NULL,
  order_token BLOB,
  reason TEXT NOT NULL,
  id BLOB NOT NULL,
  key BLOB NOT NULL,
  body BLOB NOT NULL,
  headers BLOB NOT NULL,
  timestamp_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX once_deferred_due ON once_deferred (scope, due_ms);
CREATE INDEX once_deferred_order ON once_deferred (scope, order_token)
  WHERE order_token IS NOT NULL;

CREATE INDEX once_parked_id ON once_parked (scope, id);

DROP VIEW once_ledger_readable;
CREATE VIEW once_ledger_readable AS
SELECT scopes.name AS scope,
  CASE substr(id, 1, 1)
    WHEN x'00' THEN CAST(substr(id, 2) AS TEXT)
    WHEN x'01' THEN lower(printf('%s-%s-%s-%s-%s', hex(substr(id, 2, 4)), hex(substr(id, 6, 2)),
      hex(substr(id, 8, 2)), hex(substr(id, 10, 2)), hex(substr(id, 12, 6))))
    ELSE CAST(id AS TEXT) END AS id,
  CASE outcome WHEN 0 THEN 'applied' WHEN 1 THEN 'rejected' WHEN 4 THEN 'parked'
    WHEN 5 THEN 'later' ELSE '?' END AS outcome,
  CAST(result AS TEXT) AS result, partitions.name AS partition, offset,
  strftime('%Y-%m-%dT%H:%M:%fZ', born_ms / 1000.0, 'unixepoch') AS born,
  strftime('%Y-%m-%dT%H:%M:%fZ', recorded_ms / 1000.0, 'unixepoch') AS recorded,
  hex(fingerprint) AS fingerprint
FROM once_ledger
JOIN once_name AS scopes ON scopes.number = scope
JOIN once_name AS partitions ON partitions.number = partition;
)",
    // A horizon that a person has set stays where it is.
    R"(
UPDATE once_schema SET version = 7;

ALTER TABLE once_horizon ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
)",
    // The columns are called as in every other SQL store, whose statements are ours, too.
    R"(
UPDATE once_schema SET version = 8;

DROP VIEW once_ledger_readable;
ALTER TABLE once_ledger RENAME COLUMN partition TO source_partition;
ALTER TABLE once_ledger RENAME COLUMN offset TO at_offset;
ALTER TABLE once_position RENAME COLUMN partition TO source_partition;
ALTER TABLE once_position RENAME COLUMN offset TO at_offset;
ALTER TABLE once_outbox RENAME COLUMN key TO message_key;
ALTER TABLE once_outbox RENAME COLUMN partition TO target_partition;
ALTER TABLE once_outbox RENAME COLUMN sequence TO target_sequence;
ALTER TABLE once_route RENAME COLUMN partition TO target_partition;
ALTER TABLE once_parked RENAME COLUMN partition TO source_partition;
ALTER TABLE once_parked RENAME COLUMN offset TO at_offset;
ALTER TABLE once_parked RENAME COLUMN key TO message_key;
ALTER TABLE once_deferred RENAME COLUMN partition TO source_partition;
ALTER TABLE once_deferred RENAME COLUMN offset TO at_offset;
ALTER TABLE once_deferred RENAME COLUMN key TO message_key;
CREATE VIEW once_ledger_readable AS
SELECT scopes.name AS scope,
  CASE substr(id, 1, 1)
    WHEN x'00' THEN CAST(substr(id, 2) AS TEXT)
    WHEN x'01' THEN lower(printf('%s-%s-%s-%s-%s', hex(substr(id, 2, 4)), hex(substr(id, 6, 2)),
      hex(substr(id, 8, 2)), hex(substr(id, 10, 2)), hex(substr(id, 12, 6))))
    ELSE CAST(id AS TEXT) END AS id,
  CASE outcome WHEN 0 THEN 'applied' WHEN 1 THEN 'rejected' WHEN 4 THEN 'parked'
    WHEN 5 THEN 'later' ELSE '?' END AS outcome,
  CAST(result AS TEXT) AS result, partitions.name AS partition, at_offset AS offset,
  strftime('%Y-%m-%dT%H:%M:%fZ', born_ms / 1000.0, 'unixepoch') AS born,
  strftime('%Y-%m-%dT%H:%M:%fZ', recorded_ms / 1000.0, 'unixepoch') AS recorded,
  hex(fingerprint) AS fingerprint
FROM once_ledger
JOIN once_name AS scopes ON scopes.number = scope
JOIN once_name AS partitions ON partitions.number = source_partition;
)",
};

namespace {

void compact_id(sqlite3_context* context, int, sqlite3_value** values) {
  const auto* id = static_cast<const char*>(sqlite3_value_blob(values[0]));
  const auto size = static_cast<std::size_t>(sqlite3_value_bytes(values[0]));
  const CompactId compact({id, size});
  sqlite3_result_blob64(context, compact.bytes().data(), compact.bytes().size(), SQLITE_TRANSIENT);
}

Result<std::int64_t> version_of(Connection& writer) {
  const Rows tables = ONCE_TRY(
      writer.query("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'once_schema'"));
  if (tables.empty()) {
    const Rows foreign = ONCE_TRY(writer.query(foreign_table_query()));
    if (foreign.empty()) return 0;
    return fail(foreign_table_error("the file", std::get<std::string>(foreign[0][0])));
  }
  const Rows versions = ONCE_TRY(writer.query("SELECT version FROM once_schema"));
  if (versions.size() != 1)
    return fail(Remedy::stop, "corrupt", "the table once_schema must have exactly one row");
  return std::get<std::int64_t>(versions[0][0]);
}

Status log_migration(Connection& writer, std::int64_t from, std::int64_t now_ms) {
  ONCE_TRY(writer.run("INSERT INTO once_name (name) VALUES ('once.store') ON CONFLICT DO NOTHING"));
  const std::string reason = fmt::format("from version {} to {}", from, schema_steps.size());
  return writer.run(
      "INSERT INTO once_operation (scope, at_ms, action, subject, reason) "
      "SELECT number, ?, 'migrate', CAST('schema' AS BLOB), ? FROM once_name "
      "WHERE name = 'once.store'",
      {now_ms, reason});
}

Status migrate_from(Connection& writer, std::int64_t version, std::int64_t now_ms) {
  ONCE_TRY(writer.change_schema([&]() -> Status {
    for (auto step = static_cast<std::size_t>(version); step < schema_steps.size(); ++step)
      ONCE_TRY(writer.script(std::string(schema_steps[step])));
    return {};
  }));
  ONCE_TRY(writer.run(
      "INSERT INTO once_identity SELECT ? WHERE NOT EXISTS (SELECT 1 FROM once_identity)",
      {random_identity()}));
  ONCE_TRY(log_migration(writer, version, now_ms));
  return writer.commit();
}

}  // namespace

std::string foreign_table_query() {
  return fmt::format("SELECT name FROM sqlite_master WHERE name IN ({}) ORDER BY name LIMIT 1",
                     quoted_names(tables_made_by(schema_steps)));
}

int add_schema_functions(sqlite3* handle) {
  return sqlite3_create_function(handle, "once_compact_id", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
                                 nullptr, compact_id, nullptr, nullptr);
}

Result<std::int64_t> migrate(Connection& writer, std::int64_t now_ms) {
  ONCE_TRY(writer.begin());
  const auto version = version_of(writer);
  const auto newest = static_cast<std::int64_t>(schema_steps.size());
  if (!version || *version == newest) {
    writer.rollback();
    return version;
  }
  if (*version < 0 || *version > newest) {
    writer.rollback();
    return fail(Remedy::stop, "newer",
                fmt::format("the schema has version {}, this program knows up to {}; use the newer "
                            "program",
                            *version, newest));
  }
  auto migrated = migrate_from(writer, *version, now_ms);
  writer.rollback();  // does nothing after a commit
  if (!migrated) return fail(std::move(migrated).error());
  return version;
}

}  // namespace once
