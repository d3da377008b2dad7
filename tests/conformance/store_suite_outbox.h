// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conformance/store_fixture.h"
#include "model/message_view.h"

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
  std::map<std::int64_t, std::optional<Route>> routes(std::string_view destination) {
    std::map<std::int64_t, std::optional<Route>> all;
    const auto found = under_test_.store().outbox()->pending(destination, 100).value();
    for (const OutboxRow& row : found) all[row.number] = row.route;
    return all;
  }
  // What is pending as a relay gives it a route: the first ones by number, all to one partition.
  void assign(std::string_view destination, std::uint64_t fence, std::uint32_t partition) {
    const auto found = numbers(destination);
    ASSERT_TRUE(under_test_.store().outbox()->assign(
        destination, fence, found, std::vector<std::uint32_t>(found.size(), partition)));
  }

 private:
  StoreUnderTest& under_test_;
};

// A tombstone, a key without a byte, a header without a value: absent and empty are two things.
inline std::vector<Message> unusual_messages() {
  return {{.id = "tombstone", .key = "k", .body = std::nullopt, .timestamp_ms = 1},
          {.id = "empty", .key = "", .body = "", .timestamp_ms = 2},
          {.id = "no key", .key = std::nullopt, .body = "b", .timestamp_ms = 3},
          {.id = "headers",
           .key = std::nullopt,
           .body = std::nullopt,
           .headers = {{"none", std::nullopt}, {"empty", ""}, {"", std::nullopt}},
           .timestamp_ms = 4}};
}

TEST_P(StoreSuite, absent_parts_of_messages_stay_absent_in_the_outbox_and_when_parked) {
  const std::vector<Message> messages = unusual_messages();
  {
    auto transaction = begin();
    for (const Message& message : messages) {
      ASSERT_TRUE(transaction->enqueue("next", message));
      const DeliveryView view(message);
      Delivery delivery = view.delivery();
      delivery.partition = "p0";
      ASSERT_TRUE(transaction->settle(delivery, parked("unusual")));
    }
    ASSERT_TRUE(transaction->commit());
  }
  reopen();
  const auto rows = outbox().pending("next", 100).value();
  const auto kept = records().parked("shop", 0, 100).value();
  ASSERT_EQ(rows.size(), messages.size());
  ASSERT_EQ(kept.size(), messages.size());
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    EXPECT_EQ(rows[i].message, messages[i]) << messages[i].id;
    EXPECT_EQ(kept[i].message, messages[i]) << messages[i].id;
    numbers.push_back(kept[i].number);
  }
  ASSERT_TRUE(store().repairs()->replay("shop", numbers, "again", "they are fine"));
  const auto replayed = outbox().pending("again", 100).value();
  ASSERT_EQ(replayed.size(), messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i)
    EXPECT_EQ(replayed[i].message, messages[i]) << messages[i].id;
}

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
  sender.assign("next", fence, 0);
  ASSERT_TRUE(outbox().sent("next", fence, std::vector{rows[0].number, rows[2].number}));
  ASSERT_TRUE(outbox().sent("next", fence, std::vector{rows[0].number}));  // asked twice
  reopen();
  EXPECT_EQ(Sender(*under_test_).pending("next"), (std::vector<std::string>{"m1", "m3", "m4"}));
  EXPECT_EQ(Sender(*under_test_).pending("other").size(), 1u);
}

// A relay that sent rows before the store went back asks about numbers that now belong to messages
// that never left.
TEST_P(StoreSuite, rows_without_a_route_are_never_taken_for_sent) {
  Sender sender(*under_test_);
  sender.enqueue("next", 0, 4);
  const auto numbers = sender.numbers("next");
  const std::uint64_t fence = store().take(relay_scope, "next").value().fence;
  ASSERT_TRUE(outbox().sent("next", fence, numbers));
  EXPECT_EQ(sender.numbers("next"), numbers);
  ASSERT_TRUE(outbox().assign("next", fence, std::span(numbers).first(2),
                              std::vector<std::uint32_t>{0, 1}));
  ASSERT_TRUE(outbox().sent("next", fence, numbers));
  reopen();
  Sender after(*under_test_);
  EXPECT_EQ(after.pending("next"), (std::vector<std::string>{"m2", "m3"}));
  after.assign("next", fence, 0);
  EXPECT_EQ(outbox().pending("next", 1).value()[0].route, (Route{0, 1}));
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
    const auto routes = sender.routes("next");
    ASSERT_EQ(routes.size(), 5u);
    for (std::size_t i = 0; i < 5; ++i)
      EXPECT_EQ(routes.at(numbers[i]), (Route{partitions[i], expected[partitions[i]]++}));
    // Asked again, also for other partitions, nothing changes: it may have been sent.
    ASSERT_TRUE(outbox().assign("next", fence, numbers, std::vector<std::uint32_t>(5, 3)));
    EXPECT_EQ(sender.routes("next"), routes);
    ASSERT_TRUE(outbox().sent("next", fence, numbers));
    EXPECT_TRUE(sender.pending("next").empty());
    if (round % 2 == 1) reopen();
  }
  EXPECT_EQ(expected, (std::map<std::uint32_t, std::uint64_t>{{0, 8}, {1, 8}, {2, 4}}));
}

