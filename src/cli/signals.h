// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

namespace once::cli {

// Waits for SIGTERM and Ctrl-C in a thread of its own, and ticks in between. Made before all other
// threads, since these inherit that the signals are blocked. A second signal ends the process at
// once: that is as good as a crash, and a crash does no harm.
class SignalWatch {
 public:
  SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  ~SignalWatch();

  // Stops a watch when it goes out of scope, however that comes. Stands behind everything that the
  // functions given to `start` use.
  class Guard {
   public:
    explicit Guard(SignalWatch& watch) : watch_(watch) {}
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    ~Guard() { watch_.stop(); }

   private:
    SignalWatch& watch_;
  };

  // Both are called from the thread; `on_signal` once, at the first signal. A tick that throws, as
  // without memory, is left out.
  void start(std::function<void()> on_signal, std::function<void()> on_tick, std::int64_t tick_ms);
  void stop();

  // The first signal that came; 0 while none did.
  int came() const { return came_; }

 private:
  void work(std::int64_t tick_ms);

  std::function<void()> on_signal_;
  std::function<void()> on_tick_;
  std::atomic<int> came_{0};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace once::cli
