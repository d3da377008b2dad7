// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <once/outbox.h>

#include <string>
#include <vector>

#include "store/memory/memory.h"
#include "testing/memory_sink.h"
#include "testing/sim_clock.h"

namespace once {
namespace {

using testing::MemorySink;
using testing::SimClock;

class RelayTest : public ::testing::Test {
 protected:
  void enqueue(std::size_t from, std::size_t count, const std::string& destination = "paid") {
    auto transaction = store_.begin("shop").value();
    for (std::size_t i = from; i < from + count; ++i)
      ASSERT_TRUE(transaction->enqueue(destination, {.id = "m" + std::to_string(i),
                                                     .key = "k" + std::to_string(i % 5),
                                                     .body = "paid",
                                                     .headers = {},
                                                     .timestamp_ms = 1}));
    ASSERT_TRUE(transaction->commit());
  }

  std::unique_ptr<Relay> relay() {
    return Relay::make(
               store_, [this](std::string_view) { return testing::shared(sink_); },
               {.name = "relay", .batch_count_max = 7}, clock_)
        .value();
  }

  std::unique_ptr<Relay> relay_of(const std::string& destination) {
    return Relay::make(
               store_, [this](std::string_view) { return testing::shared(sink_); },
               {.name = "another", .batch_count_max = 7, .destinations = {destination}}, clock_)
        .value();
  }

  void drain(Relay& relay) {
    while (true) {
      const auto sent = relay.step();
      ASSERT_TRUE(sent) << sent.error().text;
      if (*sent == 0) return;
    }
  }

  void expect_each_once(std::size_t count) {
    std::vector<int> times(count, 0);
    for (std::uint32_t p = 0; p < 2; ++p) {
      long last = -1;
      for (const Message& message : sink_.messages(p)) {
        const long number = std::stol(message.id.substr(1));
        ++times.at(static_cast<std::size_t>(number));
        EXPECT_GT(number, last) << "out of order";
        last = number;
      }
    }
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(times[i], 1) << "m" << i;
  }

  SimClock clock_;
  MemoryStore store_{clock_};
  MemorySink sink_{2};
};

TEST_F(RelayTest, sends_every_committed_row_once_in_order) {
  enqueue(0, 50);
  auto first = relay();
  drain(*first);
  enqueue(50, 50);
  drain(*first);
  expect_each_once(100);
  EXPECT_TRUE(store_.outbox()->pending("paid", 10).value().empty());
}

TEST_F(RelayTest, a_row_of_a_rolled_back_transaction_is_never_sent) {
  {
    auto transaction = store_.begin("shop").value();
    ASSERT_TRUE(transaction->enqueue("paid", {.id = "m9", .key = "", .body = "", .headers = {}}));
  }
  auto one = relay();
  EXPECT_EQ(one->step().value(), 0u);
}

// H23: killed between sending and marking, a relay sends again, and the destination knows it.
TEST_F(RelayTest, H23_a_relay_that_dies_after_sending_causes_no_duplicate) {
  enqueue(0, 30);
  int lives = 3;
  sink_.set_faults({}, [&]() -> Status {
    if (lives-- > 0) return fail(Remedy::stop, "killed", "the relay dies before it is told");
    return {};
  });
  while (lives > 0) EXPECT_FALSE(relay()->step());
  auto survivor = relay();
  drain(*survivor);
  expect_each_once(30);
}

TEST_F(RelayTest, bad_options_are_refused) {
  EXPECT_EQ(Relay::make(store_, {}, {.name = ""}).error().tag, "config");
  EXPECT_EQ(Relay::make(store_, {}, {.name = "r", .batch_count_max = 0}).error().tag, "config");
  EXPECT_EQ(Relay::make(store_, {}, {.name = "r", .lease_ms = 9}).error().tag, "config");
}

TEST_F(RelayTest, rows_of_our_own_are_left_to_the_relay_that_asks_for_them) {
  enqueue(0, 10, "once.replay/1/file:x");
  auto usual = relay();
  EXPECT_EQ(usual->step().value(), 0u);
  enqueue(10, 1, "paid");
  auto replay = relay_of("once.replay/1/file:x");
  drain(*replay);
  expect_each_once(10);  // and nothing that is another's
  drain(*usual);
  expect_each_once(11);
}

}  // namespace
}  // namespace once
