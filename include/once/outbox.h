// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
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
  // and visible in `pending`, when it returns.
  [[nodiscard]] virtual Status assign(std::string_view destination, std::uint64_t fence,
                                      std::span<const std::int64_t> numbers,
                                      std::span<const std::uint32_t> partitions) = 0;

  // These rows are durable at their destination: they may go.
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

// How the relay finds the sink of a destination.
using SinkFor = std::function<Result<Sink*>(std::string_view destination)>;

struct RelayOptions {
  std::string name = {};  // the producer name at every destination; unique per store, stable
  std::size_t batch_count_max = 1000;
  // Only these. None: all but those whose names begin with "once.", which are our own (a replay of
  // parked messages, say) and have a relay of their own.
  std::vector<std::string> destinations = {};
};

// Sends committed outbox rows, in order, with stamps made of their routes, so that a resend after
// a crash is known at the destination. Independent of the messages that caused them. Used by one
// thread; a second relay of the same store fences the first.
class Relay {
 public:
  static Result<std::unique_ptr<Relay>> make(Store& store, SinkFor sink_for, RelayOptions options);
  virtual ~Relay() = default;

  // Sends what is pending now, at most one batch per destination; answers how many rows were sent.
  [[nodiscard]] virtual Result<std::size_t> step() = 0;
};

}  // namespace once
