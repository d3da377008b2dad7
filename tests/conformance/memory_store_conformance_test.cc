// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "conformance/store_suite.h"
#include "store/memory/memory.h"

namespace once::testing {
namespace {

class MemoryUnderTest final : public StoreUnderTest {
 public:
  Store& store() override { return store_; }
  void reopen() override { store_.crash(); }
  void lose_next_commit(bool kept) override {
    store_.set_commit_fault([kept, first = true]() mutable {
      if (!std::exchange(first, false)) return MemoryStore::CommitFault::none;
      return kept ? MemoryStore::CommitFault::lost_after : MemoryStore::CommitFault::lost_before;
    });
  }
  void jump_clock(std::int64_t ms) override { clock_.jump(ms); }

 private:
  JumpingClock clock_;
  MemoryStore store_{clock_};
};

const StoreFactory memory{"memory", [] { return std::make_unique<MemoryUnderTest>(); }};

INSTANTIATE_TEST_SUITE_P(Memory, StoreSuite, ::testing::Values(memory));
INSTANTIATE_TEST_SUITE_P(Memory, RepairSuite, ::testing::Values(memory));
INSTANTIATE_TEST_SUITE_P(Memory, DeferralSuite, ::testing::Values(memory));

}  // namespace
}  // namespace once::testing
