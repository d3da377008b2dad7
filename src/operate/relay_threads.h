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

#include "operate/job.h"
#include "operate/relay_loop.h"

namespace once::operate {

// Sends what a job emits while its pipeline runs. Each destination has a thread and a relay of its
// own: one that is away or in trouble holds up no other, and the sequences of two destinations
// never meet at one topic. A destination that needs a person (diverged, no right to write) is told
// as an error and tried again until the end, since the person may act at any time. Meanwhile its
// messages wait in the outbox; neither the pipeline nor the other destinations wait for it. Only
// where there is nothing else to do (a copy to one destination) does the error end the run.
class RelayThreads {
 public:
  // Destinations are opened when there is something to send; whether they are there, `check_start`
  // has looked. The job outlives it.
  static Result<std::unique_ptr<RelayThreads>> open(const Job& job);
  ~RelayThreads();

  // `on_failure` is called from a thread when the run has to end.
  void start(std::function<void()> on_failure);

  // Sends what is left and ends. While a destination is away it is tried again for this long; what
  // then is left waits in the outbox for the next run, or for the process that sends there. The
  // error is that of a destination that could not be sent to.
  [[nodiscard]] Status finish(std::int64_t patience_ms);

  // Of all of them together; who else sends is not told.
  RelayState state() const;

 private:
  struct Line {
    std::string destination;
    std::unique_ptr<Relay> relay;
    std::atomic<std::uint64_t> sent{0};
    std::atomic<std::uint64_t> parked{0};
    std::string said = {};  // the last error
    std::thread thread = {};
  };

  explicit RelayThreads(const Job& job) : job_(job) {}
  Status add(const Destination& destination);
  void work(Line& line);
  bool go_on(Line& line, const RelayStep& step);
  static void count(Line& line, const RelayState& state);
  bool wait_for_person(Line& line, const Error& error);
  bool wait(std::int64_t wait_ms, bool is_idle);
  // Whether something goes on when one destination cannot.
  bool has_other_work() const { return job_.has_effects || lines_.size() > 1; }
  void keep(const Error& error);  // the first one, for the end

  const Job& job_;
  std::vector<std::unique_ptr<Line>> lines_;
  std::function<void()> on_failure_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool finishing_ = false;
  std::int64_t give_up_ns_ = 0;
  std::optional<Error> error_;
};

}  // namespace once::operate
