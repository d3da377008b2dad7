// SPDX-License-Identifier: Apache-2.0
// One statement records all ids of a batch and answers for each that was not new.
#include "store/postgres/transaction.h"

#include <fmt/format.h>

#include "model/ledger.h"
#include "model/message_row.h"
#include "store/postgres/connection.h"

namespace once {
namespace {

// Those who admit share this lock until they commit; who moves the horizon has it alone. Otherwise
// an id could be forgotten between our look at the horizon and our insert, and count as new.
constexpr std::string_view share_horizon = "SELECT pg_advisory_xact_lock_shared(57223, $1)";

// Without asking: fails if one of them is there, and leaves out what was born below the horizon.
constexpr std::string_view record_unasked =
    "INSERT INTO once_ledger (scope, id, fingerprint, born_ms, recorded_ms, outcome, "
    "source_partition, at_offset) SELECT $1, e.id, e.fingerprint, e.born_ms, "
    "(SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint), 0, e.partition, e.at_offset "
    "FROM unnest($2::bytea[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[]) "
    "AS e (id, fingerprint, born_ms, partition, at_offset) WHERE e.born_ms >= "
    "(SELECT coalesce((SELECT horizon_ms FROM once_horizon WHERE scope = $1), 0))";

// Answers only ids that were not recorded now: one that is there already is looked up, and only
// then. A clock and a horizon for all of them; `e` is in the order of ids, and so is the insert.
constexpr std::string_view record_asked =
    "WITH e AS MATERIALIZED (SELECT * FROM unnest($2::bytea[], $3::bytea[], $4::bigint[], "
    "$5::bigint[], $6::bigint[]) WITH ORDINALITY AS e (id, fingerprint, born_ms, partition, "
    "at_offset, number)), "
    "h AS MATERIALIZED (SELECT coalesce((SELECT horizon_ms FROM once_horizon WHERE scope = $1), 0) "
    "AS ms, (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms), "
    "made AS (INSERT INTO once_ledger (scope, id, fingerprint, born_ms, recorded_ms, outcome, "
    "source_partition, at_offset) SELECT $1, e.id, e.fingerprint, e.born_ms, "
    "(SELECT now_ms FROM h), 0, e.partition, e.at_offset FROM e "
    "WHERE e.born_ms >= (SELECT ms FROM h) ON CONFLICT DO NOTHING RETURNING id) "
    "SELECT e.number, e.born_ms < (SELECT ms FROM h), l.* "
    "FROM e LEFT JOIN LATERAL (SELECT outcome, fingerprint, result, source_partition, at_offset "
    "FROM once_ledger WHERE scope = $1 AND id = e.id OFFSET 0) AS l ON true "
    "WHERE NOT EXISTS (SELECT FROM made WHERE made.id = e.id)";

Parameters parameters_of(Admission& admission, std::int64_t scope) {
  std::vector<std::string_view> ids, prints;
  std::vector<FingerprintBytes> bytes(admission.known().size());
  std::vector<std::int64_t> births, partitions, offsets;
  for (std::size_t k = 0; k < bytes.size(); ++k) {
    const Admission::Known& known = admission.known()[k];
    const Entry& entry = admission.entry(known);
    ids.push_back(known.compact);
    bytes[k] = bytes_of(entry.fingerprint);
    prints.push_back(entry.fingerprint.version == 0
                         ? std::string_view()
                         : std::string_view(bytes[k].data(), bytes[k].size()));
    births.push_back(ledger_time(entry.born_ms));
    partitions.push_back(known.partition);
    offsets.push_back(entry.offset);
  }
  Parameters made{scope};
  made.add_array(ids);
  made.add_array(prints);
  made.add_array(births);
  made.add_array(partitions);
  made.add_array(offsets);
  return made;
}

}  // namespace

Status PostgresTransaction::record_ids(Admission& admission) {
  auto& native = static_cast<PgConnection&>(connection());
  ONCE_TRY(native.send_native(share_horizon, Parameters{scope_number()}, {}));
  const Parameters parameters = parameters_of(admission, scope_number());
  if (guess_.is_new()) {
    if (ONCE_TRY(record_new(parameters, admission.known().size()))) return {};
    guess_.was_wrong();
  }
  return record_asking(admission, parameters);
}

Result<bool> PostgresTransaction::record_new(const Parameters& parameters, std::size_t count) {
  auto& native = static_cast<PgConnection&>(connection());
  bool refused = false;
  std::int64_t recorded = 0;
  const auto take = [&](Result<std::unique_ptr<SqlAnswer>> answered) -> Status {
    if (answered) {
      recorded = (*answered)->touched();
      return {};
    }
    refused = answered.error().tag == "constraint";
    return fail(std::move(answered).error());
  };
  ONCE_TRY(native.send("SAVEPOINT once_admit"));
  ONCE_TRY(native.send_native(record_unasked, parameters, take));
  // An error of what was queued before ours is not to be forgotten.
  if (Status done = native.sync(); !done && !(refused && done.error().tag == "constraint"))
    return fail(std::move(done).error());
  if (!refused && recorded == static_cast<std::int64_t>(count)) {
    ONCE_TRY(native.send("RELEASE SAVEPOINT once_admit"));
    return true;
  }
  ONCE_TRY(native.send("ROLLBACK TO SAVEPOINT once_admit"));
  return false;
}

Status PostgresTransaction::record_asking(Admission& admission, const Parameters& parameters) {
  std::vector<Admission::Known*> unseen;
  const auto take = [&](Result<std::unique_ptr<SqlAnswer>> answered) -> Status {
    if (!answered) return fail(std::move(answered).error());
    const SqlAnswer& answer = **answered;
    if (answer.rows() > 0) guess_.was_wrong();
    for (int row = 0; row < answer.rows(); ++row) {
      auto& known = admission.known()[static_cast<std::size_t>(answer.number(row, 0) - 1)];
      if (!answer.is_null(row, 2))
        Admission::take(known, answer, row, 2);
      else if (answer.bytes(row, 1) == "t")
        known.kind = Verdict::Kind::too_old;
      else
        unseen.push_back(&known);
    }
    return {};
  };
  auto& native = static_cast<PgConnection&>(connection());
  ONCE_TRY(native.send_native(record_asked, parameters, take));
  ONCE_TRY(native.sync());
  return unseen.empty() ? Status() : look_up(unseen);
}

// Recorded by a rival that committed while we waited for it: too late for our first look.
Status PostgresTransaction::look_up(std::span<Admission::Known* const> unseen) {
  for (Admission::Known* known : unseen) {
    const auto answer = ONCE_TRY(connection().ask(
        fmt::format("SELECT {} FROM once_ledger WHERE scope = ? AND id = ?", ledger_columns),
        {scope_number(), Blob{known->compact}}));
    if (answer->rows() == 0)
      return fail(Remedy::retry, "conflict",
                  where() + ": an id was freed while it was admitted; try again");
    Admission::take(*known, *answer, 0, 0);
  }
  return {};
}

}  // namespace once
