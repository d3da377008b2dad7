// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/clock.h>
#include <once/handler.h>
#include <once/identity.h>
#include <once/observe.h>
#include <once/sink.h>
#include <once/source.h>
#include <once/store.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace once {

enum class Order : std::uint8_t {
  partition,  // messages of a partition take effect in its order
  key,        // only messages of the same key do; lanes share a partition. Needs an id rule
};

struct RetryPolicy {
  std::uint32_t attempts_max = 5;  // then the message is parked
  std::int64_t backoff_ms_min = 10;
  std::int64_t backoff_ms_max = 10'000;
};

// When so many of the last messages were parked, the pipeline ends with an error of the remedy
// `park` and the tag "parked": it would only move the topic to the parked messages. Duplicates are
// not counted.
struct ParkedLimit {
  std::uint32_t percent = 50;  // of the last `window` messages, or of all if there are fewer
  std::size_t window = 1000;
  std::size_t messages_min = 100;  // fewer say nothing

  bool operator==(const ParkedLimit&) const = default;
};

struct PipelineOptions {
  std::string scope;  // mandatory
  Semantics semantics = Semantics::effectively_once;
  // Which messages the pipeline is about, asked before the id rule; unset: all. A message that is
  // not wanted is passed over: the position moves on, and the ledger does not know it. An error
  // parks the message. Called by any thread; the answer for a message must always be the same.
  std::function<Result<bool>(const Delivery&)> wanted = {};
  std::optional<IdRule> id;  // unset: the position alone tells what was handled
  BornRule born = BornRule::timestamp;
  ContentRule content;  // what must be the same in a message that comes again under its id
  Order order = Order::partition;
  RetryPolicy retry;
  std::size_t lanes = 1;
  std::size_t batch_count_min = 1;     // a batch shrinks to this when messages fail ...
  std::size_t batch_count_max = 1000;  // ... and grows to this while they do not
  std::int64_t batch_wait_ms = 5;      // for how long a poll waits for a first message
  std::size_t queue_batches_max = 8;   // per lane; beyond it the poller waits
  // Of a source without order, per lane: how many messages may wait for their next attempt. They
  // hold back no others; more are given back to the source, if it can deliver with a delay.
  std::size_t waiting_max = 1000;
  // For how long ids are remembered, in the time of the messages, not of the wall; -1: for ever.
  std::int64_t retention_ms = 7 * 24 * 3600 * 1000LL;
  // A message born later than this after the store's clock is parked: its birth cannot be right,
  // and births decide what is forgotten.
  std::int64_t ahead_ms_max = 24 * 3600 * 1000LL;
  std::optional<ParkedLimit> parked_max = ParkedLimit{};  // unset: any number may be parked
  bool stop_at_end = false;  // end when the source has nothing more, instead of waiting
  // Told what happens to the pipeline, see observe.h; unset: nobody.
  Observer observer = {};
  // The outbox destination that gets a copy of every message that is parked, in the transaction
  // that parks it (docs/operating.md lists its headers). Empty: none.
  std::string park_to = {};
  // Takes secrets out of reasons (of rejected, parked and retried messages, which may be errors of
  // servers that quote a value) before they are stored, sent or told. Called by any thread. Unset:
  // they stay as they are.
  std::function<std::string(std::string_view)> redact = {};
};

// The promise that a combination of source, store, options and destinations of emitted messages
// can keep, or the error that says why it cannot, with the schedule that would break it. A promise
// is as strong as its weakest link, which is named.
Result<std::string> verify(const SourceTraits& source, const StoreTraits& store,
                           const Handler& handler, const PipelineOptions& options,
                           std::span<const SinkTraits> sinks = {});

// Takes messages from a source through a handler into a store, each counted once.
//
// `run` uses the calling thread as the poller and one thread per lane. `stop` may be called from
// any thread (after it from a signal watcher): what is in a lane is finished, what is queued is
// given back, and `run` returns. `source`, `store` and `clock` outlive the pipeline.
class Pipeline {
 public:
  static Result<std::unique_ptr<Pipeline>> make(Source& source, Store& store, Handler handler,
                                                PipelineOptions options,
                                                Clock& clock = system_clock());
  virtual ~Pipeline() = default;

  [[nodiscard]] virtual Status run() = 0;
  virtual void stop() = 0;
  virtual Statistics statistics() const = 0;
};

}  // namespace once
