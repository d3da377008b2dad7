// SPDX-License-Identifier: Apache-2.0
// One statement records all ids of a batch and answers a verdict for each.
#include <algorithm>
#include <numeric>
#include <utility>

#include "base/assert.h"
#include "model/compact_id.h"
#include "model/ledger.h"
#include "model/message_row.h"
#include "store/postgres/text.h"
#include "store/postgres/transaction.h"

namespace once {
namespace {

// Those who admit share this lock until they commit; who moves the horizon has it alone. Otherwise
// an id could be forgotten between our look at the horizon and our insert, and count as new.
constexpr std::string_view share_horizon = "SELECT pg_advisory_xact_lock_shared(57223, $1)";

// The rows come sorted by id, so that two transactions that want the same ids meet in one order. An
// id that is there already is looked up, and only then.
constexpr std::string_view record =
    "WITH e AS (SELECT * FROM unnest($2::bytea[], $3::bytea[], $4::bigint[], $5::bigint[], "
    "$6::bigint[]) WITH ORDINALITY AS e (id, fingerprint, born_ms, partition, at_offset, number)), "
    "h AS (SELECT coalesce((SELECT horizon_ms FROM once_horizon WHERE scope = $1), 0) AS ms), "
    "made AS (INSERT INTO once_ledger (scope, id, fingerprint, born_ms, recorded_ms, outcome, "
    "partition, at_offset) SELECT $1, e.id, e.fingerprint, e.born_ms, " ONCE_PG_NOW_MS
    ", 0, e.partition, e.at_offset FROM e, h WHERE e.born_ms >= h.ms ORDER BY e.number "
    "ON CONFLICT DO NOTHING RETURNING id) "
    "SELECT e.number, made.id IS NOT NULL, e.born_ms < h.ms, l.outcome, l.fingerprint, l.result "
    "FROM e CROSS JOIN h LEFT JOIN made ON made.id = e.id LEFT JOIN LATERAL "
    "(SELECT outcome, fingerprint, result FROM once_ledger "
    "WHERE made.id IS NULL AND scope = $1 AND id = e.id OFFSET 0) AS l ON true";

constexpr std::string_view look_up =
    "SELECT id, outcome, fingerprint, result FROM once_ledger "
    "WHERE scope = $1 AND id = ANY ($2::bytea[])";

}  // namespace

// The ids of a span, each once, and what the ledger said about them.
class PostgresTransaction::Admission {
 public:
  struct Known {
    std::string compact;
    std::size_t first = 0;  // the entry that goes into the ledger
    std::int64_t partition = 0;
    Verdict::Kind kind = Verdict::Kind::fresh;
    bool found = false;  // a record was there before
    Fingerprint fingerprint = {};
    Outcome stored = {};
  };

  explicit Admission(std::span<const Entry> entries) : entries_(entries), index_(entries.size()) {
    std::unordered_map<std::string_view, std::size_t> seen;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const auto [at, is_new] = seen.emplace(entries[i].id, known_.size());
      if (is_new) known_.push_back({std::string(CompactId(entries[i].id).bytes()), i});
      index_[i] = at->second;
    }
    order_.resize(known_.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::sort(order_.begin(), order_.end(),
              [&](std::size_t a, std::size_t b) { return known_[a].compact < known_[b].compact; });
  }

  std::vector<Known>& known() { return known_; }
  Known& sorted(std::size_t place) { return known_[order_[place]]; }
  const Entry& entry(const Known& known) const { return entries_[known.first]; }

  Parameters parameters(std::int64_t scope) {
    std::vector<std::string_view> ids, prints;
    std::vector<FingerprintBytes> bytes(known_.size());
    std::vector<std::int64_t> births, partitions, offsets;
    for (std::size_t place = 0; place < order_.size(); ++place) {
      const Known& one = sorted(place);
      const Entry& from = entry(one);
      ids.push_back(one.compact);
      bytes[place] = bytes_of(from.fingerprint);
      prints.push_back(from.fingerprint.version == 0
                           ? std::string_view()
                           : std::string_view(bytes[place].data(), bytes[place].size()));
      births.push_back(ledger_time(from.born_ms));
      partitions.push_back(one.partition);
      offsets.push_back(from.offset);
    }
    Parameters made{scope};
    made.add_array(ids);
    made.add_array(prints);
    made.add_array(births);
    made.add_array(partitions);
    made.add_array(offsets);
    return made;
  }

