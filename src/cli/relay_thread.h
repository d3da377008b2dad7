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

// Sends what a plan emits while its pipeline runs. Each destination has a sink and a relay of its
// own, and so a producer of its own: the sequences of two destinations never meet at one topic.
class RelayThread {
 public:
  // Opens the destinations. The store outlives it. What would lose messages is refused: rows that
  // wait for a destination that the plan no longer has, and a producer's name that the destination
  // knows from another store.
  static Result<std::unique_ptr<RelayThread>> open(Store& store, const Plan& plan);
  ~RelayThread();

  // `on_failure` is called at most once, from the thread, when it cannot go on.
  void start(std::function<void()> on_failure);

  // Sends what is left and ends. While a destination is away it is tried again for this long; what
  // then is left waits in the outbox for the next run.
  [[nodiscard]] Status finish(std::int64_t patience_ms);

  std::uint64_t sent() const { return sent_; }

 private:
  struct Target {
    std::unique_ptr<Sink> sink;
    std::unique_ptr<Relay> relay;
  };

  RelayThread() = default;
  void work();
  void send();
  Result<std::size_t> step();
  bool wait(std::int64_t wait_ms);

  std::vector<Target> targets_;
  std::function<void()> on_failure_;
  std::atomic<std::uint64_t> sent_{0};

  std::mutex mutex_;
  std::condition_variable changed_;
  bool finishing_ = false;
  std::int64_t give_up_ns_ = 0;
  std::optional<Error> error_;
  std::thread thread_;
};

}  // namespace once::cli
