// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/observe.h>
#include <once/result.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>

#include "runtime/event_log.h"

namespace once::operate {

// Waits at the start of a command for what is away, as a pipeline does later: a store, a broker, a
// destination. Says what it waits for, at once and then now and again. Every other error, and an
// error after the limit, is the caller's.
class Patience {
 public:
  // For `wait_s` in all; unset: without limit. Waiting ends early when `is_stopped` says so.
  Patience(std::optional<std::int64_t> wait_s, Observer observer,
           std::function<bool()> is_stopped = {});

  // Asks until the answer is something else than "away". An attempt that was begun in time is not
  // cut short.
  template <class Ask>
  auto until_there(const Dependency& on, const Ask& ask) -> std::invoke_result_t<Ask> {
    while (true) {
      auto answer = ask();
      if (answer) events_.back(on, {}, this);
      if (answer || !wait_for(on, answer.error())) return answer;
    }
  }

 private:
  // Whether it is worth another attempt, after a pause.
  bool wait_for(const Dependency& on, const Error& error);

  EventLog events_;
  const std::int64_t deadline_ns_;
  std::int64_t pause_ms_;
  const std::function<bool()> is_stopped_;
};

}  // namespace once::operate