  // A verdict for each entry: of equal ids the first is what the ledger said, the others are its
  // duplicates.
  std::vector<Verdict> verdicts() const {
    std::vector<Verdict> made(entries_.size());
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const Known& one = known_[index_[i]];
      if (one.kind == Verdict::Kind::too_old ||
          (one.kind == Verdict::Kind::fresh && i == one.first))
        made[i].kind = one.kind;
      else
        made[i] = compared(one, entries_[i]);
    }
    return made;
  }

 private:
  Verdict compared(const Known& one, const Entry& offered) const {
    const Fingerprint& stored = one.found ? one.fingerprint : entry(one).fingerprint;
    return {contradicts(stored, offered.fingerprint) ? Verdict::Kind::mismatch
                                                     : Verdict::Kind::duplicate,
            one.stored};
  }

  std::span<const Entry> entries_;
  std::vector<std::size_t> index_;  // of each entry in known_
  std::vector<Known> known_;
  std::vector<std::size_t> order_;  // by compact id
};

Result<std::vector<Verdict>> PostgresTransaction::admit(std::span<const Entry> entries) {
  ONCE_TRY(check_open());
  ONCE_TRY(check_entries(entries));
  if (entries.empty()) return std::vector<Verdict>{};
  return keep(admit_now(entries));
}

Result<std::vector<Verdict>> PostgresTransaction::admit_now(std::span<const Entry> entries) {
  ONCE_TRY(write_settled());  // an id that was freed in this transaction is free
  Admission admission(entries);
  for (auto& known : admission.known())
    known.partition = ONCE_TRY(store_.number_of(admission.entry(known).partition));
  const auto take = [](Admission::Known& known, const Answer& answer, int row, int column) {
    known.found = true;
    known.kind = Verdict::Kind::duplicate;
    known.stored = {static_cast<Outcome::Kind>(answer.number(row, column)),
                    answer.bytes(row, column + 2), 0};
    known.fingerprint = fingerprint_from(answer.bytes(row, column + 1));
  };
  ONCE_TRY(connection().send(share_horizon, {scope_number_}));
  const Answer answer = ONCE_TRY(connection().ask(record, admission.parameters(scope_number_)));
  ONCE_ASSERT(static_cast<std::size_t>(answer.rows()) == admission.known().size());
  std::vector<std::string_view> unseen;
  for (int row = 0; row < answer.rows(); ++row) {
    auto& known = admission.sorted(static_cast<std::size_t>(answer.number(row, 0) - 1));
    if (answer.text(row, 1) == "t") continue;
    if (!answer.is_null(row, 3))
      take(known, answer, row, 3);
    else if (answer.text(row, 2) == "t")
      known.kind = Verdict::Kind::too_old;
    else
      unseen.push_back(known.compact);
  }
  if (!unseen.empty()) {
    // Recorded by a rival that committed while we waited for it: too late for our first look.
    Parameters parameters{scope_number_};
    parameters.add_array(unseen);
    const Answer late = ONCE_TRY(connection().ask(look_up, parameters));
    if (static_cast<std::size_t>(late.rows()) != unseen.size())
      return fail(Remedy::retry, "conflict",
                  store_.where_ + ": an id was freed while it was admitted; try again");
    for (auto& known : admission.known())
      for (int row = 0; row < late.rows(); ++row)
        if (late.bytes(row, 0) == known.compact) take(known, late, row, 1);
  }
  for (const auto& known : admission.known())
    if (known.kind == Verdict::Kind::fresh)
      fresh_[std::string(admission.entry(known).id)] = {known.partition,
                                                        admission.entry(known).offset};
  return admission.verdicts();
}

}  // namespace once
