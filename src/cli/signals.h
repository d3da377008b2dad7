// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace once::cli {

// What a command that can be stopped does about it. All of them are called from one thread, one
// after the other. One that does not return, since nobody reads stderr for example, is no reason
// for the process to live on: the watch waits for signals in a thread of its own.
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
  // All from the first signal on.
  struct Limits {
    std::int64_t overdue_ms = 5'000;
    std::int64_t end_ms = 8'000;
  };

  explicit SignalWatch(const Limits& limits);
  SignalWatch() : SignalWatch(Limits{}) {}
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  ~SignalWatch();

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
  void watch();
  void react();
  void react_once();
  void take(int number);
  void look_at_clock();
  void end_reactor();

  const Limits limits_;
  std::mutex mutex_;  // held while a reaction runs, so that none runs when its scope is gone
  std::optional<SignalReactions> reactions_;  // guarded by mutex_
  std::atomic<bool> began_{false};            // something reacts, or did
  std::atomic<int> came_{0};
  std::int64_t came_ns_ = 0;  // only of the watching thread, as the next one
  bool is_overdue_ = false;
  std::atomic<bool> signal_untold_{false};
  std::atomic<bool> overdue_untold_{false};
  std::mutex news_mutex_;  // taken with no other lock
  std::condition_variable news_;
  bool reactor_ending_ = false;  // guarded by news_mutex_
  std::atomic<bool> ending_{false};
  std::thread reactor_;  // last, with the next one: they use all of the above
  std::thread thread_;
};

}  // namespace once::cli
