// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
#include <once/result.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace once {

class SqlTransaction;
class KeyValueTransaction;

// A message that was handled, by which a topic is recognised: a topic that was deleted and created
// again under the same name has another message at this offset.
struct Witness {
  std::int64_t offset = -1;  // -1: none
  std::uint64_t digest = 0;

  bool operator==(const Witness&) const = default;
};

// How far the committed effects of (scope, partition) reach.
struct Position {
  std::int64_t offset = -1;  // the next offset to handle; -1: nothing was ever handled
  std::uint64_t fence = 0;   // grows with every owner; a smaller one may not write
  Witness witness = {};      // the last message that was handled

  // Two positions are the same place for the same owner.
  bool operator==(const Position& other) const {
    return offset == other.offset && fence == other.fence;
  }
};

// What `advance` records about a partition beside its offset. The horizon of a scope follows from
// the progress of all its partitions, whichever process owns them.
struct Progress {
  std::int64_t settled_ms = -1;  // the youngest birth among settled messages; only ever grows
  std::int64_t waiting_ms = -1;  // the oldest birth among messages delivered and not settled, or -1
  bool drained = false;          // everything that was there is settled: the store notes its time
  Witness witness = {};          // unset: the one that is stored stays
};

// What a message says, as opposed to which message it is: 128 bits of SHA-256 over a canonical,
// versioned projection. Version 0 means "not compared".
struct Fingerprint {
  std::uint8_t version = 0;
  std::array<std::uint8_t, 16> digest{};

  bool operator==(const Fingerprint&) const = default;
};

// An id on its way into the ledger.
struct Entry {
  std::string_view id;  // never empty
  Fingerprint fingerprint;
  std::int64_t born_ms = 0;  // when the intent was born; the same however often it is sent
  std::string_view partition;
  std::int64_t offset = 0;
  // A message that waited and is due: its record, whose outcome is `later`, counts as fresh. If it
  // is not in the store as this says, another owner has handled it, and it is a duplicate.
  Deferral deferral = {};
  // A parked message that was sent again on purpose: its record, if the outcome is `parked`, counts
  // as fresh, and it is parked no longer.
  bool replays_parked = false;
  // Asks whether messages of this key wait, of a deferral those before it. Without data: not.
  std::string_view order_key = {};
};

// What the ledger says about an id.
struct Verdict {
  enum class Kind : std::uint8_t {
    fresh,      // recorded now, in this transaction
    duplicate,  // recorded before (or earlier in this span); `stored` is its outcome
    mismatch,   // recorded before with another fingerprint: the id was used for something else
    too_old,    // born below the horizon and not recorded: it cannot be told from forgotten
  };
  Kind kind = Kind::fresh;
  Outcome stored;
  // Of a mismatch: where the message is to which the id belongs.
  std::string first_partition = {};
  std::int64_t first_offset = -1;
  // Of a fresh one, if messages of its key wait before it: the last of them, and in which time it
  // is due. 0: none does.
  std::int64_t behind_number = 0;
  std::int64_t behind_ms = -1;

  bool operator==(const Verdict&) const = default;
};

// The only door: whatever becomes true becomes true in `commit`. Used by one thread; holds one
// connection of the store until it is destroyed. Destroyed without a commit, it rolls back.
//
// Writes are queued and may be sent together: a method that returns nothing but a Status may
// report an earlier write's failure, and `commit` reports what is left. Only `admit` and reads
// have to wait for an answer.
class Transaction {
 public:
  Transaction() = default;
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  virtual ~Transaction() = default;

  // Moves the position of a partition from `from` to `to`, if it is still exactly `from`;
  // otherwise another owner has been here, and the transaction fails with the tag "fenced". `to`
  // may be where it is: then only the progress is recorded.
  [[nodiscard]] virtual Status advance(std::string_view partition, const Position& from,
                                       std::int64_t to, const Progress& progress = {}) = 0;

  // Records ids, one verdict each, duplicates inside the span included. In one round trip.
  [[nodiscard]] virtual Result<std::vector<Verdict>> admit(std::span<const Entry> entries) = 0;

  // Records the outcome of an id that was admitted in this transaction. `applied` without a result
  // needs no call. `no_effect` frees the id; `parked` keeps the whole message with its reason, and
  // `later` until it is due, with `delivery.attempt` as the number of attempts. An id that was not
  // admitted as fresh for this very delivery is left alone: the message is only kept. `retry` is
  // not an outcome that can be recorded. A delivery that has waited needs a call in any case: it
  // waits no longer, unless the outcome is `later` again.
  [[nodiscard]] virtual Status settle(const Delivery& delivery, const Outcome& outcome) = 0;

  // Puts a message into the outbox: it leaves for `destination` if and only if we commit.
  [[nodiscard]] virtual Status enqueue(std::string_view destination, const Message& message) = 0;

  // After an error with the remedy `recheck` nobody knows whether it was committed.
  [[nodiscard]] virtual Status commit() = 0;

  // The richer interfaces of this transaction, or nullptr where the store has none.
  virtual SqlTransaction* sql() { return nullptr; }
  virtual KeyValueTransaction* key_value() { return nullptr; }

  // Writes from now on belong to this message of the batch: a failed expectation names it.
  void on_behalf_of(std::size_t message) { message_ = message; }

 protected:
  std::optional<std::size_t> message_;
};

}  // namespace once
