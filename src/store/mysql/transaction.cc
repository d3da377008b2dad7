// SPDX-License-Identifier: Apache-2.0
// All ids of a batch are inserted in one round trip that skips those that are there. Unless all
// were new, another reads them back and tells by a token which of them are ours. On MySQL and
// MariaDB.
#include "store/mysql/transaction.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/handler_statement.h"
#include "model/ledger.h"
#include "model/message_row.h"
#include "model/random.h"
#include "store/mysql/connection.h"

namespace once {
namespace {

constexpr std::size_t ids_per_statement = 500;

constexpr std::string_view insert_into =
    "INSERT IGNORE INTO once_ledger (scope, id, born_ms, recorded_ms, at_offset, source_partition, "
    "outcome, admitted_by, fingerprint) VALUES ";
constexpr const char* insert_row = "(?, ?, ?, ?, ?, ?, 0, ?, ?)";
constexpr std::size_t values_per_row = 8;

// Many rows in one statement, for servers that do not take one statement for many rows.
Result<std::size_t> insert_rows(SqlConnection& connection, std::span<const Value> values) {
  std::size_t recorded = 0;
  const auto count = [&](Result<std::unique_ptr<SqlAnswer>> answered) -> Status {
    if (!answered) return fail(std::move(answered).error());
    recorded += static_cast<std::size_t>((*answered)->touched());
    return {};
  };
  while (!values.empty()) {
    const auto part = values.first(std::min(values_per_row * ids_per_statement, values.size()));
    std::string statement(insert_into);
    for (std::size_t row = 0; row < part.size() / values_per_row; ++row)
      statement += (row == 0 ? "" : ", ") + std::string(insert_row);
    ONCE_TRY(connection.send(statement, part, count, SqlStage::statement));
    values = values.subspan(part.size());
  }
  ONCE_TRY(connection.sync());
  return recorded;
}

}  // namespace

// Shared by all who admit, until they commit: who moves the horizon waits for them.
Result<MysqlTransaction::Moment> MysqlTransaction::moment() {
  if (moment_) return *moment_;
  const std::string ask = fmt::format(
      "SELECT horizon_ms, {} FROM once_horizon WHERE scope = ? LOCK IN SHARE MODE", mysql_now_ms);
  auto answer = ONCE_TRY(connection().ask(ask, {scope_number()}));
  if (answer->rows() == 0) {
    ONCE_TRY(connection().send("INSERT IGNORE INTO once_horizon (scope, horizon_ms) VALUES (?, 0)",
                               {scope_number()}));
    answer = ONCE_TRY(connection().ask(ask, {scope_number()}));
  }
  moment_ = {answer->number(0, 0), answer->number(0, 1)};
  return *moment_;
}

// Only a transaction that was begun so can be guarded: the first call of a procedure is tried again
// in the next one.
Status MysqlTransaction::allow(std::string_view statement) {
  if (first_keyword(statement, SqlDialect::mysql) != "call" ||
      static_cast<MysqlConnection&>(connection()).is_guarded())
    return {};
  guards_ = true;
  return fail(Remedy::retry, "conflict",
              where() + ": a procedure needs a transaction that it cannot commit; try again");
}

Status MysqlTransaction::record_ids(Admission& admission) {
  const Moment now = ONCE_TRY(moment());
  const auto token = static_cast<std::int64_t>(random_number());
  for (Admission::Known& known : admission.known())
    if (ledger_time(admission.entry(known).born_ms) < now.horizon_ms)
      known.kind = Verdict::Kind::too_old;
  const std::size_t recorded = ONCE_TRY(insert(admission, now, token));
  if (recorded == admission.known().size()) return {};  // all are new
  return look_up(admission, token);
}

Result<std::size_t> MysqlTransaction::insert(Admission& admission, const Moment& moment,
                                             std::int64_t token) {
  std::vector<Value> values;
  std::vector<FingerprintBytes> prints(admission.known().size());
  for (std::size_t k = 0; k < prints.size(); ++k) {
    const Admission::Known& known = admission.known()[k];
    if (known.kind == Verdict::Kind::too_old) continue;
    const Entry& entry = admission.entry(known);
    prints[k] = bytes_of(entry.fingerprint);
    const Value print = entry.fingerprint.version == 0
                            ? Value(nullptr)
                            : Value(Blob{{prints[k].data(), prints[k].size()}});
    values.insert(values.end(), {scope_number(), Blob{known.compact}, ledger_time(entry.born_ms),
                                 moment.now_ms, entry.offset, known.partition, token, print});
  }
  if (values.empty()) return std::size_t{0};
  auto& native = static_cast<MysqlConnection&>(connection());
  if (native.knows_bulk())
    return static_cast<std::size_t>(ONCE_TRY(native.run_bulk(
        fmt::format("{}{}", insert_into, insert_row), values, values.size() / values_per_row)));
  return insert_rows(native, values);
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
    std::string statement = fmt::format(
        "SELECT id, admitted_by, {} FROM once_ledger WHERE scope = ? AND id IN (", ledger_columns);
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
