// SPDX-License-Identifier: Apache-2.0
#include "model/compact_id.h"
#include "model/message_row.h"
#include "store/postgres/postgres.h"

namespace once {

Result<std::vector<std::string>> PostgresStore::scopes() {
  const Lease lease = ONCE_TRY(lend());
  const Answer answer = ONCE_TRY(
      lease->ask("SELECT name FROM once_name AS n WHERE "
                 "EXISTS (SELECT 1 FROM once_position WHERE scope = n.number) "
                 "OR EXISTS (SELECT 1 FROM once_ledger WHERE scope = n.number) "
                 "OR EXISTS (SELECT 1 FROM once_parked WHERE scope = n.number) "
                 "OR EXISTS (SELECT 1 FROM once_operation WHERE scope = n.number) "
                 "OR EXISTS (SELECT 1 FROM once_claim WHERE scope = n.number) ORDER BY name",
                 {}));
  std::vector<std::string> names;
  for (int row = 0; row < answer.rows(); ++row) names.emplace_back(answer.text(row, 0));
  return names;
}

Result<std::vector<LedgerRecord>> PostgresStore::ledger(std::string_view scope,
                                                        std::string_view from_id,
                                                        std::size_t count_max) {
  const Lease lease = ONCE_TRY(lend());
  const CompactId from(from_id);
  const Answer answer = ONCE_TRY(
      lease->ask("SELECT id, fingerprint, outcome, result, born_ms, recorded_ms, at_offset, "
                 "(SELECT name FROM once_name WHERE number = partition) FROM once_ledger "
                 "WHERE scope = (SELECT number FROM once_name WHERE name = $1) AND id >= $2 "
                 "ORDER BY id LIMIT $3",
                 {scope, Blob{from.bytes()}, count_max}));
  std::vector<LedgerRecord> records;
  for (int row = 0; row < answer.rows(); ++row) {
    LedgerRecord& record = records.emplace_back();
    record.id = expand_id(answer.bytes(row, 0));
    record.fingerprint = fingerprint_from(answer.bytes(row, 1));
    record.outcome = {static_cast<Outcome::Kind>(answer.number(row, 2)), answer.bytes(row, 3), 0};
    record.born_ms = answer.number(row, 4);
    record.recorded_ms = answer.number(row, 5);
    record.offset = answer.number(row, 6);
    record.partition = answer.text(row, 7);
  }
  return records;
}

Result<std::vector<ParkedRecord>> PostgresStore::parked(std::string_view scope,
                                                        std::int64_t after_number,
                                                        std::size_t count_max) {
  const Lease lease = ONCE_TRY(lend());
  const Answer answer = ONCE_TRY(lease->ask(
      "SELECT number, partition, at_offset, attempts, parked_ms, reason, id, key, body, headers, "
      "timestamp_ms FROM once_parked "
      "WHERE scope = (SELECT number FROM once_name WHERE name = $1) AND number > $2 "
      "ORDER BY number LIMIT $3",
      {scope, after_number, count_max}));
  std::vector<ParkedRecord> records;
  for (int row = 0; row < answer.rows(); ++row) {
    ParkedRecord record;
    record.number = answer.number(row, 0);
    record.partition = answer.bytes(row, 1);
    record.offset = answer.number(row, 2);
    record.attempts = static_cast<std::uint32_t>(answer.number(row, 3));
    record.parked_ms = answer.number(row, 4);
    record.reason = answer.bytes(row, 5);
    record.message.id = answer.bytes(row, 6);
    record.message.key = answer.bytes(row, 7);
    record.message.body = answer.bytes(row, 8);
    record.message.headers = ONCE_TRY(decode_headers(answer.bytes(row, 9)));
    record.message.timestamp_ms = answer.number(row, 10);
    records.push_back(std::move(record));
  }
  return records;
}

Result<std::vector<OperationRecord>> PostgresStore::operations(std::string_view scope,
                                                               std::int64_t after_number,
                                                               std::size_t count_max) {
  const Lease lease = ONCE_TRY(lend());
  const Answer answer = ONCE_TRY(
      lease->ask("SELECT number, at_ms, action, subject, reason FROM once_operation "
                 "WHERE scope = (SELECT number FROM once_name WHERE name = $1) AND number > $2 "
                 "ORDER BY number LIMIT $3",
                 {scope, after_number, count_max}));
  std::vector<OperationRecord> records;
  for (int row = 0; row < answer.rows(); ++row)
    records.push_back({answer.number(row, 0), answer.number(row, 1),
                       std::string(answer.text(row, 2)), answer.bytes(row, 3),
                       answer.bytes(row, 4)});
  return records;
}

Result<std::int64_t> PostgresStore::horizon_ms(std::string_view scope) {
  const Lease lease = ONCE_TRY(lend());
  const Answer answer =
      ONCE_TRY(lease->ask("SELECT horizon_ms FROM once_horizon "
                          "WHERE scope = (SELECT number FROM once_name WHERE name = $1)",
                          {scope}));
  return answer.rows() == 0 ? 0 : answer.number(0, 0);
}

}  // namespace once
