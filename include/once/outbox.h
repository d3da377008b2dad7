// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/clock.h>
#include <once/message.h>
#include <once/observe.h>
#include <once/result.h>
#include <once/sink.h>
#include <once/store.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace once {

// Where an outbox row goes: fixed, durably, before it is sent for the first time, so that a
// resend after a crash is the same message with the same stamp at the same partition.
struct Route {
  std::uint32_t partition = 0;
  std::uint64_t sequence = 0;  // counts the rows of one (destination, partition) without holes

  bool operator==(const Route&) const = default;
};

struct OutboxRow {
  std::int64_t number = 0;
  std::string destination;
  Message message;
  std::optional<Route> route;
};

// The outbox of a store, as the relay sees it; handlers only ever `enqueue` in a transaction.
// `fence` is the relay's, from Store::take(relay_scope, destination): a stale relay is refused
// with the tag "fenced".
class Outbox {
 public:
  virtual ~Outbox() = default;

  // The destinations for which rows are waiting.
  [[nodiscard]] virtual Result<std::vector<std::string>> destinations() = 0;

  // The oldest unsent rows of a destination. Those with a route come first, by sequence: they may
  // have been sent already. Then the others, in the order of their numbers; a row whose transaction
  // took its number early and committed late is found when it has committed.
  [[nodiscard]] virtual Result<std::vector<OutboxRow>> pending(std::string_view destination,
                                                               std::size_t count_max) = 0;

  // Gives rows their routes: `partition` as asked, `sequence` counted on by the outbox. Durable,
  // and visible in `pending`, when it returns. A row that has a route keeps it. `sequences`, if
  // given, says for each row which one the destination will take for it: where the outbox counts
  // differently, nothing is changed, and the error has the tag "diverged".
  [[nodiscard]] virtual Status assign(std::string_view destination, std::uint64_t fence,
                                      std::span<const std::int64_t> numbers,
                                      std::span<const std::uint32_t> partitions,
                                      std::span<const std::uint64_t> sequences = {}) = 0;

  // These rows are durable at their destination and are deleted. One without a route is kept: it
  // cannot have been sent, and the caller knows it from a past that the store has lost.
  [[nodiscard]] virtual Status sent(std::string_view destination, std::uint64_t fence,
                                    std::span<const std::int64_t> numbers) = 0;

  // The destination can never accept this row: it is parked with the reason, in the scope
  // `outbox_scope` with the destination as partition and the row's number as offset. Its sequence
  // is free again: rows of the same route that come behind it lose theirs, and get new ones from
  // `assign`. They cannot have been sent, since a destination takes sequences in order.
  [[nodiscard]] virtual Status park(std::string_view destination, std::uint64_t fence,
                                    std::int64_t number, std::string_view reason) = 0;
};

// The relay's positions: (relay_scope, destination) has the relay's fence, and its offset counts
// how often the sequences of the destination were started anew (Restart); -1: never.
inline constexpr std::string_view relay_scope = "once.relay";
// Where rows are parked that a destination cannot accept.
inline constexpr std::string_view outbox_scope = "once.outbox";

// How the relay opens the sink of a destination. It is opened when the relay begins to send there,
// and let go when another relay does: a topic of the embedded log has one writer at a time. A sink
// that is busy is waited for.
using SinkFor = std::function<Result<std::shared_ptr<Sink>>(std::string_view destination)>;

struct RelayOptions {
  // The producer's name at every destination, stable; the store's identity is added to it.
  std::string name = {};
  std::size_t batch_count_max = 1000;
  // Only these. None: all but those whose names begin with "once.", which are our own (a replay of
  // parked messages, say) and have a relay of their own.
  std::vector<std::string> destinations = {};
  // For how long the others wait for a relay that does not answer before one of them sends.
  std::int64_t lease_ms = 5'000;
  std::string owner = {};  // names this relay to the others; empty: host and process
  Observer observer = {};  // told what happens to the relay, see observe.h
  // As in PipelineOptions, for the reasons of rows that are parked.
  std::function<std::string(std::string_view)> redact = {};
};

struct RelayState {
  std::uint64_t sent = 0;
  std::uint64_t parked = 0;  // rows that their destination can never accept
  // Of the last step: rows are pending that another relay, this one, sends. Empty: none.
  std::string sender = {};
};
[[nodiscard]] std::span<const Figure<RelayState>> relay_figures();

// Sends committed outbox rows, in order, with stamps made of their routes, so that a resend after
// a crash is known at the destination. Independent of the messages that caused them.
//
// Any number of relays of a store may run, in any number of processes: at each destination one of
// them sends, and the others stand by. It is known by a claim with a lease in the store (scope
// `relay_scope`); that only saves work, since fences keep a relay that lost it from writing. One
// that ends, dies or does not answer is replaced. Losing a destination is not an error.
//
// Before a relay sends to a partition, it compares what the destination has of this store with what
// the store has sent: where they do not agree, the error has the tag "diverged", and nothing is
// sent there until a person has decided (RestartDestination).
//
// Used by one thread. What it is made of outlives it.
class Relay {
 public:
  static Result<std::unique_ptr<Relay>> make(Store& store, SinkFor sink_for, RelayOptions options,
                                             Clock& clock = system_clock());
  virtual ~Relay() = default;

  // Sends what is pending now, at most one batch per destination, and parks what can never be
  // sent; answers how many rows have left the outbox. A destination in trouble keeps no other from
  // its turn; the first error is answered when all have had theirs.
  [[nodiscard]] virtual Result<std::size_t> step() = 0;

  virtual RelayState state() const = 0;
};

}  // namespace once
