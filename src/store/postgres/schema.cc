// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/schema.h"

#include <fmt/format.h>

#include "model/own_tables.h"

#include <string>

namespace once {

// Names of scopes, partitions and destinations are kept once; a ledger row has their numbers.
const std::array<std::string_view, 5> postgres_schema_steps = {
    R"(
CREATE TABLE once_schema (version INTEGER NOT NULL);
INSERT INTO once_schema VALUES (1);

CREATE TABLE once_name (
  number INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name BYTEA NOT NULL UNIQUE
);

CREATE TABLE once_ledger (
  scope INTEGER NOT NULL,
  id BYTEA NOT NULL,
  born_ms BIGINT NOT NULL,
  recorded_ms BIGINT NOT NULL,
  at_offset BIGINT NOT NULL,
  source_partition INTEGER NOT NULL,
  outcome SMALLINT NOT NULL,
  fingerprint BYTEA,
  result BYTEA,
  PRIMARY KEY (scope, id)
);

CREATE TABLE once_position (
  scope INTEGER NOT NULL,
  source_partition INTEGER NOT NULL,
  at_offset BIGINT NOT NULL,
  fence BIGINT NOT NULL,
  PRIMARY KEY (scope, source_partition)
) WITH (fillfactor = 50);

CREATE TABLE once_horizon (
  scope INTEGER PRIMARY KEY,
  horizon_ms BIGINT NOT NULL
);

CREATE TABLE once_outbox (
  number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  destination INTEGER NOT NULL,
  id BYTEA NOT NULL,
  message_key BYTEA NOT NULL,
  body BYTEA NOT NULL,
  headers BYTEA NOT NULL,
  timestamp_ms BIGINT NOT NULL,
  target_partition BIGINT,
  target_sequence BIGINT
);
CREATE INDEX once_outbox_destination ON once_outbox (destination, number);

CREATE TABLE once_route (
  destination INTEGER NOT NULL,
  target_partition BIGINT NOT NULL,
  next_sequence BIGINT NOT NULL,
  PRIMARY KEY (destination, target_partition)
);

CREATE TABLE once_parked (
  number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope INTEGER NOT NULL,
  source_partition BYTEA NOT NULL,
  at_offset BIGINT NOT NULL,
  attempts BIGINT NOT NULL,
  parked_ms BIGINT NOT NULL,
  reason BYTEA NOT NULL,
  id BYTEA NOT NULL,
  message_key BYTEA NOT NULL,
  body BYTEA NOT NULL,
  headers BYTEA NOT NULL,
  timestamp_ms BIGINT NOT NULL
);
CREATE INDEX once_parked_scope ON once_parked (scope, number);

CREATE TABLE once_operation (
  number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope INTEGER NOT NULL,
  at_ms BIGINT NOT NULL,
  action BYTEA NOT NULL,
  subject BYTEA NOT NULL,
  reason BYTEA NOT NULL
);
CREATE INDEX once_operation_scope ON once_operation (scope, number);

CREATE TABLE once_counter (
  name TEXT COLLATE "C" PRIMARY KEY,
  last BIGINT NOT NULL
);

CREATE TABLE once_claim (
  scope INTEGER NOT NULL,
  id BYTEA NOT NULL,
  state SMALLINT NOT NULL,
  generation BIGINT NOT NULL,
  fence BIGINT NOT NULL,
  attempts BIGINT NOT NULL,
  after_loss SMALLINT NOT NULL,
  fingerprint BYTEA,
  born_ms BIGINT NOT NULL,
  changed_ms BIGINT NOT NULL,
  lease_until_ms BIGINT NOT NULL,
  owner BYTEA NOT NULL,
  result BYTEA,
  reason BYTEA NOT NULL,
  steps BYTEA NOT NULL,
  PRIMARY KEY (scope, id)
) WITH (fillfactor = 70);
CREATE INDEX once_claim_settled ON once_claim (scope, born_ms) WHERE state IN (3, 4);

CREATE VIEW once_ledger_readable AS
SELECT encode(scopes.name, 'escape') AS scope,
  CASE WHEN get_byte(id, 0) = 1 THEN encode(substr(id, 2), 'hex')::uuid::text
    WHEN get_byte(id, 0) = 0 THEN encode(substr(id, 2), 'escape')
    ELSE encode(id, 'escape') END AS id,
  CASE outcome WHEN 0 THEN 'applied' WHEN 1 THEN 'rejected' WHEN 4 THEN 'parked' ELSE '?' END
    AS outcome,
  encode(result, 'escape') AS result, encode(partitions.name, 'escape') AS partition,
  at_offset AS "offset",
  to_timestamp(born_ms / 1000.0) AS born, to_timestamp(recorded_ms / 1000.0) AS recorded,
  encode(fingerprint, 'hex') AS fingerprint
FROM once_ledger
JOIN once_name AS scopes ON scopes.number = scope
JOIN once_name AS partitions ON partitions.number = source_partition;
)",
    // Forgetting finds the oldest ids without a walk through the ledger.
    R"(
CREATE INDEX once_ledger_born ON once_ledger (scope, born_ms);
UPDATE once_schema SET version = 2;
)",
    // What `advance` writes is in no index. That of the outbox is the order in which rows are sent:
    // those with a sequence first, since NULL is last.
    R"(
CREATE TABLE once_identity (number INTEGER PRIMARY KEY, identity BYTEA NOT NULL);

