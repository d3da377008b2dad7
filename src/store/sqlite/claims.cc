// SPDX-License-Identifier: Apache-2.0
#include "model/claim.h"

#include <algorithm>

#include "model/compact_id.h"
#include "model/ledger.h"
#include "model/message_row.h"
#include "store/sqlite/sqlite.h"

// A claim is a row that is read, changed by the rules all stores share, and written back, while we
// have the only turn to write. The clock is that of the machine on which the file is.

namespace once {
namespace {

constexpr std::string_view columns =
    "id, state, generation, fence, attempts, after_loss, fingerprint, born_ms, changed_ms, "
    "lease_until_ms, owner, result, reason, steps";

Result<ClaimRecord> record_in(const Statement& row) {
  ClaimRecord record;
  record.id = expand_id(row.bytes(0));
  record.state = static_cast<ClaimState>(row.number(1));
  record.generation = static_cast<std::uint64_t>(row.number(2));
  record.fence = static_cast<std::uint64_t>(row.number(3));
  record.attempts = static_cast<std::uint32_t>(row.number(4));
  record.after_loss = static_cast<AfterLoss>(row.number(5));
  record.fingerprint = fingerprint_from(row.bytes(6));
  record.born_ms = row.number(7);
  record.changed_ms = row.number(8);
  record.lease_until_ms = row.number(9);
  record.owner = row.bytes(10);
  if (!row.is_null(11)) record.result = std::string(row.bytes(11));
  record.reason = row.bytes(12);
  record.steps = ONCE_TRY(decode_steps(row.bytes(13)));
  return record;
}

Result<std::optional<ClaimRecord>> load(Connection& connection, std::int64_t scope,
                                        std::string_view id) {
  static const std::string select =
      "SELECT " + std::string(columns) + " FROM once_claim WHERE scope = ? AND id = ?";
  Statement statement = ONCE_TRY(connection.prepare(select));
  const CompactId compact(id);
  statement.bind(1, scope);
  statement.bind_blob(2, compact.bytes());
  const int code = statement.step();
  if (code == SQLITE_DONE) return std::nullopt;
  if (code != SQLITE_ROW) return fail(connection.error(code, "read a claim"));
  return ONCE_TRY(record_in(statement));
}

Status save(Connection& writer, std::int64_t scope, const ClaimRecord& record) {
  static const std::string replace = "INSERT OR REPLACE INTO once_claim (scope, " +
                                     std::string(columns) +
                                     ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
  const CompactId compact(record.id);
  const FingerprintBytes fingerprint = bytes_of(record.fingerprint);
  const Value digest = record.fingerprint.version == 0
                           ? Value(nullptr)
                           : Value(Blob{{fingerprint.data(), fingerprint.size()}});
  const std::string steps = encode_steps(record.steps);
  return writer.run(
      replace,
      {scope, Blob{compact.bytes()}, static_cast<int>(record.state), record.generation,
       record.fence, record.attempts, static_cast<int>(record.after_loss), digest, record.born_ms,
       record.changed_ms, record.lease_until_ms, record.owner,
       record.result ? Value(Blob{*record.result}) : Value(nullptr), record.reason, Blob{steps}});
}

// Lets `decide` have each claim that is there; what it says true for is written back.
template <class Item, class Decide>
Result<std::vector<bool>> update_each(Connection& writer, std::int64_t scope,
                                      std::span<const Item> items, const Decide& decide) {
  std::vector<bool> ours;
  ours.reserve(items.size());
  for (const Item& item : items) {
    auto row = ONCE_TRY(load(writer, scope, item.id));
    ours.push_back(row && decide(*row, item));
    if (ours.back()) ONCE_TRY(save(writer, scope, *row));
  }
  return ours;
}

}  // namespace

Result<std::vector<ClaimAnswer>> SqliteStore::claim(std::string_view scope, const ClaimTerms& terms,
                                                    std::span<const ClaimRequest> requests) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_terms(terms));
  ONCE_TRY(check_requests(requests));
  return write([&](Connection& writer) -> Result<std::vector<ClaimAnswer>> {
    const std::int64_t number = ONCE_TRY(names_.number_of(writer, scope));
    const std::int64_t horizon = ONCE_TRY(stored_horizon_ms(writer, number));
    std::vector<ClaimAnswer> answers;
    answers.reserve(requests.size());
    for (const ClaimRequest& request : requests) {
      auto row = ONCE_TRY(load(writer, number, request.id));
      answers.push_back(answer_claim(row, request, terms, clock_.now_ms(), horizon));
      const auto kind = answers.back().kind;
      if (kind == ClaimAnswer::Kind::granted || kind == ClaimAnswer::Kind::doubtful)
        ONCE_TRY(save(writer, number, *row));
    }
    return answers;
  });
}

