// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace once::cli {

// What a command that can be stopped does about it. All of them are called from the thread of the
// watch, one after the other.
struct SignalReactions {
  std::function<void()> on_signal;   // once, at the first signal: begin to stop
  std::function<void()> on_overdue;  // once, when stopping takes too long: give up what others need
  std::function<void()> on_tick = [] {};  // all the time
};

// Waits for SIGTERM and Ctrl-C in a thread of its own, from its construction on. Made before all
// other threads, since these inherit that the signals are blocked.
//
//   before anything reacts    a signal kills the process, as it would any other
//   the first signal          the command stops by itself
//   `overdue_ms` later        if it has not, it gives up what others need
//   `end_ms` later, or at a second signal    the process is killed; a crash does no harm
//
// This holds until the watch is destroyed, also while what the command has used is closed.
class SignalWatch {
 public:
  SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  ~SignalWatch();

  static constexpr std::int64_t overdue_ms = 5'000;
  static constexpr std::int64_t end_ms = 8'000;

  // While it lives, the watch calls these; what they use has to live longer.
  class Scope {
   public:
    Scope(SignalWatch& watch, SignalReactions reactions);
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

   private:
    SignalWatch& watch_;
  };

  // The first signal that came; 0 while none did.
  int came() const { return came_; }

 private:
  void work();
  void take(int number);
  void look_at_clock();
  void tick_once();

  std::mutex mutex_;  // held while a reaction runs, so that none runs when its scope is gone
  std::optional<SignalReactions> reactions_;  // guarded by mutex_
  bool began_ = false;                        // guarded by mutex_: something reacts, or did
  std::atomic<int> came_{0};
  std::int64_t came_ns_ = 0;  // only of the thread, as the next one
  bool is_overdue_ = false;
  std::atomic<bool> ending_{false};
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace once::cli
