// SPDX-License-Identifier: Apache-2.0
#include "store/sql/records.h"

#include <fmt/format.h>

#include "model/compact_id.h"
#include "model/message_row.h"
#include "store/sql/positions.h"

namespace once {

Result<std::vector<std::string>> SqlRecords::scopes() {
  const auto answer = ONCE_TRY(books_.ask(
      "SELECT name FROM once_name WHERE "
      "EXISTS (SELECT 1 FROM once_position WHERE scope = once_name.number) "
      "OR EXISTS (SELECT 1 FROM once_ledger WHERE scope = once_name.number) "
      "OR EXISTS (SELECT 1 FROM once_parked WHERE scope = once_name.number) "
      "OR EXISTS (SELECT 1 FROM once_operation WHERE scope = once_name.number) "
      "OR EXISTS (SELECT 1 FROM once_claim WHERE scope = once_name.number) ORDER BY name"));
  std::vector<std::string> names;
  for (int row = 0; row < answer->rows(); ++row) names.push_back(answer->bytes(row, 0));
  return names;
}

LedgerRecord ledger_record_in(const SqlAnswer& answer, int row) {
  LedgerRecord record;
  record.id = expand_id(answer.bytes(row, 0));
  record.fingerprint = fingerprint_from(answer.bytes(row, 1));
  record.outcome = {static_cast<Outcome::Kind>(answer.number(row, 2)), answer.bytes(row, 3), 0};
  record.born_ms = answer.number(row, 4);
  record.recorded_ms = answer.number(row, 5);
  record.offset = answer.number(row, 6);
  record.partition = answer.bytes(row, 7);
  return record;
}

Result<std::vector<LedgerRecord>> SqlRecords::ledger(std::string_view scope,
                                                     std::string_view from_id,
                                                     std::size_t count_max) {
  const CompactId from(from_id);
  const auto answer = ONCE_TRY(books_.ask(
      fmt::format("SELECT {} FROM once_ledger "
                  "WHERE scope = (SELECT number FROM once_name WHERE name = ?) AND id >= ? "
                  "ORDER BY id LIMIT ?",
                  record_columns),
      {books_.words().name(scope), Blob{from.bytes()}, count_max}));
  std::vector<LedgerRecord> records;
  for (int row = 0; row < answer->rows(); ++row) records.push_back(ledger_record_in(*answer, row));
  return records;
}

Result<std::vector<ParkedRecord>> SqlRecords::parked(std::string_view scope,
                                                     std::int64_t after_number,
                                                     std::size_t count_max) {
  const auto answer = ONCE_TRY(books_.ask(
      "SELECT number, source_partition, at_offset, attempts, parked_ms, reason, id, message_key, "
      "body, headers, timestamp_ms FROM once_parked "
      "WHERE scope = (SELECT number FROM once_name WHERE name = ?) AND number > ? "
      "ORDER BY number LIMIT ?",
      {books_.words().name(scope), after_number, count_max}));
  std::vector<ParkedRecord> records;
  for (int row = 0; row < answer->rows(); ++row) {
    ParkedRecord record;
    record.number = answer->number(row, 0);
    record.partition = answer->bytes(row, 1);
    record.offset = answer->number(row, 2);
    record.attempts = static_cast<std::uint32_t>(answer->number(row, 3));
    record.parked_ms = answer->number(row, 4);
    record.reason = answer->bytes(row, 5);
    record.message.id = answer->bytes(row, 6);
    record.message.key = answer->bytes(row, 7);
    record.message.body = answer->bytes(row, 8);
    ONCE_TRY(decode_headers(answer->bytes(row, 9), record.message));
    record.message.timestamp_ms = answer->number(row, 10);
    records.push_back(std::move(record));
  }
  return records;
}

Result<std::vector<OperationRecord>> SqlRecords::operations(std::string_view scope,
                                                            std::int64_t after_number,
                                                            std::size_t count_max) {
  const auto answer = ONCE_TRY(
      books_.ask("SELECT number, at_ms, action, subject, reason FROM once_operation "
                 "WHERE scope = (SELECT number FROM once_name WHERE name = ?) AND number > ? "
                 "ORDER BY number LIMIT ?",
                 {books_.words().name(scope), after_number, count_max}));
  std::vector<OperationRecord> records;
  for (int row = 0; row < answer->rows(); ++row)
    records.push_back({answer->number(row, 0), answer->number(row, 1), answer->bytes(row, 2),
                       answer->bytes(row, 3), answer->bytes(row, 4)});
  return records;
}

// One statement, so that all of it was so at one moment. A scope that is not known has one row,
// too.
Result<ScopeRecord> SqlRecords::describe(std::string_view scope) {
  const auto answer = ONCE_TRY(books_.ask(
      fmt::format("SELECT {}, horizon_ms, partitions.name, source_identity, settled_ms, "
                  "waiting_ms, drained_ms, {}, held "
                  "FROM (SELECT (SELECT number FROM once_name WHERE name = ?) AS number) AS known "
                  "LEFT JOIN once_horizon ON once_horizon.scope = known.number "
                  "LEFT JOIN once_position ON once_position.scope = known.number "
                  "LEFT JOIN once_name AS partitions "
                  "ON partitions.number = once_position.source_partition "
                  "ORDER BY partitions.name",
                  books_.words().now_ms, position_columns),
      {books_.words().name(scope)}));
  ScopeRecord record;
  for (int row = 0; row < answer->rows(); ++row) {
    record.now_ms = answer->number(row, 0) + books_.skew_ms();
    if (!answer->is_null(row, 1)) record.horizon_ms = answer->number(row, 1);
    record.horizon_held = !answer->is_null(row, 11) && answer->number(row, 11) != 0;
    if (answer->is_null(row, 2)) continue;
    record.partitions.push_back({.partition = answer->bytes(row, 2),
                                 .position = position_in(*answer, row, 7),
                                 .source_identity = answer->bytes(row, 3),
                                 .settled_ms = answer->number(row, 4),
                                 .waiting_ms = answer->number(row, 5),
                                 .drained_ms = answer->number(row, 6)});
  }
  return record;
}

}  // namespace once
