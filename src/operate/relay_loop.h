// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/outbox.h>

#include <cstddef>
#include <cstdint>
#include <functional>

namespace once::operate {

struct RelayPace {
  std::int64_t idle_ms = 50;         // after a step that sent nothing
  std::int64_t away_ms_max = 2'000;  // less than a lease: waiting does not lose the role
};

// What a step of a relay came to.
struct RelayStep {
  RelayState state;
  std::size_t sent = 0;
  const Error* away = nullptr;  // store or destination did not answer: it can be tried again
  std::int64_t rest_ms = 0;     // before the next step

  // Nothing waits, and nobody else sends.
  bool is_idle() const { return sent == 0 && away == nullptr && state.sender.empty(); }
};

// Rests for as long as the step says, or for less. False ends the loop.
using RelayGoOn = std::function<bool(const RelayStep&)>;

// Drives a relay until `go_on` ends it, or until an error that trying again does not help. A loop
// that is ended while something is away answers that error: what was not sent waits in the outbox.
[[nodiscard]] Status run_relay(Relay& relay, const RelayPace& pace, const RelayGoOn& go_on);

}  // namespace once::operate