ALTER TABLE once_position
  ADD COLUMN source_identity BYTEA NOT NULL DEFAULT '',
  ADD COLUMN settled_ms BIGINT NOT NULL DEFAULT -1,
  ADD COLUMN waiting_ms BIGINT NOT NULL DEFAULT -1,
  ADD COLUMN drained_ms BIGINT NOT NULL DEFAULT -1,
  ADD COLUMN witness_offset BIGINT NOT NULL DEFAULT -1,
  ADD COLUMN witness_digest BIGINT NOT NULL DEFAULT 0;

DROP INDEX once_outbox_destination;
CREATE INDEX once_outbox_order ON once_outbox (destination, target_sequence, number);
UPDATE once_schema SET version = 3;
)",
    // Messages that wait: by due time, and by key where those that come later wait behind them.
    R"(
CREATE TABLE once_deferred (
  number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope INTEGER NOT NULL,
  source_partition BYTEA NOT NULL,
  at_offset BIGINT NOT NULL,
  attempts BIGINT NOT NULL,
  deferred_ms BIGINT NOT NULL,
  due_ms BIGINT NOT NULL,
  order_token BYTEA,
  reason BYTEA NOT NULL,
  id BYTEA NOT NULL,
  message_key BYTEA NOT NULL,
  body BYTEA NOT NULL,
  headers BYTEA NOT NULL,
  timestamp_ms BIGINT NOT NULL
);
CREATE INDEX once_deferred_due ON once_deferred (scope, due_ms, number);
CREATE INDEX once_deferred_order ON once_deferred (scope, order_token, number)
  WHERE order_token IS NOT NULL;
CREATE INDEX once_parked_id ON once_parked (scope, id);

CREATE OR REPLACE VIEW once_ledger_readable AS
SELECT encode(scopes.name, 'escape') AS scope,
  CASE WHEN get_byte(id, 0) = 1 THEN encode(substr(id, 2), 'hex')::uuid::text
    WHEN get_byte(id, 0) = 0 THEN encode(substr(id, 2), 'escape')
    ELSE encode(id, 'escape') END AS id,
  CASE outcome WHEN 0 THEN 'applied' WHEN 1 THEN 'rejected' WHEN 4 THEN 'parked'
    WHEN 5 THEN 'later' ELSE '?' END AS outcome,
  encode(result, 'escape') AS result, encode(partitions.name, 'escape') AS partition,
  at_offset AS "offset",
  to_timestamp(born_ms / 1000.0) AS born, to_timestamp(recorded_ms / 1000.0) AS recorded,
  encode(fingerprint, 'hex') AS fingerprint
FROM once_ledger
JOIN once_name AS scopes ON scopes.number = scope
JOIN once_name AS partitions ON partitions.number = source_partition;
UPDATE once_schema SET version = 4;
)",
    // A horizon that a person has set stays where it is.
    R"(
ALTER TABLE once_horizon ADD COLUMN held SMALLINT NOT NULL DEFAULT 0;
UPDATE once_schema SET version = 5;
)",
};

namespace {

constexpr std::string_view newest_step =
    "INSERT INTO once_name (name) VALUES ('once.store') ON CONFLICT DO NOTHING;"
    "INSERT INTO once_operation (scope, at_ms, action, subject, reason) "
    "SELECT number, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, 'migrate', 'schema', ";

Result<std::size_t> version_of(PgConnection& connection) {
  // Not to_regclass: inside a transaction it may remember that the table was not there.
  const auto table =
      ONCE_TRY(connection.ask("SELECT EXISTS (SELECT 1 FROM pg_class WHERE relname = "
                              "'once_schema' AND pg_table_is_visible(oid))",
                              {}));
  if (table->bytes(0, 0) != "t") return std::size_t{0};
  const auto versions = ONCE_TRY(connection.ask("SELECT version FROM once_schema"));
  if (versions->rows() != 1)
    return fail(Remedy::stop, "corrupt", "the table once_schema must have exactly one row");
  return static_cast<std::size_t>(versions->number(0, 0));
}

}  // namespace

std::vector<std::string> postgres_own_tables() { return tables_made_by(postgres_schema_steps); }

Status check_no_foreign_tables(PgConnection& connection, std::string_view where) {
  const auto found = ONCE_TRY(connection.ask(
      fmt::format("SELECT relname FROM pg_class WHERE relname IN ({}) AND "
                  "relnamespace = current_schema()::regnamespace ORDER BY relname LIMIT 1",
                  quoted_names(postgres_own_tables()))));
  if (found->rows() == 0) return {};
  return fail(foreign_table_error(where, found->bytes(0, 0)));
}

Status migrate_postgres(PgConnection& connection, std::string_view where) {
  const std::size_t newest = postgres_schema_steps.size();
  std::size_t version = ONCE_TRY(version_of(connection));
  if (version == newest) return {};
  // One at a time, also across programs; and looked at again when it is our turn.
  std::string script = "BEGIN; SELECT pg_advisory_xact_lock(5722337);";
  if (version > newest)
    return fail(Remedy::stop, "newer",
                fmt::format("{}: the schema has version {}, this program knows up to {}; use the "
                            "newer program",
                            where, version, newest));
  ONCE_TRY(connection.script(script));
  version = ONCE_TRY(version_of(connection));
  if (version == 0)
    if (Status free = check_no_foreign_tables(connection, where); !free) {
      (void)connection.reset();
      return free;
    }
  script.clear();
  for (std::size_t step = version; step < newest; ++step) script += postgres_schema_steps[step];
  if (version < newest)
    script += fmt::format("{}'from version {} to {}' FROM once_name WHERE name = 'once.store';",
                          newest_step, version, newest);
  script += "COMMIT;";
  if (Status done = connection.script(script); !done) {
    (void)connection.reset();
    return done;
  }
  return {};
}

}  // namespace once
