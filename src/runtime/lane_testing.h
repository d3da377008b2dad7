// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "runtime/lane.h"
#include "testing/effects.h"
#include "testing/script_source.h"
#include "testing/sim_clock.h"

namespace once::testing {

// A lane with a store in memory, on a clock that stands still unless the lane waits.
class LaneFixture : public ::testing::Test {
 protected:
  LaneFixture() {
    options_.scope = "shop";
    options_.id = IdRule{};
  }

  void add(const std::string& id, const std::string& body = "b", std::int64_t born_ms = 1000,
           const std::string& partition = "p0") {
    source_.add(partition,
                {.id = id, .key = "k", .body = body, .headers = {}, .timestamp_ms = born_ms});
  }
  void fill(std::size_t count, const std::string& partition = "p0",
            const std::string& prefix = "m") {
    for (std::size_t i = 0; i < count; ++i) {
      const std::string id = prefix + std::to_string(i);
      add(id, "body of " + id, 1000 + static_cast<std::int64_t>(i), partition);
    }
  }

  virtual LaneParts parts() {
    return {.store = store_,
            .clock = clock_,
            .handler = handler_,
            .options = options_,
            .counters = counters_};
  }
  Lane make() { return Lane(parts()); }
  void own(Lane& lane, const std::string& partition = "p0") {
    lane.own(partition, store_.take(options_.scope, partition).value());
  }

  // Until the queue is empty, letting time pass when the lane asks for it.
  std::vector<Batch> drain(Lane& lane) {
    std::vector<Batch> finished;
    for (int steps = 0; !lane.idle(); ++steps) {
      EXPECT_LT(steps, 10'000) << "the lane does not come to an end";
      if (steps >= 10'000) break;
      auto step = lane.step();
      EXPECT_TRUE(step) << step.error().text;
      if (!step) break;
      for (Batch& batch : step->finished) finished.push_back(std::move(batch));
      if (step->wait_ms > 0) clock_.step(step->wait_ms);
    }
    return finished;
  }

  Position position(const std::string& partition = "p0") {
    return store_.position(options_.scope, partition).value();
  }
  std::vector<ParkedRecord> parked_records() {
    return store_.records()->parked(options_.scope, 0, 1000).value();
  }

  SimClock clock_;
  MemoryStore store_{clock_};
  ScriptSource source_;
  PipelineOptions options_;
  Counters counters_;
  Handler handler_ = each(apply_effect);
};

}  // namespace once::testing
