// SPDX-License-Identifier: Apache-2.0
// A destination that does not recognise resends: nothing is lost, the order is kept, and a copy has
// a reason, which is a crash or an answer that was lost.
#include <optional>

#include "base/failpoint.h"
#include "model/forwarding_sink.h"
#include "runtime/relay_testing.h"
#include "simulation/relay_process.h"

namespace once::testing {
namespace {

class RelayUnrecognised : public RelayBorders {
 protected:
  RelayUnrecognised() : RelayBorders(Recognises::none) {}

  std::unique_ptr<Relay> relay_through(Store& store, const std::string& owner) {
    return relay_at(store, owner, 30);
  }
};

TEST_F(RelayUnrecognised, rows_leave_once_and_in_order) {
  enqueue(0, 60);
  auto sending = relay();
  drain(*sending);
  enqueue(60, 20);
  drain(*sending);
  expect_each_once(80);
  EXPECT_EQ(sending->state().sent, 80u);
}

TEST_F(RelayUnrecognised, rows_that_are_refused_are_parked_and_the_others_are_sent_once) {
  sink_.refuse([](const Message& offered) -> Status {
    for (const char* id : {"m0", "m3", "m8", "m29"})
      if (offered.id == id) return fail(Remedy::park, "too_large", offered.id + " is too large");
    return {};
  });
  enqueue(0, 30);
  auto sending = relay("here", 30);
  drain(*sending);
  std::vector<int> expected(30, 1);
  for (const std::size_t poison : {0u, 3u, 8u, 29u}) expected[poison] = 0;
  expect_times(expected);
  EXPECT_EQ(sending->state().parked, 4u);
  EXPECT_EQ(sending->state().sent, 26u);
  const auto parked = static_cast<Store&>(store_).records()->parked(outbox_scope, 0, 10).value();
  EXPECT_EQ(parked.size(), 4u);
}

// A sink that answers for the whole append has appended nothing of it.
TEST_F(RelayUnrecognised, a_sink_that_refuses_the_whole_append_is_given_smaller_ones) {
  MemorySink inner(partition_count, Recognises::none);
  struct Strict final : ForwardingSink {
    explicit Strict(Sink& sink) : ForwardingSink(sink) {}
    Result<Receipt> append(std::uint32_t partition, const Stamp& stamp,
                           std::span<const Message> messages) override {
      for (const Message& message : messages)
        if (message.id == "m7") return fail(Remedy::park, "too_large", "m7 is too large");
      return inner().append(partition, stamp, messages);
    }
  } strict(inner);
  enqueue(0, 20);
  auto sending = Relay::make(
                     store_, [&](std::string_view) { return shared(strict); },
                     {.name = "relay", .batch_count_max = 20, .owner = "here"}, clock_)
                     .value();
  drain(*sending);
  std::map<std::string, int> times;
  for (std::uint32_t p = 0; p < partition_count; ++p)
    for (const Message& message : inner.messages(p)) ++times[message.id];
  for (std::size_t i = 0; i < 20; ++i)
    EXPECT_EQ(times["m" + std::to_string(i)], i == 7 ? 0 : 1) << i;
  EXPECT_EQ(sending->state().parked, 1u);
}

TEST_F(RelayUnrecognised, what_is_known_to_be_there_is_only_removed) {
  bool lose = false;
  simulation::ProcessStore process(store_, [&](const char*, Remedy remedy) -> Status {
    if (!lose || remedy != Remedy::retry) return {};
    lose = false;
    return fail(Remedy::retry, "away", "the store does not answer");
  });
  sink_.set_faults({}, [&]() -> Status {
    lose = sink_.appends() == 1;  // the call behind the first append removes its rows
    return {};
  });
  enqueue(0, 30);
  auto sending = relay_through(process, "here");
  EXPECT_FALSE(sending->step());
  sink_.set_faults({}, {});
  drain(*sending);
  expect_each_once(30);
}

TEST_F(RelayUnrecognised, an_answer_that_is_lost_leaves_copies_and_loses_nothing) {
  bool lose = true;
  sink_.set_faults({}, [&]() -> Status {
    if (!std::exchange(lose, false)) return {};
    return fail(Remedy::recheck, "lost", "the answer was lost");
  });
  enqueue(0, 30);
  auto sending = relay_through(store_, "here");
  EXPECT_FALSE(sending->step());
  const std::vector<std::string> twice = arrived();
  EXPECT_FALSE(twice.empty());
  drain(*sending);
  std::vector<int> expected(30, 1);
  for (const std::string& id : twice) expected[std::stoul(id.substr(1))] = 2;
  expect_times(expected);
}

TEST_F(RelayUnrecognised, after_a_crash_the_routes_keep_partition_and_order) {
  enqueue(0, 30);
  auto dying = relay_through(store_, "there");
  point_hook = [](Point point) {
    if (point == Point::relay_after_append) throw SimulatedDeath();
  };
  EXPECT_THROW((void)dying->step(), SimulatedDeath);
  point_hook = nullptr;
  const std::vector<std::string> twice = arrived();
  EXPECT_FALSE(twice.empty());
  clock_.step(60'000);
  auto sending = relay_through(store_, "here");
  drain(*sending);
  std::vector<int> expected(30, 1);
  for (const std::string& id : twice) expected[std::stoul(id.substr(1))] = 2;
  expect_times(expected);
}

}  // namespace
}  // namespace once::testing
