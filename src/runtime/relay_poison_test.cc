// SPDX-License-Identifier: Apache-2.0
// Rows that their destination can never accept, and destinations that are in trouble.
#include <optional>

#include "runtime/relay_testing.h"

namespace once::testing {
namespace {

class RelayPoison : public RelayBorders {
 protected:
  Records& records() { return *static_cast<Store&>(store_).records(); }
  Repairs& repairs() { return *static_cast<Store&>(store_).repairs(); }
  void refuse_ids(std::vector<std::string> ids) {
    sink_.refuse([ids = std::move(ids)](const Message& offered) -> Status {
      for (const std::string& id : ids)
        if (offered.id == id) return fail(Remedy::park, "too_large", id + " is too large");
      return {};
    });
  }
  std::vector<std::string> parked() {
    std::vector<std::string> ids;
    const auto found = records().parked(outbox_scope, 0, 100).value();
    for (const ParkedRecord& record : found) ids.push_back(record.message.id);
    return ids;
  }
};

TEST_F(RelayPoison, a_row_that_can_never_be_sent_is_parked_and_the_others_leave_in_order) {
  for (const std::size_t poison : {0u, 1u, 12u, 29u}) {
    SCOPED_TRACE(poison);
    MemoryStore store(clock_, "store " + std::to_string(poison));
    sink_.make_anew();
    refuse_ids({"m" + std::to_string(poison)});
    enqueue_at(store, 0, 30);
    auto sending = relay_at(store, "here", 30);
    drain(*sending);
    std::vector<int> expected(30, 1);
    expected[poison] = 0;
    expect_times(expected);
    EXPECT_EQ(sending->state().sent, 29u);
    EXPECT_EQ(sending->state().parked, 1u);
    const auto records = static_cast<Store&>(store).records()->parked(outbox_scope, 0, 10).value();
    ASSERT_EQ(records.size(), 1u);
    EXPECT_EQ(records[0].message, message(poison));
    EXPECT_EQ(records[0].partition, "paid");
    EXPECT_NE(records[0].reason.find("is too large"), std::string::npos);
  }
}

TEST_F(RelayPoison, secrets_are_taken_out_of_the_reason_of_a_parked_row) {
  refuse_ids({"m0"});
  enqueue(0, 2);
  RelayOptions options{.name = "shop", .owner = "here"};
  options.redact = [](std::string_view text) {
    return "(" + std::string(text.substr(0, 2)) + " redacted)";
  };
  auto sending = Relay::make(
                     store_, [this](std::string_view) { return shared(sink_); }, options, clock_)
                     .value();
  drain(*sending);
  expect_times({0, 1});
  const auto parked = records().parked(outbox_scope, 0, 10).value();
  ASSERT_EQ(parked.size(), 1u);
  EXPECT_EQ(parked[0].reason, "(m0 redacted)");
}

// Parking gives the sequence of the row to the one behind it. A store that goes back to before that
// counts differently than the destination, which may have as many messages as it expects.
TEST_F(RelayPoison, a_store_that_went_back_to_before_the_parking_is_noticed) {
  refuse_ids({"m0"});
  enqueue(0, 15);
  std::optional<MemoryState> routed;
  sink_.set_faults(
      [&]() -> Status {
        if (!routed) routed = store_.snapshot();
        return {};
      },
      {});
  drain(*relay("here", 30));
  EXPECT_EQ(parked(), std::vector<std::string>{"m0"});
  store_.restore(*routed);
  ASSERT_TRUE(parked().empty());
  auto after = relay("here", 30);
  Result<std::size_t> step = 0;
  for (int i = 0; i < 5 && step; ++i) step = after->step();
  ASSERT_FALSE(step);
  EXPECT_EQ(step.error().tag, "diverged");
  EXPECT_NE(step.error().text.find("another message is there"), std::string::npos);
  std::vector<int> expected(15, 1);
  expected[0] = 0;
  expect_times(expected);
  restart_destination();
  drain(*after);
  EXPECT_EQ(parked(), std::vector<std::string>{"m0"});
}

TEST_F(RelayPoison, many_rows_that_can_never_be_sent_are_all_parked) {
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < 30; ++i)
    if (i % 3 != 1) ids.push_back("m" + std::to_string(i));
  refuse_ids(ids);
  enqueue(0, 30);
  drain(*relay());
  std::vector<int> expected(30, 0);
  for (std::size_t i = 1; i < 30; i += 3) expected[i] = 1;
  expect_times(expected);
  EXPECT_EQ(parked().size(), 20u);
}

TEST_F(RelayPoison, a_relay_that_dies_around_a_poison_row_loses_and_doubles_nothing) {
  refuse_ids({"m3", "m8"});
  enqueue(0, 12);
  for (int life = 1; life < 8; ++life) {
    int left = life;
    sink_.set_faults({}, [&]() -> Status {
      if (--left == 0) return fail(Remedy::stop, "killed", "the relay dies before it is told");
      return {};
    });
    auto mortal = relay();
    while (true) {
      const auto step = mortal->step();
      if (!step || *step == 0) break;
    }
  }
  sink_.set_faults({}, {});
  drain(*relay());
  std::vector<int> expected(12, 1);
  expected[3] = expected[8] = 0;
  expect_times(expected);
  EXPECT_EQ(parked().size(), 2u);
}

TEST_F(RelayPoison, a_parked_row_that_is_replayed_to_its_destination_is_sent) {
  refuse_ids({"m3"});
  enqueue(0, 10);
  auto running = relay();
  drain(*running);
  refuse_ids({});
  const auto record = records().parked(outbox_scope, 0, 1).value().at(0);
  ASSERT_TRUE(
      repairs().replay(outbox_scope, std::vector{record.number}, record.partition, "fixed"));
  drain(*running);
  std::vector<int> times(10, 0);
  for (const std::string& id : arrived()) ++times.at(std::stoul(id.substr(1)));
  EXPECT_EQ(times, std::vector<int>(10, 1));
  EXPECT_TRUE(parked().empty());
}

TEST_F(RelayPoison, a_destination_in_trouble_does_not_hold_up_the_others) {
  enqueue(0, 5, "a broken one");
  enqueue(5, 5, "paid");
  enqueue(10, 5, "that is away");
  auto running = Relay::make(
                     store_,
                     [&](std::string_view destination) -> Result<std::shared_ptr<Sink>> {
                       if (destination == "a broken one")
                         return fail(Remedy::stop, "missing", "no such topic: a broken one");
                       if (destination == "that is away")
                         return fail(Remedy::retry, "away", "away");
                       return shared(sink_);
                     },
                     {.name = "relay"}, clock_)
                     .value();
  const auto step = running->step();
  ASSERT_FALSE(step);
  EXPECT_EQ(step.error().tag, "missing");
  EXPECT_EQ(running->state().sent, 5u);
  std::vector<int> expected(15, 0);
  for (std::size_t i = 5; i < 10; ++i) expected[i] = 1;
  expect_times(expected);
}

}  // namespace
}  // namespace once::testing
