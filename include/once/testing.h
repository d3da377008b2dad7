// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
#include <once/pipeline.h>
#include <once/result.h>
#include <once/store.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace once::testing {

// A kit for testing your own handler: it is run through the real lane, on a store of yours, with
// everything that happens to a handler in years happening in a second. It is no test framework:
// `check` answers a report, which GoogleTest, Catch2 or a plain `main` can look at.
//
//   once::testing::Plan plan;
//   plan.handler = [] { return pay; };
//   plan.messages = {{.id = "order 1", .body = "..."}, ...};
//   plan.options.scope = "payments";
//   plan.options.id = once::IdRule{};
//   plan.fresh_store = [] { return open_and_make_tables(); };
//   plan.effects = once::testing::rows_of("SELECT order_id FROM payment ORDER BY n");
//   const auto report = once::testing::check(plan);
//   EXPECT_TRUE(report.ok()) << report.text();
//
// See docs/testing_your_handler.md.

// Something that a message did: the id of the message, and what it was. An id may have several.
struct Effect {
  std::string id;
  std::string what = {};  // compared as text; leave out what differs from run to run

  bool operator==(const Effect&) const = default;
};

// Reads the effects that have happened, in the order in which they did.
using ReadEffects = std::function<Result<std::vector<Effect>>(Store&)>;

// From the rows of a query: the first column is the id, the others are what.
ReadEffects rows_of(std::string statement);

// For effects outside the store: your stand-in for the other side notes them here.
class EffectLedger {
 public:
  void note(std::string_view id, std::string_view what = {}) {
    const std::lock_guard lock(mutex_);
    effects_.push_back({std::string(id), std::string(what)});
  }
  std::vector<Effect> effects() const {
    const std::lock_guard lock(mutex_);
    return effects_;
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    effects_.clear();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Effect> effects_;
};

struct Plan {
  // Called at every start of the simulated process: what the handler keeps in memory dies with it.
  std::function<Handler()> handler = {};
  std::vector<Message> messages = {};
  // As in production. The kit looks for effectively once whatever the semantics says.
  PipelineOptions options = {};
  // An empty store with your tables, and an empty other side; one for each schedule. At each
  // start of the simulated process the same store is used on.
  std::function<Result<std::unique_ptr<Store>>()> fresh_store = {};
  ReadEffects effects = {};

  bool resends = true;     // messages may be sent twice; false: they are only delivered twice
  bool any_order = false;  // messages may come in any order, whatever the options say
  std::uint64_t seed = 1;  // the n-th random schedule has the seed `seed + n`
  std::size_t reorders = 20;
  std::size_t crashes_max = 2'000;
  std::size_t failures = 100;     // schedules of random_failures
  std::size_t findings_max = 10;  // then it stops
};

// What is wrong, with the schedule that shows it.
struct Finding {
  enum class Kind : std::uint8_t {
    lost,       // the message has no effect, or fewer than it should
    doubled,    // it has more effects than it should
    changed,    // it has another effect than it should
    reordered,  // its effect came too early or too late
    stray,      // an effect of which no message has the id
    stopped,    // the pipeline ended with an error, or did not come to an end
    refused,    // nothing could be tried: the plan is incomplete or cannot work
  };
  Kind kind = Kind::lost;
  std::string id = {};
  std::string text = {};
  std::string schedule = {};            // "run_twice: every message twice in a row, one batch"
  std::uint64_t seed = 0;               // put it into the plan to see this schedule first
  std::vector<std::string> steps = {};  // what happened, in order

  bool operator==(const Finding&) const = default;
};

constexpr const char* name_of(Finding::Kind kind) {
  switch (kind) {
    case Finding::Kind::lost: return "lost";
    case Finding::Kind::doubled: return "doubled";
    case Finding::Kind::changed: return "changed";
    case Finding::Kind::reordered: return "reordered";
    case Finding::Kind::stray: return "stray";
    case Finding::Kind::stopped: return "stopped";
    case Finding::Kind::refused: return "refused";
  }
  return "?";
}

struct Report {
  std::size_t schedules = 0;  // that were run
  std::size_t deaths = 0;     // of the simulated process
  std::size_t faults = 0;     // of the store, deaths not counted
  std::vector<Finding> findings = {};

  bool ok() const { return findings.empty(); }
  std::string text() const;  // for people
};

// Each first runs the messages once without a fault. What they do there is what they must do, id by
// id, under every schedule. The same plan gives the same report.

// Every message is sent twice and delivered twice, in the same batch and in another.
Report run_twice(const Plan& plan);

// Messages come in other orders, as far as the order may change: in any order if the plan says so;
// with Order::key in any order that keeps the order of each key. Otherwise old ones come again.
Report reorder(const Plan& plan);

// The process dies before each call that it makes to its store, and after each commit, one schedule
// per call. Then it starts again.
Report crash_at_every_step(const Plan& plan);

// Seeded: calls fail, commits are refused, answers of commits are lost, the process dies, messages
// are sent and delivered again.
Report random_failures(const Plan& plan);

// All of them.
Report check(const Plan& plan);

}  // namespace once::testing
