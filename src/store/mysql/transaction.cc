// SPDX-License-Identifier: Apache-2.0
// All ids of a batch in one statement that skips those that are there, and one that reads them back
// and tells by a token which of them are ours. Both go in one packet, and work on MySQL and
// MariaDB.
#include "store/mysql/transaction.h"

#include <openssl/rand.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/assert.h"
#include "model/ledger.h"
#include "model/message_row.h"

namespace once {
namespace {

constexpr std::size_t ids_per_statement = 500;

std::int64_t random_token() {
  std::int64_t number = 0;
  ONCE_ASSERT(RAND_bytes(reinterpret_cast<unsigned char*>(&number), sizeof number) == 1);
  return number;
}

}  // namespace

// Shared by all who admit, until they commit: who moves the horizon waits for them.
Result<std::int64_t> MysqlTransaction::horizon_ms() {
  if (!horizon_ms_) {
    ONCE_TRY(connection().send("INSERT IGNORE INTO once_horizon VALUES (?, 0)", {scope_number()}));
    const auto answer = ONCE_TRY(
        connection().ask("SELECT horizon_ms FROM once_horizon WHERE scope = ? LOCK IN SHARE MODE",
                         {scope_number()}));
    horizon_ms_ = answer->number(0, 0);
  }
  return *horizon_ms_;
}

Status MysqlTransaction::record_ids(Admission& admission) {
  const std::int64_t horizon = ONCE_TRY(horizon_ms());
  const std::int64_t token = random_token();
  for (Admission::Known& known : admission.known())
    if (ledger_time(admission.entry(known).born_ms) < horizon) known.kind = Verdict::Kind::too_old;
  ONCE_TRY(insert(admission, horizon, token));
  return look_up(admission, token);
}

Status MysqlTransaction::insert(Admission& admission, std::int64_t horizon_ms, std::int64_t token) {
  std::string statement;
  std::vector<Value> values;
  std::vector<FingerprintBytes> prints(admission.known().size());
  const auto send = [&]() -> Status {
    if (values.empty()) return {};
    ONCE_TRY(connection().send(statement, values, {}, SqlStage::statement));
    values.clear();
    return {};
  };
  for (std::size_t k = 0; k < prints.size(); ++k) {
    const Admission::Known& known = admission.known()[k];
    const Entry& entry = admission.entry(known);
    if (ledger_time(entry.born_ms) < horizon_ms) continue;
    if (values.empty())
      statement =
          "INSERT IGNORE INTO once_ledger (scope, id, born_ms, recorded_ms, at_offset, "
          "source_partition, outcome, admitted_by, fingerprint) VALUES ";
    else
      statement += ", ";
    statement += "(?, ?, ?, CAST(unix_timestamp(now(3)) * 1000 AS SIGNED), ?, ?, 0, ?, ?)";
    prints[k] = bytes_of(entry.fingerprint);
    const Value print = entry.fingerprint.version == 0
                            ? Value(nullptr)
                            : Value(Blob{{prints[k].data(), prints[k].size()}});
    values.insert(values.end(), {scope_number(), Blob{known.compact}, ledger_time(entry.born_ms),
                                 entry.offset, known.partition, token, print});
    if (values.size() >= 7 * ids_per_statement) ONCE_TRY(send());
  }
  return send();
}

Status MysqlTransaction::look_up(Admission& admission, std::int64_t token) {
  std::size_t ours = 0;
  std::size_t others = 0;  // that were recorded before
  const auto take = [&](Result<std::unique_ptr<SqlAnswer>> answered) -> Status {
    if (!answered) return fail(std::move(answered).error());
    const SqlAnswer& answer = **answered;
    for (int row = 0; row < answer.rows(); ++row) {
      const std::string id = answer.bytes(row, 0);
      const auto known =
          std::lower_bound(admission.known().begin(), admission.known().end(), id,
                           [](const Admission::Known& one, const std::string& sought) {
                             return one.compact < sought;
                           });
      if (answer.number(row, 1) == token) {
        ++ours;
        continue;
      }
      ++others;
      Admission::take(*known, answer, row, 2);
    }
    return {};
  };
  for (std::size_t begin = 0; begin < admission.known().size(); begin += ids_per_statement) {
    std::string statement =
        "SELECT id, admitted_by, outcome, fingerprint, result FROM once_ledger "
        "WHERE scope = ? AND id IN (";
    std::vector<Value> values{scope_number()};
    const auto part = admission.known().subspan(begin).first(
        std::min(ids_per_statement, admission.known().size() - begin));
    for (const Admission::Known& known : part) {
      statement += values.size() == 1 ? "?" : ", ?";
      values.emplace_back(Blob{known.compact});
    }
    ONCE_TRY(connection().send(statement + ")", values, take, SqlStage::statement));
  }
  ONCE_TRY(connection().sync());
  std::size_t too_old = 0;
  for (const Admission::Known& known : admission.known())
    too_old += known.kind == Verdict::Kind::too_old ? 1 : 0;
  if (ours + others + too_old == admission.known().size()) return {};
  return fail(Remedy::retry, "conflict",
              where() + ": an id was freed while it was admitted; try again");
}

}  // namespace once
