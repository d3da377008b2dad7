// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/claims.h>
#include <once/clock.h>
#include <once/result.h>
#include <once/sql.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace once {

// The strategies by which a write takes effect once although it is asked for twice, over the tables
// of the user and in the transaction of the user. Which to choose when, what each costs and what it
// cannot do is in docs/strategies.md.
//
// All of them run on an SqlTransaction and on a KeyValueTransaction; there a row is kept as one
// value under the name of the table and the values of the key. The statements below are SQLite's;
// docs/strategies.md has those of the other dialects. Values are always bound. Names of tables and
// columns are of the form [a-z_][a-z0-9_]{0,62}, those of tables do not begin with "once_", and
// anything else is refused before a statement is made. A value of a key is never null.

// A column and its value.
struct Column {
  std::string_view name;
  Value value;
};

// Columns with their values, written as {{"name", 1}, {"other", "text"}}. Only refers to them: it
// is for parameters.
class Columns {
 public:
  Columns() = default;
  Columns(std::initializer_list<Column> columns) : columns_(columns.begin(), columns.size()) {}
  Columns(std::span<const Column> columns) : columns_(columns) {}

  auto begin() const { return columns_.begin(); }
  auto end() const { return columns_.end(); }
  std::size_t size() const { return columns_.size(); }

 private:
  std::span<const Column> columns_;
};

// --- unique: a row that may be there once. The flow table (transfer, account), the dedup table
// (source_type, serial_no). The key needs a primary key or a unique index of exactly its columns.
//
//   INSERT INTO flow (transfer, account, amount) VALUES (?, ?, ?)
//     ON CONFLICT (transfer, account) DO NOTHING

enum class UniqueAnswer : std::uint8_t {
  inserted,  // now, in this transaction
  present,   // a row with this key was there, and is left as it was
};
[[nodiscard]] Result<UniqueAnswer> unique(Transaction& transaction, std::string_view table,
                                          Columns key, Columns rest = {});

// --- version: optimistic. The row has a column `version` that grows with every write.

enum class VersionAnswer : std::uint8_t {
  changed,
  kept,       // the function said so; nothing was written
  missing,    // there is no such row
  contended,  // the row has another version; nothing was written
};

// Writes if the row still has the version that the message knows. A message that comes twice finds
// its own write the second time: that too is `contended`.
//
//   UPDATE account SET owner = ?, version = ? WHERE name = ? AND version = ?
[[nodiscard]] Result<VersionAnswer> version(Transaction& transaction, std::string_view table,
                                            Columns key, std::int64_t expected, Columns changes);

// Reads some columns, lets `edit` change them in place, and writes those that changed if the
// version is still the one that was read; otherwise it starts again, and then reads with a lock.
// `edit` may run several times. Text is written as text: a column of bytes is left unchanged.
//
//   SELECT balance, version FROM account WHERE name = ?
//   UPDATE account SET balance = ?, version = ? WHERE name = ? AND version = ?
enum class Edit : std::uint8_t { write, keep };
using EditRow = std::function<Result<Edit>(Row& row)>;
[[nodiscard]] Result<VersionAnswer> version(Transaction& transaction, std::string_view table,
                                            Columns key,
                                            std::initializer_list<std::string_view> columns,
                                            const EditRow& edit, std::uint32_t attempts_max = 3);

// Always an error, with the schedule that breaks it: "if the balance is still 500" is no
// precondition, since a value can come back. Use `version`.
[[nodiscard]] Status precondition_equals(std::string_view table, std::string_view column);

// --- state_machine: a row whose column `state` follows declared transitions.

struct Transition {
  std::string from;
  std::string to;
};

// What became of a message that wants to move a row.
struct Move {
  enum class Kind : std::uint8_t {
    moved,       // `reached` says through which states, in order
    stale,       // the row is there already, or beyond
    early,       // the row is on the way, but something in between has not come yet
    held,        // as early; kept in the hold table until the gap is filled
    impossible,  // no way leads there from where the row is
  };
  Kind kind = Kind::moved;
  std::string from = {};  // where the row was found; empty: there was none, or nobody looked
  std::string to = {};
  std::vector<std::string> reached = {};

  bool operator==(const Move&) const = default;
};

