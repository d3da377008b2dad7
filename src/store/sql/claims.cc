// SPDX-License-Identifier: Apache-2.0
#include "store/sql/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "model/claim.h"
#include "model/compact_id.h"
#include "model/ledger.h"
#include "model/message_row.h"

// Claims are read and locked, changed by the rules all stores share, and written back with the
// commit: two round trips. Rows are locked in the order of ids, so that two programs that want the
// same claims never wait for each other. The clock is that of the store.

namespace once {
namespace {

constexpr std::string_view select_one =
    "SELECT id, state, generation, fence, attempts, after_loss, fingerprint, born_ms, changed_ms, "
    "lease_until_ms, owner, result, reason, steps FROM once_claim "
    "WHERE scope = ? AND id = ? ";
constexpr std::string_view select_from =
    "SELECT id, state, generation, fence, attempts, after_loss, fingerprint, born_ms, changed_ms, "
    "lease_until_ms, owner, result, reason, steps FROM once_claim "
    "WHERE scope = (SELECT number FROM once_name WHERE name = ?) AND id >= ? {} ORDER BY id LIMIT "
    "?";
constexpr std::string_view insert =
    "INSERT INTO once_claim (state, generation, fence, attempts, after_loss, fingerprint, born_ms, "
    "changed_ms, lease_until_ms, owner, result, reason, steps, scope, id) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
constexpr std::string_view update =
    "UPDATE once_claim SET state = ?, generation = ?, fence = ?, attempts = ?, after_loss = ?, "
    "fingerprint = ?, born_ms = ?, changed_ms = ?, lease_until_ms = ?, owner = ?, result = ?, "
    "reason = ?, steps = ? WHERE scope = ? AND id = ?";

Result<ClaimRecord> record_in(const SqlAnswer& answer, int row) {
  ClaimRecord record;
  record.id = expand_id(answer.bytes(row, 0));
  record.state = static_cast<ClaimState>(answer.number(row, 1));
  record.generation = static_cast<std::uint64_t>(answer.number(row, 2));
  record.fence = static_cast<std::uint64_t>(answer.number(row, 3));
  record.attempts = static_cast<std::uint32_t>(answer.number(row, 4));
  record.after_loss = static_cast<AfterLoss>(answer.number(row, 5));
  record.fingerprint = fingerprint_from(answer.bytes(row, 6));
  record.born_ms = answer.number(row, 7);
  record.changed_ms = answer.number(row, 8);
  record.lease_until_ms = answer.number(row, 9);
  record.owner = answer.bytes(row, 10);
  if (!answer.is_null(row, 11)) record.result = answer.bytes(row, 11);
  record.reason = answer.bytes(row, 12);
  record.steps = ONCE_TRY(decode_steps(answer.bytes(row, 13)));
  return record;
}

Status save(SqlSession& session, const SqlWords& words, std::int64_t scope,
            const ClaimRecord& record, bool is_new) {
  const CompactId id(record.id);
  const FingerprintBytes bytes = bytes_of(record.fingerprint);
  const Value fingerprint =
      record.fingerprint.version == 0 ? Value(nullptr) : Value(Blob{{bytes.data(), bytes.size()}});
  const std::string steps = encode_steps(record.steps);
  return session.send(
      is_new ? insert : update,
      {static_cast<int>(record.state), record.generation, record.fence, record.attempts,
       static_cast<int>(record.after_loss), fingerprint, record.born_ms, record.changed_ms,
       record.lease_until_ms, words.name(record.owner),
       record.result ? Value(Blob{*record.result}) : Value(nullptr), words.name(record.reason),
       Blob{steps}, scope, Blob{id.bytes()}});
}

// The claims of some ids, locked, and the time of the server.
struct Loaded {
  std::unordered_map<std::string, ClaimRecord> records;
  std::int64_t now_ms = 0;
  std::int64_t horizon_ms = 0;
};

template <class Item>
Result<Loaded> load(SqlSession& session, const SqlWords& words, std::int64_t scope,
                    std::span<const Item> items) {
  std::vector<std::string> ids;
  for (const Item& item : items) ids.emplace_back(CompactId(item.id).bytes());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  Loaded loaded;
  const auto take = [&](Result<std::unique_ptr<SqlAnswer>> answer) -> Status {
    if (!answer) return fail(std::move(answer).error());
    if ((*answer)->rows() == 0) return {};
    ClaimRecord record = ONCE_TRY(record_in(**answer, 0));
    loaded.records.emplace(record.id, std::move(record));
    return {};
  };
  const std::string select = std::string(select_one) + std::string(words.lock);
  for (const std::string& id : ids) ONCE_TRY(session.send(select, {scope, Blob{id}}, take));
  const auto times = ONCE_TRY(session.ask(
      fmt::format("SELECT {}, (SELECT horizon_ms FROM once_horizon WHERE scope = ?)", words.now_ms),
      {scope}));
  loaded.now_ms = times->number(0, 0);
  loaded.horizon_ms = times->is_null(0, 1) ? 0 : times->number(0, 1);
  return loaded;
}

// Lets `decide` have each claim that is there; what it says true for is written back.
template <class Item, class Decide>
Result<std::vector<bool>> update_each(SqlSession& session, const SqlWords& words,
                                      std::int64_t scope, std::span<const Item> items,
                                      std::int64_t skew_ms, const Decide& decide) {
  Loaded loaded = ONCE_TRY(load(session, words, scope, items));
  std::vector<bool> ours;
  for (const Item& item : items) {
    const auto found = loaded.records.find(std::string(item.id));
    ours.push_back(found != loaded.records.end() &&
                   decide(found->second, item, loaded.now_ms + skew_ms));
    if (ours.back()) ONCE_TRY(save(session, words, scope, found->second, false));
  }
  return ours;
}

// Somebody else made the claim between our look and our insert: look again.
bool is_race(const Error& error) { return error.tag == "constraint"; }

}  // namespace

Result<std::vector<ClaimAnswer>> SqlClaims::claim(std::string_view scope, const ClaimTerms& terms,
                                                  std::span<const ClaimRequest> requests) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_terms(terms));
  ONCE_TRY(check_requests(requests));
  constexpr int tries_max = 10;
  for (int attempt = 1;; ++attempt) {
    auto answers = books_.write([&](SqlSession& session) -> Result<std::vector<ClaimAnswer>> {
      const std::int64_t number = ONCE_TRY(books_.number_of(session, scope));
      Loaded loaded = ONCE_TRY(load(session, books_.words(), number, requests));
      std::vector<ClaimAnswer> made;
      for (const ClaimRequest& request : requests) {
        std::optional<ClaimRecord> row;
        const auto found = loaded.records.find(std::string(request.id));
        const bool is_new = found == loaded.records.end();
        if (!is_new) row = found->second;
        made.push_back(
            answer_claim(row, request, terms, loaded.now_ms + books_.skew_ms(), loaded.horizon_ms));
        const auto kind = made.back().kind;
        if (kind != ClaimAnswer::Kind::granted && kind != ClaimAnswer::Kind::doubtful) continue;
        ONCE_TRY(save(session, books_.words(), number, *row, is_new));
        loaded.records.insert_or_assign(row->id, *row);
      }
      return made;
    });
    if (answers || !is_race(answers.error())) return answers;
    if (attempt == tries_max)
      return fail(Remedy::retry, "conflict",
                  books_.where() + ": too many rivals for a claim; try again");
  }
}

