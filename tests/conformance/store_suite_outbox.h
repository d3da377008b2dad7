// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conformance/store_fixture.h"

namespace once::testing {

inline Message numbered_message(int number) {
  Message message;
  message.id = "m" + std::to_string(number);
  message.key = "k";
  message.body = std::string("b\0", 2) + std::to_string(number);
  message.headers = {{"h", "\xff"}, {"", ""}};
  message.timestamp_ms = number;
  return message;
}

// Fills the outbox and looks into it.
class Sender {
 public:
  explicit Sender(StoreUnderTest& under_test) : under_test_(under_test) {}

  void enqueue(std::string_view destination, int first, int count) {
    auto transaction = under_test_.store().begin("shop").value();
    for (int i = first; i < first + count; ++i)
      ASSERT_TRUE(transaction->enqueue(destination, numbered_message(i)));
    ASSERT_TRUE(transaction->commit());
  }
  std::vector<std::string> pending(std::string_view destination, std::size_t count_max = 100) {
    std::vector<std::string> ids;
    const auto found = under_test_.store().outbox()->pending(destination, count_max).value();
    for (const OutboxRow& row : found) ids.push_back(row.message.id);
    return ids;
  }
  std::vector<std::int64_t> numbers(std::string_view destination) {
    std::vector<std::int64_t> all;
    const auto found = under_test_.store().outbox()->pending(destination, 100).value();
    for (const OutboxRow& row : found) all.push_back(row.number);
    return all;
  }

 private:
  StoreUnderTest& under_test_;
};

TEST_P(StoreSuite, what_was_enqueued_waits_in_order_until_it_is_sent) {
  Sender(*under_test_).enqueue("next", 0, 3);
  Sender(*under_test_).enqueue("other", 10, 1);
  Sender(*under_test_).enqueue("next", 3, 2);
  reopen();
  Sender sender(*under_test_);
  EXPECT_EQ(outbox().destinations().value(), (std::vector<std::string>{"next", "other"}));
  EXPECT_EQ(sender.pending("next"), (std::vector<std::string>{"m0", "m1", "m2", "m3", "m4"}));
  EXPECT_EQ(sender.pending("next", 2), (std::vector<std::string>{"m0", "m1"}));
  EXPECT_EQ(sender.pending("other"), (std::vector<std::string>{"m10"}));
  EXPECT_TRUE(sender.pending("nowhere").empty());
  const auto rows = outbox().pending("next", 100).value();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(rows[static_cast<std::size_t>(i)].message, numbered_message(i));
    EXPECT_EQ(rows[static_cast<std::size_t>(i)].destination, "next");
    EXPECT_FALSE(rows[static_cast<std::size_t>(i)].route);
  }
  const std::uint64_t fence = store().take(relay_scope, "next").value().fence;
  ASSERT_TRUE(outbox().sent("next", fence, std::vector{rows[0].number, rows[2].number}));
  ASSERT_TRUE(outbox().sent("next", fence, std::vector{rows[0].number}));  // asked twice
  reopen();
  EXPECT_EQ(Sender(*under_test_).pending("next"), (std::vector<std::string>{"m1", "m3", "m4"}));
  EXPECT_EQ(Sender(*under_test_).pending("other").size(), 1u);
}

TEST_P(StoreSuite, a_rolled_back_message_never_leaves) {
  {
    auto transaction = begin();
    ASSERT_TRUE(transaction->enqueue("next", numbered_message(0)));
  }
  Sender sender(*under_test_);
  EXPECT_TRUE(sender.pending("next").empty());
  EXPECT_TRUE(outbox().destinations().value().empty());
  sender.enqueue("next", 1, 1);
  EXPECT_EQ(sender.pending("next"), std::vector<std::string>{"m1"});
}

