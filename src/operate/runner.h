// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "operate/job.h"
#include "operate/json.h"
#include "operate/patience.h"
#include "operate/relay_threads.h"

namespace once::operate {

// What became of the messages of a run.
struct RunStatistics {
  Statistics pipeline;
  RelayState relays;  // of all destinations together
};
Json json_of(const RunStatistics& statistics);

// Runs a job: its pipeline, the relays of its destinations, and the role where processes take
// turns. `run` polls in the calling thread; each lane and each destination has a thread of its own.
// First the pipeline ends, then what it emitted is sent.
class Runner {
 public:
  // Opens what the job needs, with patience. The observer of the job's options is told of the
  // pipeline, of its relays and of whose turn it is.
  [[nodiscard]] static Result<std::unique_ptr<Runner>> make(Job job, Patience& patience);
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // To the end of the source, if the options say so, or until it is stopped. Called once.
  [[nodiscard]] Status run();
  // After an error of `run`: another process took the turn while this one did not answer (it was
  // frozen, or cut off from the store). A new runner, with everything opened anew, stands by.
  bool was_overtaken() const { return was_overtaken_; }

  // From any thread: finish what is in hand, and end.
  void stop();
  // From any thread, when stopping takes too long: give up what others need.
  void give_up() { job_.source.leave(); }

  RunStatistics statistics() const;

 private:
  explicit Runner(Job job) : job_(std::move(job)) {}
  Status open(Patience& patience);
  bool takes_turns() const { return job_.takes_turns && job_.store.claims() != nullptr; }
  void tell_turn(EventKind kind, std::string text) const;
  Status in_turn(const std::function<Status()>& work);

  const Job job_;
  std::atomic<bool> stopped_{false};
  bool was_overtaken_ = false;
  // Threads end before what they call: relays before the pipeline.
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<RelayThreads> relays_;
};

}  // namespace once::operate
