// SPDX-License-Identifier: Apache-2.0
#include "store/memory/memory.h"
#include "strategies/strategy_races.h"
#include "strategies/strategy_stories.h"

namespace once::testing {
namespace {

class MemoryGround final : public Ground {
 public:
  std::shared_ptr<Store> open() override { return store_; }
  bool shared_by_processes() const override { return false; }

 private:
  std::shared_ptr<Store> store_ = std::make_shared<MemoryStore>(system_clock());
};

const GroundFactory memory{"memory", [] { return std::make_unique<MemoryGround>(); }};

INSTANTIATE_TEST_SUITE_P(Memory, StrategySuite, ::testing::Values(memory));
INSTANTIATE_TEST_SUITE_P(Memory, StrategyRaces, ::testing::Values(memory));
INSTANTIATE_TEST_SUITE_P(Memory, StrategyStories, ::testing::Values(memory));

}  // namespace
}  // namespace once::testing
