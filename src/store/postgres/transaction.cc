// SPDX-License-Identifier: Apache-2.0
// One statement records all ids of a batch and answers a verdict for each.
#include "store/postgres/transaction.h"

#include "base/assert.h"
#include "model/ledger.h"
#include "model/message_row.h"
#include "store/postgres/connection.h"

namespace once {
namespace {

// Those who admit share this lock until they commit; who moves the horizon has it alone. Otherwise
// an id could be forgotten between our look at the horizon and our insert, and count as new.
constexpr std::string_view share_horizon = "SELECT pg_advisory_xact_lock_shared(57223, $1)";

// An id that is there already is looked up, and only then.
constexpr std::string_view record =
    "WITH e AS (SELECT * FROM unnest($2::bytea[], $3::bytea[], $4::bigint[], $5::bigint[], "
    "$6::bigint[]) WITH ORDINALITY AS e (id, fingerprint, born_ms, partition, at_offset, number)), "
    "h AS (SELECT coalesce((SELECT horizon_ms FROM once_horizon WHERE scope = $1), 0) AS ms), "
    "made AS (INSERT INTO once_ledger (scope, id, fingerprint, born_ms, recorded_ms, outcome, "
    "source_partition, at_offset) SELECT $1, e.id, e.fingerprint, e.born_ms, "
    "(extract(epoch FROM clock_timestamp()) * 1000)::bigint, 0, e.partition, e.at_offset "
    "FROM e, h WHERE e.born_ms >= h.ms ORDER BY e.number ON CONFLICT DO NOTHING RETURNING id) "
    "SELECT e.number, made.id IS NOT NULL, e.born_ms < h.ms, l.outcome, l.fingerprint, l.result "
    "FROM e CROSS JOIN h LEFT JOIN made ON made.id = e.id LEFT JOIN LATERAL "
    "(SELECT outcome, fingerprint, result FROM once_ledger "
    "WHERE made.id IS NULL AND scope = $1 AND id = e.id OFFSET 0) AS l ON true";

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
  std::vector<Admission::Known*> unseen;
  const auto take = [&](Result<std::unique_ptr<SqlAnswer>> answered) -> Status {
    if (!answered) return fail(std::move(answered).error());
    const SqlAnswer& answer = **answered;
    ONCE_ASSERT(static_cast<std::size_t>(answer.rows()) == admission.known().size());
    for (int row = 0; row < answer.rows(); ++row) {
      auto& known = admission.known()[static_cast<std::size_t>(answer.number(row, 0) - 1)];
      if (answer.bytes(row, 1) == "t") continue;
      if (!answer.is_null(row, 3))
        Admission::take(known, answer, row, 3);
      else if (answer.bytes(row, 2) == "t")
        known.kind = Verdict::Kind::too_old;
      else
        unseen.push_back(&known);
    }
    return {};
  };
  ONCE_TRY(native.send_native(share_horizon, Parameters{scope_number()}, {}));
  ONCE_TRY(native.send_native(record, parameters_of(admission, scope_number()), take));
  ONCE_TRY(native.sync());
  return unseen.empty() ? Status() : look_up(unseen);
}

// Recorded by a rival that committed while we waited for it: too late for our first look.
Status PostgresTransaction::look_up(std::span<Admission::Known* const> unseen) {
  for (Admission::Known* known : unseen) {
    const auto answer = ONCE_TRY(connection().ask(
        "SELECT outcome, fingerprint, result FROM once_ledger WHERE scope = ? AND id = ?",
        {scope_number(), Blob{known->compact}}));
    if (answer->rows() == 0)
      return fail(Remedy::retry, "conflict",
                  where() + ": an id was freed while it was admitted; try again");
    Admission::take(*known, *answer, 0, 0);
  }
  return {};
}

}  // namespace once
