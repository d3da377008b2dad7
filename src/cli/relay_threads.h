// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/outbox.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "config/plan.h"

namespace once::cli {

// Sends what a plan emits while its pipeline runs. Each destination has a thread and a relay of its
// own: one that is away or in trouble holds up no other, and the sequences of two destinations
// never meet at one topic.
class RelayThreads {
 public:
  // Looks whether the destinations are there; they are opened when there is something to send.
  // Store and plan outlive it. Rows that wait for a destination that the plan no longer has are an
  // error.
  static Result<std::unique_ptr<RelayThreads>> open(Store& store, const Plan& plan);
  ~RelayThreads();

  // `on_failure` is called at most once, from a thread, when a destination cannot go on.
  void start(std::function<void()> on_failure);

  // Sends what is left and ends. While a destination is away it is tried again for this long; what
  // then is left waits in the outbox for the next run, or for the process that sends there.
  [[nodiscard]] Status finish(std::int64_t patience_ms);

  std::uint64_t sent() const;
  std::uint64_t parked() const;

  // What a person should know, once each: who sends instead, what is waited for, what was parked.
  std::vector<std::string> take_notes();

 private:
  struct Line {
    std::string to;
    std::unique_ptr<Relay> relay;
    std::atomic<std::uint64_t> sent{0};
    std::atomic<std::uint64_t> parked{0};
    std::string said = {};  // the last note
    std::thread thread = {};
  };

  explicit RelayThreads(const Plan& plan) : plan_(plan) {}
  Status add(Store& store, const EmitRule& emit);
  void work(Line& line);
  // What a step came to: whether to go on, and after which wait.
  bool go_on(Line& line, const Result<std::size_t>& step, std::int64_t& away_ms);
  bool wait(std::int64_t wait_ms, bool is_idle);
  void note(Line& line, std::string text);
  void failed(const Error& error);

  const Plan& plan_;
  std::vector<std::unique_ptr<Line>> lines_;
  std::function<void()> on_failure_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool finishing_ = false;
  std::int64_t give_up_ns_ = 0;
  std::optional<Error> error_;
  std::vector<std::string> notes_;
};

}  // namespace once::cli