Result<std::vector<bool>> SqlClaims::renew(std::string_view scope, std::int64_t lease_ms,
                                           std::span<const HeldClaim> claims) {
  return books_.write([&](SqlSession& session) -> Result<std::vector<bool>> {
    const std::int64_t number = ONCE_TRY(books_.number_of(session, scope));
    return update_each(session, books_.words(), number, claims, books_.skew_ms(),
                       [&](ClaimRecord& row, const HeldClaim& held, std::int64_t now_ms) {
                         return renew_claim(row, held.fence, lease_ms, now_ms);
                       });
  });
}

Result<std::vector<bool>> SqlClaims::change(std::string_view scope,
                                            std::span<const ClaimChange> changes) {
  ONCE_TRY(check_changes(changes));
  return books_.write([&](SqlSession& session) -> Result<std::vector<bool>> {
    const std::int64_t number = ONCE_TRY(books_.number_of(session, scope));
    return update_each(session, books_.words(), number, changes, books_.skew_ms(),
                       [&](ClaimRecord& row, const ClaimChange& change, std::int64_t now_ms) {
                         return change_claim(row, change, now_ms);
                       });
  });
}

Result<ClaimRecord> SqlClaims::force(std::string_view scope, const ClaimForce& force) {
  ONCE_TRY(check_force(force));
  return books_.write([&](SqlSession& session) -> Result<ClaimRecord> {
    const std::int64_t number = ONCE_TRY(books_.number_of(session, scope));
    Loaded loaded = ONCE_TRY(load(session, books_.words(), number, std::span(&force, 1)));
    if (loaded.records.empty()) return fail(missing_claim(scope, force.id));
    ClaimRecord& row = loaded.records.begin()->second;
    force_claim(row, force, loaded.now_ms + books_.skew_ms());
    ONCE_TRY(save(session, books_.words(), number, row, false));
    ONCE_TRY(books_.log_operation(session, number, force_action(force.to), force.id, force.reason));
    return row;
  });
}

Result<std::vector<ClaimRecord>> SqlClaims::claims(std::string_view scope,
                                                   std::optional<ClaimState> state,
                                                   std::string_view from_id,
                                                   std::size_t count_max) {
  constexpr std::size_t page_rows = 500;
  const std::int64_t now =
      ONCE_TRY(books_.read([&](SqlSession& session) { return books_.now_ms(session); }));
  // Most claims are settled: who asks for the others should not have to read them.
  const bool open_only = state && *state != ClaimState::done && *state != ClaimState::rejected;
  const std::string select = fmt::format(select_from, open_only ? "AND state IN (0, 1, 2)" : "");
  std::vector<ClaimRecord> records;
  std::string from(CompactId(from_id).bytes());
  while (records.size() < count_max) {
    const auto page =
        ONCE_TRY(books_.ask(select, {books_.words().name(scope), Blob{from}, page_rows}));
    for (int row = 0; row < page->rows() && records.size() < count_max; ++row) {
      ClaimRecord record = as_of(ONCE_TRY(record_in(*page, row)), now);
      if (!state || record.state == *state) records.push_back(std::move(record));
    }
    if (page->rows() < static_cast<int>(page_rows)) break;
    from = page->bytes(page->rows() - 1, 0) + '\0';
  }
  return records;
}

}  // namespace once