constexpr const char* name_of(Move::Kind kind) {
  switch (kind) {
    case Move::Kind::moved: return "moved";
    case Move::Kind::stale: return "stale";
    case Move::Kind::early: return "early";
    case Move::Kind::held: return "held";
    case Move::Kind::impossible: return "impossible";
  }
  return "?";
}

struct StateMachineOptions {
  std::string column = "state";
  // Where early messages are kept, so that they do not hold up the others: a table with the key
  // columns of the row and the state column, together unique. At most one row per key and state.
  // Empty: early messages are not held.
  std::string hold_table = {};
};

// States and the ways between them, declared once and checked when made. Never changes.
//
// The states have no way back: in a circle a late message could not be told from a new one
// (open -> closed -> open), so that circles are refused.
class StateMachine {
 public:
  // The first state is the one in which a row is made; all others can be reached from it.
  static Result<StateMachine> make(std::vector<std::string> states,
                                   std::vector<Transition> transitions,
                                   StateMachineOptions options = {});

  // Moves the row to a state, and writes other columns with it. A move to the first state makes
  // the row.
  //
  //   UPDATE ride SET state = ?, driver = ? WHERE id = ? AND state IN (?, ?)
  //   SELECT state FROM ride WHERE id = ?                   (only if that touched no row)
  //   INSERT INTO ride (id, state, driver) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING
  //                                                         (only for the first state)
  // and with a hold table, for an early message and for each way on from a state that was reached:
  //   INSERT INTO ride_hold (id, state) VALUES (?, ?) ON CONFLICT (id, state) DO NOTHING
  //   SELECT state FROM ride_hold WHERE id = ? AND state = ?
  [[nodiscard]] Result<Move> move(Transaction& transaction, std::string_view table, Columns key,
                                  std::string_view to, Columns changes = {}) const;

 private:
  class Attempt;  // one call of `move`

  StateMachine() = default;
  Status close();
  std::size_t index_of(std::string_view state) const;  // the number of states: unknown
  bool leads(std::size_t from, std::size_t to) const { return reach_[from][to]; }

  std::vector<std::string> states_;
  std::vector<std::vector<std::size_t>> before_;  // of each state, those with a way to it
  std::vector<std::vector<std::size_t>> after_;
  std::vector<std::vector<bool>> reach_;  // [from][to], over any number of ways
  StateMachineOptions options_;
};

// For how long an early message is tried again. While it is, the messages behind it in its lane
// wait: where the gap is filled by one of those, use a hold table.
struct EarlyPolicy {
  std::uint32_t attempts_max = 5;  // then it is parked; the pipeline has a limit of its own, too
  std::int64_t after_ms = 100;
};

// What a handler says about a move: moved and held are `applied`, stale is `rejected`, early is
// `retry` up to a limit and then parked, impossible is `parked`. `attempt` is the delivery's.
[[nodiscard]] Outcome outcome_of(const Move& move, std::uint32_t attempt,
                                 const EarlyPolicy& early = {});

// --- row_lock: pessimistic. Locks rows until the end of the transaction, in the order of their
// keys, whatever the order in which they are named, so that two who do this never wait for each
// other in a circle. A row that is locked is asked for again until the wait is over; 0 only tries.
//
//   SELECT balance FROM account WHERE name = ? FOR UPDATE SKIP LOCKED      (PostgreSQL, MySQL)
//   SELECT balance FROM account WHERE name = ?                             (SQLite)
//
// A transaction of SQLite is the only writer and needs no lock of a row. On a key-value store two
// who lock the same row cannot both commit: the second to do so is answered with the tag
// "conflict" and the remedy `retry`.
enum class LockAnswer : std::uint8_t {
  locked,   // all of them
  busy,     // another has one of them; those before it are locked: return `retry`
  missing,  // one of them is not there
};
struct LockedRows {
  LockAnswer answer = LockAnswer::locked;
  // If all are locked, the columns that were asked for, in the order in which the rows were named.
  // Decide by these: a later SELECT may show the rows as they were before they were locked, where
  // a transaction has one snapshot from beginning to end (MySQL's REPEATABLE READ).
  std::vector<Row> rows = {};
};
[[nodiscard]] Result<LockedRows> row_lock(Transaction& transaction, std::string_view table,
                                          std::string_view key, std::span<const Value> values,
                                          std::span<const std::string_view> columns,
                                          std::int64_t wait_ms_max = 0);
