// SPDX-License-Identifier: Apache-2.0
// What a relay tells about itself.
#include <algorithm>
#include <iterator>

#include "runtime/relay_testing.h"

namespace once::testing {
namespace {

class RelayObserver : public RelayBorders {
 protected:
  std::unique_ptr<Relay> observed(const std::string& owner) {
    RelayOptions options{.name = "relay", .owner = owner};
    options.observer = [this](const Event& event) { told_.push_back(event); };
    return Relay::make(
               store_,
               [this](std::string_view) -> Result<std::shared_ptr<Sink>> {
                 if (is_away_) return fail(Remedy::retry, "away", "connection refused");
                 return shared(sink_);
               },
               options, clock_)
        .value();
  }
  std::vector<Event> told(EventKind kind) const {
    std::vector<Event> found;
    std::copy_if(told_.begin(), told_.end(), std::back_inserter(found),
                 [&](const Event& event) { return event.kind == kind; });
    return found;
  }

  bool is_away_ = false;
  std::vector<Event> told_;
};

TEST_F(RelayObserver, a_destination_that_is_away_is_told_and_so_is_its_return) {
  auto relay = observed("here");
  enqueue(0, 5);
  is_away_ = true;
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(relay->step());
    clock_.step(500);
  }
  is_away_ = false;
  drain(*relay);
  ASSERT_EQ(told(EventKind::destination_away).size(), 1u);
  EXPECT_EQ(told(EventKind::destination_away)[0].subject, "paid");
  EXPECT_EQ(told(EventKind::destination_away)[0].text,
            "waiting for the destination paid: connection refused");
  ASSERT_EQ(told(EventKind::destination_back).size(), 1u);
  EXPECT_EQ(told(EventKind::destination_back)[0].duration_ms, 5'000);
  EXPECT_TRUE(told(EventKind::store_away).empty());
  expect_each_once(5);
}

TEST_F(RelayObserver, who_sends_is_told_when_it_changes) {
  auto first = relay("first"), second = observed("second");
  enqueue(0, 5);
  drain(*first);
  enqueue(5, 5);
  for (int i = 0; i < 5; ++i) ASSERT_EQ(second->step().value(), 0u);
  ASSERT_EQ(told(EventKind::standing_by).size(), 1u);
  EXPECT_EQ(told(EventKind::standing_by)[0].text, "paid: first sends; standing by");
  first.reset();
  clock_.step(1'000);
  drain(*second);
  ASSERT_EQ(told(EventKind::took_over).size(), 1u);
  EXPECT_EQ(told_.size(), 2u);
  expect_each_once(10);
}

TEST_F(RelayObserver, what_a_destination_refuses_for_good_is_told_with_a_count) {
  sink_.refuse([](const Message& offered) -> Status {
    if (offered.id < "m5") return {};
    return fail(Remedy::park, "too_large", offered.id + " is too large");
  });
  enqueue(0, 10);
  auto relay = observed("here");
  drain(*relay);
  relay.reset();
  std::uint64_t sum = 0;
  for (const Event& event : told(EventKind::message_parked)) sum += event.count;
  EXPECT_EQ(sum, 5u);
  EXPECT_EQ(told(EventKind::message_parked).size(), 2u);
  EXPECT_EQ(told(EventKind::message_parked)[0].tag, "too_large");
}

}  // namespace
}  // namespace once::testing