TEST_P(StoreSuite, routes_count_without_holes_also_across_a_restart) {
  std::map<std::uint32_t, std::uint64_t> expected;
  for (int round = 0; round < 4; ++round) {
    Sender sender(*under_test_);
    sender.enqueue("next", round * 10, 5);
    const std::uint64_t fence = store().take(relay_scope, "next").value().fence;
    const auto numbers = sender.numbers("next");
    ASSERT_EQ(numbers.size(), 5u);
    const std::vector<std::uint32_t> partitions{0, 1, 0, 2, 1};
    ASSERT_TRUE(outbox().assign("next", fence, numbers, partitions));
    if (round % 2 == 0) reopen();
    const auto rows = outbox().pending("next", 100).value();
    for (std::size_t i = 0; i < 5; ++i) {
      ASSERT_TRUE(rows[i].route);
      EXPECT_EQ(*rows[i].route, (Route{partitions[i], expected[partitions[i]]++}));
    }
    // Asked again, also for other partitions, nothing changes: it may have been sent.
    ASSERT_TRUE(outbox().assign("next", fence, numbers, std::vector<std::uint32_t>(5, 3)));
    const auto again = outbox().pending("next", 100).value();
    for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(again[i].route, rows[i].route);
    ASSERT_TRUE(outbox().sent("next", fence, numbers));
    EXPECT_TRUE(sender.pending("next").empty());
    if (round % 2 == 1) reopen();
  }
  EXPECT_EQ(expected, (std::map<std::uint32_t, std::uint64_t>{{0, 8}, {1, 8}, {2, 4}}));
}

TEST_P(StoreSuite, routes_of_destinations_are_apart) {
  Sender sender(*under_test_);
  for (const char* destination : {"a", "b"}) {
    sender.enqueue(destination, 0, 1);
    const std::uint64_t fence = store().take(relay_scope, destination).value().fence;
    ASSERT_TRUE(outbox().assign(destination, fence, sender.numbers(destination),
                                std::vector<std::uint32_t>{0}));
    EXPECT_EQ(outbox().pending(destination, 1).value()[0].route->sequence, 0u);
  }
}

TEST_P(StoreSuite, numbers_of_the_outbox_are_never_used_again) {
  std::int64_t last = 0;
  for (int round = 0; round < 3; ++round) {
    Sender sender(*under_test_);
    sender.enqueue("next", 0, 2);
    const auto numbers = sender.numbers("next");
    EXPECT_GT(numbers.front(), last);
    last = numbers.back();
    const std::uint64_t fence = store().take(relay_scope, "next").value().fence;
    ASSERT_TRUE(outbox().sent("next", fence, numbers));
    reopen();
  }
}

TEST_P(StoreSuite, a_stale_relay_is_refused) {
  Sender sender(*under_test_);
  sender.enqueue("next", 0, 1);
  const auto numbers = sender.numbers("next");
  const std::vector<std::uint32_t> partitions{0};
  const std::uint64_t stale = store().take(relay_scope, "next").value().fence;
  const std::uint64_t fence = store().take(relay_scope, "next").value().fence;
  for (const std::uint64_t wrong : {stale, fence + 1, std::uint64_t{0}}) {
    EXPECT_EQ(outbox().assign("next", wrong, numbers, partitions).error().tag, "fenced");
    EXPECT_EQ(outbox().sent("next", wrong, numbers).error().tag, "fenced");
  }
  EXPECT_FALSE(outbox().pending("next", 1).value()[0].route);
  EXPECT_TRUE(outbox().assign("next", fence, numbers, partitions));
  EXPECT_TRUE(outbox().sent("next", fence, numbers));
  EXPECT_FALSE(outbox().sent("never taken", 0, numbers));
}

TEST_P(StoreSuite, nonsense_about_routes_is_refused_and_changes_nothing) {
  Sender sender(*under_test_);
  sender.enqueue("next", 0, 1);
  const std::uint64_t fence = store().take(relay_scope, "next").value().fence;
  const std::int64_t number = sender.numbers("next")[0];
  EXPECT_EQ(outbox().assign("next", fence, std::vector{number}, {}).error().tag, "config");
  EXPECT_EQ(outbox()
                .assign("next", fence, std::vector{number, number + 1000},
                        std::vector<std::uint32_t>{0, 0})
                .error()
                .tag,
            "missing");
  EXPECT_FALSE(outbox().pending("next", 1).value()[0].route);
}

}  // namespace once::testing
