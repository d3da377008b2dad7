// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <once/pipeline.h>

#include <memory>
#include <utility>

#include "testing/effects.h"
#include "testing/script_source.h"

namespace once::testing {

// Pipelines with a store in memory and real threads; they end when the source does.
class PipelineFixture : public ::testing::Test {
 protected:
  PipelineFixture() {
    options_.scope = "shop";
    options_.id = IdRule{};
    options_.stop_at_end = true;
    options_.batch_wait_ms = 1;
    options_.batch_count_max = 50;
    options_.retry.backoff_ms_min = 1;
  }

  std::unique_ptr<Pipeline> make_from(Source& source, Handler handler,
                                      Clock& clock = system_clock()) {
    auto pipeline = Pipeline::make(source, store_, std::move(handler), options_, clock);
    EXPECT_TRUE(pipeline) << pipeline.error().text;
    return std::move(*pipeline);
  }

  MemoryStore store_{system_clock()};
  PipelineOptions options_;
};

}  // namespace once::testing
