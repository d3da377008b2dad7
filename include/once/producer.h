// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/clock.h>
#include <once/sink.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace once {

struct ProducerOptions {
  // The producer's identity: stable across restarts. Empty: a random one, for messages that are
  // not sent again after a restart.
  std::string name = {};
  // Count from 0 and send everything again: what the sink has is recognised. Otherwise go on
  // after the last message it has. Needs a sink that recognises stamps.
  bool replay = false;
  std::size_t batch_count_max = 1000;
  std::uint32_t attempts_max = 5;
  std::int64_t backoff_ms = 20;
};

struct SendReport {
  std::uint64_t sent = 0;        // messages that are durable at the sink now
  std::uint64_t duplicates = 0;  // of these, how many had been there before
  // Of these, how many may be there twice: they were sent again because an answer was lost, to a
  // sink that does not recognise resends by stamp.
  std::uint64_t maybe_twice = 0;

  bool operator==(const SendReport&) const = default;
};

// Sends messages with stamps and keeps each batch until its receipt; a resend has the same bytes
// and the same stamp. What the sink can never accept is an error of the remedy `park`, and is not
// sent again. Used by one thread.
class Producer {
 public:
  static Result<std::unique_ptr<Producer>> open(Sink& sink, ProducerOptions options,
                                                Clock& clock = system_clock());
  virtual ~Producer() = default;

  // Sends to the partitions their keys choose; durable when it returns. After an error, what was
  // not acknowledged is sent again, with its old stamps, before anything else.
  [[nodiscard]] virtual Result<SendReport> send(std::span<const Message> messages) = 0;
};

}  // namespace once
