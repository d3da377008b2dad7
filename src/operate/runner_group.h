// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "operate/patience.h"
#include "operate/runner.h"
#include "operate/shared_sinks.h"

namespace once::operate {

// A job with all that it refers to.
struct OpenedJob {
  std::shared_ptr<void> parts;  // source, store, ...: outlive the job
  Job job;
};

// One of the pipelines that a process runs.
struct Member {
  std::string name;  // empty: it is the only one, and no error names it
  // Opens everything it needs, anew for every turn.
  std::function<Result<OpenedJob>(Patience&)> open;
  Observer observer;  // told what happens to it, from its opening on
};

// An error of the pipeline with this name; as it is, if the name is empty.
[[nodiscard]] Error of_pipeline(const std::string& name, Error error);

struct MemberStatistics {
  std::string name;
  RunStatistics statistics;
};

// Runs several pipelines at once, each with a runner, a source and a thread of its own. One that
// comes to its end leaves the others running; one that fails stops all of them, orderly, and its
// error is that of the group. A member whose turn another process took opens everything anew and
// stands by, while the others go on.
class RunnerGroup {
 public:
  // Opens all of them, one after the other: nothing runs while one cannot. Waits for what is away
  // for `wait_s` in all; unset: without limit.
  [[nodiscard]] static Result<std::unique_ptr<RunnerGroup>> open(
      std::vector<Member> members, std::optional<std::int64_t> wait_s);
  RunnerGroup(const RunnerGroup&) = delete;
  RunnerGroup& operator=(const RunnerGroup&) = delete;

  // Until all have ended. Called once; the first member runs in the calling thread.
  [[nodiscard]] Status run();

  // From any thread: as those of a runner, for all of them.
  void stop();
  void give_up();
  std::vector<MemberStatistics> statistics() const;

 private:
  // What is opened for one turn. The runner goes before what it uses.
  struct Turn {
    std::shared_ptr<void> parts;
    std::unique_ptr<Runner> runner;
  };
  struct Running {
    Running(Member made, std::optional<std::int64_t> wait_s, std::function<bool()> is_stopped);

    const Member member;
    Patience patience;        // of the thread that opens it
    Turn turn = {};           // guarded by mutex_; without a runner while it is opened anew
    RunStatistics last = {};  // guarded by mutex_: of the turn that is over
    std::thread thread = {};
  };

  RunnerGroup() = default;
  Result<Turn> open_turn(Running& running);
  void work(Running& running);
  Status run_turns(Running& running);
  void close_turn(Running& running);
  void keep(const Running& running, const Error& error);
  bool is_stopped() const;

  SharedSinks sinks_;
  mutable std::mutex mutex_;    // taken with no other lock
  bool stopped_ = false;        // guarded by mutex_
  std::optional<Error> error_;  // guarded by mutex_: the first one
  std::vector<std::unique_ptr<Running>> members_;
};

}  // namespace once::operate
