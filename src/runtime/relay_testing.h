// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <once/outbox.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "store/memory/memory.h"
#include "testing/memory_sink.h"
#include "testing/sim_clock.h"

namespace once::testing {

// A store in memory, a topic in memory, and relays between them.
class RelayBorders : public ::testing::Test {
 protected:
  RelayBorders() = default;
  explicit RelayBorders(Recognises recognises) : sink_(partition_count, recognises) {}

  static Message message(std::size_t number) {
    return {.id = "m" + std::to_string(number),
            .key = "k" + std::to_string(number % 5),
            .body = "paid",
            .headers = {},
            .timestamp_ms = 1};
  }
  static void enqueue_at(Store& store, std::size_t from, std::size_t count,
                         const std::string& destination = "paid") {
    auto transaction = store.begin("shop").value();
    for (std::size_t i = from; i < from + count; ++i)
      ASSERT_TRUE(transaction->enqueue(destination, message(i)));
    ASSERT_TRUE(transaction->commit());
  }
  void enqueue(std::size_t from, std::size_t count, const std::string& destination = "paid") {
    enqueue_at(store_, from, count, destination);
  }

  // The owner of another process: this one's would be the same process, and alive.
  std::unique_ptr<Relay> relay(const std::string& owner = "here", std::size_t batch_count_max = 7) {
    return relay_at(store_, owner, batch_count_max);
  }
  std::unique_ptr<Relay> relay_at(Store& store, const std::string& owner = "here",
                                  std::size_t batch_count_max = 7) {
    return Relay::make(
               store, [this](std::string_view) { return shared(sink_); },
               {.name = "relay", .batch_count_max = batch_count_max, .owner = owner}, clock_)
        .value();
  }

  static void drain(Relay& relay) {
    while (true) {
      const auto left = relay.step();
      ASSERT_TRUE(left) << left.error().text;
      if (*left == 0) return;
    }
  }

  std::vector<std::string> arrived() const {
    std::vector<std::string> ids;
    for (std::uint32_t p = 0; p < partition_count; ++p)
      for (const Message& sent : sink_.messages(p)) ids.push_back(sent.id);
    return ids;
  }

  // Each of m0 ... is there as often as it should be, and in order within its key.
  void expect_times(const std::vector<int>& expected) {
    std::vector<int> times(expected.size(), 0);
    for (std::uint32_t p = 0; p < partition_count; ++p) {
      std::map<std::string, long> last;
      for (const Message& sent : sink_.messages(p)) {
        const long number = std::stol(sent.id.substr(1));
        ASSERT_LT(static_cast<std::size_t>(number), times.size());
        if (++times[static_cast<std::size_t>(number)] > 1) continue;
        const auto [before, first] = last.emplace(sent.key.value_or(""), -1);
        EXPECT_GT(number, before->second) << "out of order";
        before->second = number;
      }
    }
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(times[i], expected[i]) << "m" << i;
  }
  void expect_each_once(std::size_t count) { expect_times(std::vector<int>(count, 1)); }

  void restart_destination(const std::string& destination = "paid") {
    ASSERT_TRUE(static_cast<Store&>(store_).repairs()->correct(
        relay_scope, RestartDestination{destination}, "decided by a person"));
  }

  static constexpr std::uint32_t partition_count = 2;
  SimClock clock_;
  MemoryStore store_{clock_, "a-store"};
  MemorySink sink_{partition_count};
};

}  // namespace once::testing
