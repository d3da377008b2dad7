// SPDX-License-Identifier: Apache-2.0
// What a session is set to, and how its transactions begin and end.
#include <fmt/format.h>

#include <array>

#include "store/mysql/connection.h"

namespace once {
namespace {

// Strict: what does not fit is an error, not a warning. Read committed: a duplicate that waited for
// its rival must see what that has written, and gaps are not locked. UTC: local times are not
// unique when summer ends. NAMES without a collation: so texts that are parameters of a prepared
// statement are compared as those that are written into one.
constexpr std::array<std::string_view, 3> settings{
    "SET NAMES utf8mb4", "SET SESSION TRANSACTION ISOLATION LEVEL read committed, READ WRITE",
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00', "
    "autocommit = 1, completion_type = 0, innodb_lock_wait_timeout = 10, lock_wait_timeout = 10, "
    "foreign_key_checks = 1, unique_checks = 1, sql_safe_updates = 0, sql_auto_is_null = 0, "
    "sql_big_selects = 1, sql_select_limit = 18446744073709551615, "
    "default_storage_engine = InnoDB, default_tmp_storage_engine = InnoDB"};

}  // namespace

Status MysqlConnection::configure() {
  for (const std::string_view setting : settings) ONCE_TRY(send(setting));
  const auto answer = ONCE_TRY(ask("SELECT @@max_allowed_packet"));
  packet_bytes_max_ = static_cast<std::size_t>(answer->number(0, 0));
  return {};
}

Status MysqlConnection::begin() {
  return send("START TRANSACTION READ WRITE", {}, {}, SqlStage::begin);
}

Status MysqlConnection::begin_guarded() {
  guard_ = fmt::format("'once-{}'", mysql_thread_id(&handle_));  // no two sessions have the same
  return send("XA START " + guard_, {}, {}, SqlStage::begin);
}

Status MysqlConnection::commit() {
  if (guard_.empty()) return send("COMMIT", {}, {}, SqlStage::commit);
  ONCE_TRY(send("XA END " + guard_));
  return send(fmt::format("XA COMMIT {} ONE PHASE", guard_), {}, {}, SqlStage::commit);
}

// Every answer says whether a transaction is open.
void MysqlConnection::watch(SqlStage stage, std::string_view statement) {
  const bool was_open = in_transaction_ && stage != SqlStage::commit;
  in_transaction_ = (handle_.server_status & SERVER_STATUS_IN_TRANS) != 0 &&
                    (was_open || stage == SqlStage::begin);
  if (was_open && !in_transaction_) remember(fail(transaction_lost(where_, statement)));
  if (stage == SqlStage::commit) guard_.clear();
}

bool MysqlConnection::end_transaction() {
  in_transaction_ = false;
  if (guard_.empty()) return mysql_rollback(&handle_) == 0;
  // After a deadlock it has ended already.
  (void)command("XA END " + guard_);
  const bool ended = command("XA ROLLBACK " + guard_);
  guard_.clear();
  return ended;
}

bool MysqlConnection::reset() {
  pending_.clear();
  pending_bytes_ = 0;
  first_ = {};
  if (broken_) return false;
  if (!discard_answers() || !end_transaction()) return false;
  if (!session_changed_) return true;
  // Variables, temporary tables, locks and prepared statements go.
  session_changed_ = false;
  bulk_.clear();
  sets_.clear();
  return mysql_reset_connection(&handle_) == 0 && configure();
}

}  // namespace once
