// SPDX-License-Identifier: Apache-2.0
#include <once/identity.h>

#include "model/compact_id.h"
#include "model/message_row.h"
#include "store/sqlite/sqlite.h"

namespace once {

Result<std::vector<std::string>> SqliteStore::scopes() {
  return read([&](Connection& reader) -> Result<std::vector<std::string>> {
    Statement statement = ONCE_TRY(reader.prepare(
        "SELECT name FROM once_name WHERE number IN (SELECT scope FROM once_position) "
        "OR EXISTS (SELECT 1 FROM once_ledger WHERE scope = once_name.number) "
        "OR EXISTS (SELECT 1 FROM once_parked WHERE scope = once_name.number) "
        "OR EXISTS (SELECT 1 FROM once_operation WHERE scope = once_name.number) "
        "OR EXISTS (SELECT 1 FROM once_claim WHERE scope = once_name.number) ORDER BY name"));
    std::vector<std::string> names;
    int code = statement.step();
    for (; code == SQLITE_ROW; code = statement.step()) names.emplace_back(statement.bytes(0));
    if (code != SQLITE_DONE) return fail(reader.error(code, "read the scopes"));
    return names;
  });
}

Result<std::vector<LedgerRecord>> SqliteStore::ledger(std::string_view scope,
                                                      std::string_view from_id,
                                                      std::size_t count_max) {
  return read([&](Connection& reader) {
    return ledger_in(reader, scope, CompactId(from_id).bytes(), count_max);
  });
}

Result<std::vector<LedgerRecord>> SqliteStore::ledger_in(Connection& connection,
                                                         std::string_view scope,
                                                         std::string_view from_compact_id,
                                                         std::size_t count_max) {
  Statement statement = ONCE_TRY(
      connection.prepare("SELECT id, fingerprint, outcome, result, born_ms, recorded_ms, offset, "
                         "(SELECT name FROM once_name WHERE number = partition) FROM once_ledger "
                         "WHERE scope = (SELECT number FROM once_name WHERE name = ?) AND id >= ? "
                         "ORDER BY id LIMIT ?"));
  statement.bind_text(1, scope);
  statement.bind_blob(2, from_compact_id);
  statement.bind(3, static_cast<std::int64_t>(count_max));
  std::vector<LedgerRecord> records;
  int code = statement.step();
  for (; code == SQLITE_ROW; code = statement.step()) {
    LedgerRecord& record = records.emplace_back();
    record.id = expand_id(statement.bytes(0));
    record.fingerprint = fingerprint_from(statement.bytes(1));
    record.outcome = {static_cast<Outcome::Kind>(statement.number(2)),
                      std::string(statement.bytes(3)), 0};
    record.born_ms = statement.number(4);
    record.recorded_ms = statement.number(5);
    record.offset = statement.number(6);
    record.partition = statement.bytes(7);
  }
  if (code != SQLITE_DONE) return fail(connection.error(code, "read the ledger"));
  return records;
}

Result<std::vector<ParkedRecord>> SqliteStore::parked(std::string_view scope,
                                                      std::int64_t after_number,
                                                      std::size_t count_max) {
  return read([&](Connection& reader) -> Result<std::vector<ParkedRecord>> {
    std::vector<ParkedRecord> records;
    Statement statement = ONCE_TRY(reader.prepare(
        "SELECT number, partition, offset, attempts, parked_ms, reason, id, key, body, headers, "
        "timestamp_ms FROM once_parked "
        "WHERE scope = (SELECT number FROM once_name WHERE name = ?) AND number > ? "
        "ORDER BY number LIMIT ?"));
    statement.bind_text(1, scope);
    statement.bind(2, after_number);
    statement.bind(3, static_cast<std::int64_t>(count_max));
    int code = statement.step();
    for (; code == SQLITE_ROW; code = statement.step()) {
      ParkedRecord record;
      record.number = statement.number(0);
      record.partition = statement.bytes(1);
      record.offset = statement.number(2);
      record.attempts = static_cast<std::uint32_t>(statement.number(3));
      record.parked_ms = statement.number(4);
      record.reason = statement.bytes(5);
      record.message.id = statement.bytes(6);
      record.message.key = statement.bytes(7);
      record.message.body = statement.bytes(8);
      ONCE_TRY(decode_headers(statement.bytes(9), record.message));
      record.message.timestamp_ms = statement.number(10);
      records.push_back(std::move(record));
    }
    if (code != SQLITE_DONE) return fail(reader.error(code, "read the parked messages"));
    return records;
  });
}

Result<std::vector<OperationRecord>> SqliteStore::operations(std::string_view scope,
                                                             std::int64_t after_number,
                                                             std::size_t count_max) {
  return read([&](Connection& reader) -> Result<std::vector<OperationRecord>> {
    std::vector<OperationRecord> records;
    Statement statement = ONCE_TRY(
        reader.prepare("SELECT number, at_ms, action, subject, reason FROM once_operation "
                       "WHERE scope = (SELECT number FROM once_name WHERE name = ?) AND number > ? "
                       "ORDER BY number LIMIT ?"));
    statement.bind_text(1, scope);
    statement.bind(2, after_number);
    statement.bind(3, static_cast<std::int64_t>(count_max));
    int code = statement.step();
    for (; code == SQLITE_ROW; code = statement.step())
      records.push_back({statement.number(0), statement.number(1), std::string(statement.bytes(2)),
                         std::string(statement.bytes(3)), std::string(statement.bytes(4))});
    if (code != SQLITE_DONE) return fail(reader.error(code, "read the operations"));
    return records;
  });
}

// One statement, so that all of it was so at one moment. A scope that is not known has one row,
// too.
Result<ScopeRecord> SqliteStore::describe(std::string_view scope) {
  return read([&](Connection& reader) -> Result<ScopeRecord> {
    Statement statement = ONCE_TRY(reader.prepare(
        "SELECT coalesce(horizon_ms, 0), partitions.name, offset, fence, witness_offset, "
        "witness_digest, source_identity, settled_ms, waiting_ms, drained_ms, "
        "coalesce(held, 0) "
        "FROM (SELECT (SELECT number FROM once_name WHERE name = ?) AS number) AS known "
        "LEFT JOIN once_horizon ON once_horizon.scope = known.number "
        "LEFT JOIN once_position ON once_position.scope = known.number "
        "LEFT JOIN once_name AS partitions ON partitions.number = once_position.partition "
        "ORDER BY partitions.name"));
    statement.bind_text(1, scope);
    ScopeRecord record;
    record.now_ms = clock_.now_ms();
    int code = statement.step();
    for (; code == SQLITE_ROW; code = statement.step()) {
      record.horizon_ms = statement.number(0);
      record.horizon_held = statement.number(10) != 0;
      if (statement.is_null(1)) continue;
      PartitionRecord& partition = record.partitions.emplace_back();
      partition.partition = statement.bytes(1);
      partition.position = {statement.number(2),
                            static_cast<std::uint64_t>(statement.number(3)),
                            {statement.number(4), static_cast<std::uint64_t>(statement.number(5))}};
      partition.source_identity = statement.bytes(6);
      partition.settled_ms = statement.number(7);
      partition.waiting_ms = statement.number(8);
      partition.drained_ms = statement.number(9);
    }
    if (code != SQLITE_DONE) return fail(reader.error(code, "describe a scope"));
    return record;
  });
}

Result<SqliteStore::StoredHorizon> SqliteStore::stored_horizon(std::string_view scope) {
  return read([&](Connection& reader) -> Result<StoredHorizon> {
    const Rows rows =
        ONCE_TRY(reader.query("SELECT horizon_ms, held FROM once_horizon "
                              "WHERE scope = (SELECT number FROM once_name WHERE name = ?)",
                              {scope}));
    if (rows.empty()) return StoredHorizon{};
    return StoredHorizon{std::get<std::int64_t>(rows[0][0]),
                         std::get<std::int64_t>(rows[0][1]) != 0};
  });
}

}  // namespace once