[[nodiscard]] inline Result<LockedRows> row_lock(Transaction& transaction, std::string_view table,
                                                 std::string_view key,
                                                 std::initializer_list<Value> values,
                                                 std::initializer_list<std::string_view> columns,
                                                 std::int64_t wait_ms_max = 0) {
  return row_lock(transaction, table, key, std::span(values.begin(), values.size()),
                  std::span(columns.begin(), columns.size()), wait_ms_max);
}

// --- fenced_lock: a lock with a lease, for work that is longer than a transaction. A lock alone
// proves nothing: its owner may be paused until the lease has run out. So each owner has a fence
// that is larger than all before it, and the row that is guarded refuses smaller ones.

inline constexpr std::string_view lock_scope = "lock";

// A lock that is held. Given back when it is released or destroyed; not later than the lease, which
// `Claims` renews. Used by one thread; must not outlive its Claims.
class FencedLock {
 public:
  explicit FencedLock(Ticket ticket) : ticket_(std::move(ticket)) {}

  std::uint64_t fence() const { return ticket_.fence(); }
  // Another has it. What matters is the fence; this only saves work.
  bool lost() const { return ticket_.lost(); }
  // Fails with the tag "superseded" if another has it.
  [[nodiscard]] Status release() { return ticket_.release("released"); }

 private:
  Ticket ticket_;
};

using LockVerdict = std::variant<FencedLock, InProgress, Unavailable>;

// Takes the lock of this name, of all programs on the store of these claims; whether it waits is
// the claims' option. It is a claim that is released and never settled.
[[nodiscard]] inline LockVerdict fenced_lock(Claims& claims, std::string_view name) {
  ClaimRequest request;
  request.id = name;
  ClaimVerdict verdict = claims.begin(lock_scope, request);
  if (auto* execute = std::get_if<Execute>(&verdict)) return FencedLock(std::move(execute->ticket));
  if (auto* doubt = std::get_if<InDoubt>(&verdict)) {
    // Its last owner was lost. The fence keeps that one out, so that nothing is in doubt.
    if (Status mine = doubt->ticket.proceed(); !mine) return Unavailable{mine.error()};
    return FencedLock(std::move(doubt->ticket));
  }
  if (const auto* busy = std::get_if<InProgress>(&verdict)) return *busy;
  if (const auto* away = std::get_if<Unavailable>(&verdict)) return *away;
  return Unavailable{{Remedy::stop, "config",
                      "the lock \"" + std::string(name) +
                          "\" was settled as a claim and is no lock any more; do not use "
                          "AfterLoss::give_up for locks",
                      std::nullopt}};
}

enum class FenceAnswer : std::uint8_t {
  written,
  stale,    // one with a larger fence has written; nothing was written
  missing,  // there is no such row
};
// Writes a row with a column `fence`, which then refuses smaller ones.
//
//   UPDATE stock SET left = ?, fence = ? WHERE item = ? AND fence <= ?
[[nodiscard]] Result<FenceAnswer> fenced_write(Transaction& transaction, std::string_view table,
                                               Columns key, std::uint64_t fence, Columns changes);

// --- token: issued once, redeemed once. The table does not hold the tokens, only digests:
//
//   CREATE TABLE token (digest VARCHAR(32) PRIMARY KEY, issued_ms BIGINT NOT NULL,
//                       expires_ms BIGINT NOT NULL, used_ms BIGINT NOT NULL)

// 32 hexadecimal digits, 128 random bits, good for this subject only.
//
//   INSERT INTO token (digest, issued_ms, expires_ms, used_ms) VALUES (?, ?, ?, 0)
//     ON CONFLICT (digest) DO NOTHING
[[nodiscard]] Result<std::string> issue_token(Transaction& transaction, std::string_view table,
                                              std::string_view subject, std::int64_t good_for_ms,
                                              Clock& clock = system_clock());

enum class TokenAnswer : std::uint8_t {
  redeemed,  // now, in this transaction
  used,      // before
  unknown,   // never issued for this subject, or removed since
  expired,   // without having been used
};
//   UPDATE token SET used_ms = ? WHERE digest = ? AND used_ms = 0 AND expires_ms > ?
//   SELECT used_ms FROM token WHERE digest = ?            (only if that touched no row)
[[nodiscard]] Result<TokenAnswer> redeem_token(Transaction& transaction, std::string_view table,
                                               std::string_view subject, std::string_view token,
                                               Clock& clock = system_clock());

}  // namespace once
