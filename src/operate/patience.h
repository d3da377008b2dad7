// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "operate/tell.h"

namespace once::operate {

// Waits at the start of a command for what is away, as a pipeline does later: a store, a broker, a
// destination. Says what it waits for, at once and then now and again. Every other error, and an
// error after the limit, is the caller's.
class Patience {
 public:
  // For `wait_s` in all; unset: for ever.
  Patience(std::optional<std::int64_t> wait_s, Tell tell);

  // Asks until the answer is something else than "away". An attempt that was begun in time is not
  // cut short.
  template <class Ask>
  auto until_there(std::string_view what, const Ask& ask) -> std::invoke_result_t<Ask> {
    while (true) {
      auto answer = ask();
      if (answer) return answer;
      if (!wait_for(what, answer.error())) return answer;
    }
  }

 private:
  // Whether it is worth another attempt, after a pause.
  bool wait_for(std::string_view what, const Error& error);

  const Tell tell_;
  const std::int64_t deadline_ns_;
  std::int64_t pause_ms_;
  std::int64_t tell_after_ns_ = 0;
};

}  // namespace once::operate