TEST_P(StoreSuite, routes_that_the_destination_does_not_expect_are_not_given) {
  Sender sender(*under_test_);
  sender.enqueue("next", 0, 4);
  const std::uint64_t fence = store().take(relay_scope, "next").value().fence;
  const auto numbers = sender.numbers("next");
  const std::vector<std::uint32_t> partitions{0, 1, 0, 1};
  using Sequences = std::vector<std::uint64_t>;
  for (const Sequences& wrong :
       {Sequences{1, 0, 2, 1}, Sequences{0, 0, 1, 2}, Sequences{0, 0, 0, 1}}) {
    const Status refused = outbox().assign("next", fence, numbers, partitions, wrong);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().tag, "diverged");
    EXPECT_EQ(refused.error().remedy, Remedy::stop);
    const auto rows = outbox().pending("next", 100).value();
    for (const OutboxRow& row : rows) EXPECT_FALSE(row.route) << "nothing is changed";
  }
  EXPECT_FALSE(outbox().assign("next", fence, numbers, partitions, Sequences{0}));
  ASSERT_TRUE(outbox().assign("next", fence, numbers, partitions, Sequences{0, 0, 1, 1}));
  // Those that have a route keep it, whatever is expected.
  ASSERT_TRUE(outbox().assign("next", fence, numbers, partitions, Sequences{7, 7, 7, 7}));
  ASSERT_TRUE(outbox().sent("next", fence, numbers));
  sender.enqueue("next", 10, 1);
  const auto more = sender.numbers("next");
  const std::vector<std::uint32_t> first{0};
  for (const std::uint64_t wrong : {1u, 3u})
    EXPECT_EQ(outbox().assign("next", fence, more, first, Sequences{wrong}).error().tag,
              "diverged");
  ASSERT_TRUE(outbox().assign("next", fence, more, first, Sequences{2}));
  EXPECT_EQ(outbox().pending("next", 1).value()[0].route, (Route{0, 2}));
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
    sender.assign("next", fence, 0);
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

// Number and sequence have different orders: after a crash, what may have been sent is sent again
// first and in the order in which it was sent.
TEST_P(StoreSuite, rows_with_a_route_are_pending_first_and_in_the_order_of_their_sequences) {
  Sender sender(*under_test_);
  sender.enqueue("next", 0, 6);
  const auto numbers = sender.numbers("next");
  const std::uint64_t fence = store().take(relay_scope, "next").value().fence;
  ASSERT_TRUE(outbox().assign("next", fence, std::vector{numbers[4], numbers[2]},
                              std::vector<std::uint32_t>{0, 0}));
  ASSERT_TRUE(outbox().assign("next", fence, std::vector{numbers[3], numbers[1], numbers[0]},
                              std::vector<std::uint32_t>{0, 0, 0}));
  using Ids = std::vector<std::string>;
  EXPECT_EQ(sender.pending("next"), (Ids{"m4", "m2", "m3", "m1", "m0", "m5"}));
  EXPECT_EQ(sender.pending("next", 3), (Ids{"m4", "m2", "m3"}));
  ASSERT_TRUE(outbox().sent("next", fence, std::vector{numbers[4]}));
  Sender(*under_test_).enqueue("next", 6, 2);
  reopen();
  EXPECT_EQ(Sender(*under_test_).pending("next"), (Ids{"m2", "m3", "m1", "m0", "m5", "m6", "m7"}));
  EXPECT_EQ(Sender(*under_test_).pending("next", 5), (Ids{"m2", "m3", "m1", "m0", "m5"}));
}