Result<std::vector<bool>> SqliteStore::renew(std::string_view scope, std::int64_t lease_ms,
                                             std::span<const HeldClaim> claims) {
  return write([&](Connection& writer) -> Result<std::vector<bool>> {
    const std::int64_t number = ONCE_TRY(names_.number_of(writer, scope));
    return update_each(writer, number, claims, [&](ClaimRecord& row, const HeldClaim& held) {
      return renew_claim(row, held.fence, lease_ms, clock_.now_ms());
    });
  });
}

Result<std::vector<bool>> SqliteStore::change(std::string_view scope,
                                              std::span<const ClaimChange> changes) {
  ONCE_TRY(check_changes(changes));
  return write([&](Connection& writer) -> Result<std::vector<bool>> {
    const std::int64_t number = ONCE_TRY(names_.number_of(writer, scope));
    return update_each(writer, number, changes, [&](ClaimRecord& row, const ClaimChange& change) {
      return change_claim(row, change, clock_.now_ms());
    });
  });
}

Result<ClaimRecord> SqliteStore::force(std::string_view scope, const ClaimForce& force) {
  ONCE_TRY(check_force(force));
  return write([&](Connection& writer) -> Result<ClaimRecord> {
    const std::int64_t number = ONCE_TRY(names_.number_of(writer, scope));
    auto row = ONCE_TRY(load(writer, number, force.id));
    if (!row) return fail(missing_claim(scope, force.id));
    force_claim(*row, force, clock_.now_ms());
    ONCE_TRY(save(writer, number, *row));
    ONCE_TRY(log_operation(number, force_action(force.to), force.id, force.reason));
    return *row;
  });
}

Result<std::vector<ClaimRecord>> SqliteStore::claims(std::string_view scope,
                                                     std::optional<ClaimState> state,
                                                     std::string_view from_id,
                                                     std::size_t count_max) {
  static const std::string select =
      "SELECT " + std::string(columns) +
      " FROM once_claim WHERE scope = (SELECT number FROM once_name WHERE name = ?) AND id >= ? ";
  static const std::string select_all = select + "ORDER BY id";
  static const std::string select_open = select + "AND state IN (0, 1, 2) ORDER BY id";
  const bool open_only = state && *state != ClaimState::done && *state != ClaimState::rejected;
  return read([&](Connection& reader) -> Result<std::vector<ClaimRecord>> {
    Statement statement = ONCE_TRY(reader.prepare(open_only ? select_open : select_all));
    const CompactId from(from_id);
    statement.bind_text(1, scope);
    statement.bind_blob(2, from.bytes());
    std::vector<ClaimRecord> records;
    while (records.size() < count_max) {
      const int code = statement.step();
      if (code == SQLITE_DONE) break;
      if (code != SQLITE_ROW) return fail(reader.error(code, "read the claims"));
      ClaimRecord record = as_of(ONCE_TRY(record_in(statement)), clock_.now_ms());
      if (!state || record.state == *state) records.push_back(std::move(record));
    }
    return records;
  });
}

Result<std::size_t> SqliteStore::forget_claims(std::string_view scope, std::int64_t horizon_ms,
                                               std::size_t rows_max, bool& complete) {
  if (!complete) return 0;  // after the ledger
  return write([&](Connection& writer) -> Result<std::size_t> {
    const std::int64_t number = ONCE_TRY(names_.number_of(writer, scope));
    const std::int64_t stored_ms = ONCE_TRY(stored_horizon_ms(writer, number));
    ONCE_TRY(
        writer.run("DELETE FROM once_claim WHERE scope = ?1 AND id IN "
                   "(SELECT id FROM once_claim WHERE scope = ?1 AND state IN (3, 4) "
                   "AND born_ms < ?2 LIMIT ?3)",
                   {number, std::min(horizon_ms, stored_ms), rows_max}));
    const auto rows = static_cast<std::size_t>(writer.changes());
    complete = rows < rows_max;
    return rows;
  });
}

}  // namespace once