// A transaction takes the numbers of its rows early and commits late, when rows with larger numbers
// have their routes.
TEST_P(StoreSuite, a_late_commit_goes_behind_what_has_a_route) {
  if (under_test_->has_one_writer()) {  // then nothing can be late: the order is that of commits
    Sender(*under_test_).enqueue("next", 0, 1);
    Sender(*under_test_).enqueue("next", 1, 1);
    EXPECT_EQ(Sender(*under_test_).pending("next"), (std::vector<std::string>{"m0", "m1"}));
    return;
  }
  constexpr int rounds = 4;
  Sender sender(*under_test_);
  const std::uint64_t fence = store().take(relay_scope, "next").value().fence;
  std::vector<std::string> expected;
  for (int round = 0; round < rounds; ++round) {
    const std::string id = "id " + std::to_string(round);
    auto late = begin("late");
    for (int i = 0; i < 2; ++i)
      ASSERT_TRUE(late->enqueue("next", numbered_message(100 * round + i)));
    ASSERT_TRUE(late->admit(std::vector{entry(id)}));  // waits until the rows are there
    sender.enqueue("next", 100 * round + 10, 3);
    sender.assign("next", fence, 0);
    ASSERT_TRUE(late->commit());
    sender.assign("next", fence, 0);
    for (const int i : {10, 11, 12, 0, 1})
      expected.push_back("m" + std::to_string(100 * round + i));
  }
  EXPECT_EQ(sender.pending("next"), expected);
  // The first of them were sent, and the relay dies before it writes down all of that.
  std::vector<std::int64_t> sent = sender.numbers("next");
  sent.resize(4);
  ASSERT_TRUE(outbox().sent("next", fence, sent));
  expected.erase(expected.begin(), expected.begin() + 4);
  reopen();
  EXPECT_EQ(Sender(*under_test_).pending("next"), expected);
  const auto rows = outbox().pending("next", 100).value();
  for (std::size_t i = 0; i < rows.size(); ++i)
    EXPECT_EQ(rows[i].route, (Route{0, static_cast<std::uint64_t>(i) + 4})) << i;
}

TEST_P(StoreSuite, a_parked_row_leaves_its_sequence_to_those_behind_it) {
  Sender sender(*under_test_);
  sender.enqueue("next", 0, 6);
  sender.enqueue("other", 10, 2);
  const auto numbers = sender.numbers("next");
  const std::uint64_t fence = store().take(relay_scope, "next").value().fence;
  const std::uint64_t other = store().take(relay_scope, "other").value().fence;
  sender.assign("other", other, 0);
  ASSERT_TRUE(outbox().assign("next", fence, std::span(numbers).first(5),
                              std::vector<std::uint32_t>{0, 1, 0, 0, 1}));
  for (int again = 0; again < 2; ++again)  // the answer to the first was lost
    ASSERT_TRUE(outbox().park("next", fence, numbers[2], "too large"));
  reopen();
  const auto routes = Sender(*under_test_).routes("next");
  const std::map<std::int64_t, std::optional<Route>> expected{{numbers[0], Route{0, 0}},
                                                              {numbers[1], Route{1, 0}},
                                                              {numbers[3], std::nullopt},
                                                              {numbers[4], Route{1, 1}},
                                                              {numbers[5], std::nullopt}};
  EXPECT_EQ(routes, expected);
  Sender(*under_test_).assign("next", fence, 0);
  EXPECT_EQ(Sender(*under_test_).routes("next").at(numbers[3]), (Route{0, 1}));
  EXPECT_EQ(Sender(*under_test_).routes("next").at(numbers[5]), (Route{0, 2}));
  for (const auto& [number, route] : Sender(*under_test_).routes("other")) EXPECT_TRUE(route);

  const auto parked = records().parked(outbox_scope, 0, 10).value();
  ASSERT_EQ(parked.size(), 1u);
  EXPECT_EQ(parked[0].partition, "next");
  EXPECT_EQ(parked[0].offset, numbers[2]);
  EXPECT_EQ(parked[0].reason, "too large");
  EXPECT_EQ(parked[0].message, numbered_message(2));
  EXPECT_GT(parked[0].parked_ms, 0);
  const auto lines = records().operations(outbox_scope, 0, 10).value();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].action, "park");
  EXPECT_EQ(lines[0].subject, "m2");
  EXPECT_EQ(lines[0].reason, "too large");
}

TEST_P(StoreSuite, a_row_without_a_route_is_parked_and_can_be_replayed) {
  Sender sender(*under_test_);
  sender.enqueue("next", 0, 3);
  const auto numbers = sender.numbers("next");
  const std::uint64_t fence = store().take(relay_scope, "next").value().fence;
  ASSERT_TRUE(
      outbox().assign("next", fence, std::span(numbers).first(1), std::vector<std::uint32_t>{0}));
  for (const std::uint64_t wrong : {fence - 1, fence + 1})
    EXPECT_EQ(outbox().park("next", wrong, numbers[1], "no").error().tag, "fenced");
  ASSERT_TRUE(outbox().park("next", fence, numbers[1], "no such topic"));
  EXPECT_EQ(sender.pending("next"), (std::vector<std::string>{"m0", "m2"}));
  EXPECT_EQ(sender.routes("next").at(numbers[0]), (Route{0, 0}));
  const auto parked = records().parked(outbox_scope, 0, 10).value();
  ASSERT_EQ(parked.size(), 1u);
  ASSERT_TRUE(store().repairs()->replay(outbox_scope, std::vector{parked[0].number}, "next",
                                        "the topic is there now"));
  EXPECT_TRUE(records().parked(outbox_scope, 0, 10).value().empty());
  EXPECT_EQ(sender.pending("next"), (std::vector<std::string>{"m0", "m2", "m1"}));
  sender.assign("next", fence, 0);
  const auto rows = outbox().pending("next", 10).value();
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(rows[i].route, (Route{0, i}));
}

}  // namespace once::testing
