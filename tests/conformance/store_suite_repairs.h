// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/pipeline.h>

#include "conformance/store_fixture.h"
#include "testing/memory_sink.h"
#include "testing/script_source.h"

namespace once::testing {

// Parks messages and looks at what a person's changes leave behind.
class RepairSuite : public StoreSuite {
 protected:
  Repairs& repairs() { return *store().repairs(); }

  static Delivery order(int number) {
    static const std::vector<HeaderView> headers{{"h", "\xff"}, {"", ""}};
    Delivery made = delivery(ids().at(static_cast<std::size_t>(number)), number);
    made.key = "ann";
    made.headers = headers;
    made.timestamp_ms = birth_ms + number;
    return made;
  }
  static const std::vector<std::string>& ids() {
    static const std::vector<std::string> all{"m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7"};
    return all;
  }
  static Entry entry_of(const Delivery& delivery, int content = 0) {
    return {delivery.id, print(content), delivery.timestamp_ms, delivery.partition,
            delivery.offset};
  }

  // Orders 0 to 7 arrive: the odd ones are parked, the others have their effect.
  void park_the_odd_ones() {
    auto transaction = begin();
    for (int i = 0; i < 8; ++i) {
      const Delivery delivery = order(i);
      ASSERT_EQ(transaction->admit(std::vector{entry_of(delivery)}).value()[0].kind, Kind::fresh);
      if (i % 2 == 0)
        ASSERT_TRUE(add_effect(*transaction, delivery.id));
      else
        ASSERT_TRUE(transaction->settle(delivery, parked("no account " + std::to_string(i))));
    }
    ASSERT_TRUE(transaction->commit());
  }
  // One delivery, as a pipeline handles it.
  Kind deliver(const Message& message, std::int64_t offset, int content = 0) {
    const Entry one{message.id, print(content), message.timestamp_ms, "p0", offset};
    return kind_of(one);
  }

  std::vector<ParkedRecord> parked_records() { return records().parked("shop", 0, 100).value(); }
  std::vector<OutboxRow> rows_for(const char* destination) {
    return outbox().pending(destination, 100).value();
  }
  std::vector<std::int64_t> parked_numbers() {
    std::vector<std::int64_t> numbers;
    for (const ParkedRecord& record : parked_records()) numbers.push_back(record.number);
    return numbers;
  }
  std::vector<std::string> parked_ids() {
    std::vector<std::string> all;
    for (const ParkedRecord& record : parked_records()) all.push_back(record.message.id);
    return all;
  }
  std::vector<OperationRecord> done_by_hand() {
    std::vector<OperationRecord> lines;
    const auto all = records().operations("shop", 0, 1000).value();
    for (const OperationRecord& line : all)
      if (line.action == "force" || line.action == "replay" || line.action == "drop")
        lines.push_back(line);
    return lines;
  }
  std::vector<std::string> waiting(const char* destination = "again") {
    std::vector<std::string> all;
    for (const OutboxRow& row : rows_for(destination)) all.push_back(row.message.id);
    return all;
  }
};

using Strings = std::vector<std::string>;

TEST_P(RepairSuite, H28_a_forced_id_counts_as_new_once_and_the_log_says_why) {
  park_the_odd_ones();
  ASSERT_EQ(kind_of(entry_of(order(2))), Kind::duplicate);
  ASSERT_TRUE(repairs().force("shop", "m2", "the payment was undone"));
  reopen();
  EXPECT_FALSE(records().find("shop", "m2").value());
  EXPECT_EQ(kind_of(entry_of(order(2))), Kind::fresh);
  EXPECT_EQ(kind_of(entry_of(order(2))), Kind::duplicate);
  EXPECT_EQ(effects(), (Strings{"m0", "m2", "m4", "m6", "m2"}));
  const auto lines = done_by_hand();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].action, "force");
  EXPECT_EQ(lines[0].subject, "m2");
  EXPECT_TRUE(lines[0].reason.starts_with("the payment was undone (was applied"))
      << lines[0].reason;
}

TEST_P(RepairSuite, forcing_is_for_one_scope_and_for_an_id_to_the_last_byte) {
  const std::string odd("a\0\xff", 3);
  const std::string uuid = "0190f3c2-7b1e-7abc-8def-0123456789ab";
  for (const std::string& id : {odd, uuid}) {
    ASSERT_EQ(kind_of(entry(id)), Kind::fresh);
    ASSERT_EQ(kind_of(entry(id), "other"), Kind::fresh);
    ASSERT_TRUE(repairs().force("shop", id, "why not"));
    EXPECT_EQ(kind_of(entry(id), "other"), Kind::duplicate);
    EXPECT_EQ(kind_of(entry(id)), Kind::fresh);
  }
  EXPECT_EQ(repairs().force("shop", "a", "why not").error().tag, "not_known");
  EXPECT_EQ(repairs().force("nobody", uuid, "why not").error().tag, "not_known");
  EXPECT_EQ(repairs().force("", uuid, "why not").error().tag, "config");
  EXPECT_EQ(repairs().force("shop", "", "why not").error().tag, "no_id");
}

// What was forced is not remembered as old: it may be forgotten again like any other id.
TEST_P(RepairSuite, a_forced_id_leaves_nothing_for_forgetting_to_stumble_over) {
  park_the_odd_ones();
  ASSERT_TRUE(repairs().force("shop", "m2", "once more"));
  ASSERT_EQ(kind_of(entry("m2", 20, 0, birth_ms + day_ms)), Kind::fresh);
  EXPECT_EQ(forget_all(birth_ms + 100), 7u);
  EXPECT_EQ(kind_of(entry("m2", 21, 0, birth_ms + day_ms)), Kind::duplicate);
  EXPECT_EQ(kind_of(entry_of(order(4))), Kind::too_old);
}

TEST_P(RepairSuite, nothing_is_changed_by_hand_without_a_reason) {
  park_the_odd_ones();
  const auto numbers = parked_numbers();
  for (const char* reason : {"", " \t\n"}) {
    EXPECT_EQ(repairs().force("shop", "m2", reason).error().tag, "config");
    EXPECT_EQ(repairs().replay("shop", numbers, "again", reason).error().tag, "config");
    EXPECT_EQ(repairs().drop("shop", numbers, reason).error().tag, "config");
  }
  EXPECT_EQ(repairs().replay("shop", numbers, "", "why").error().tag, "config");
  EXPECT_EQ(parked_ids(), (Strings{"m1", "m3", "m5", "m7"}));
  EXPECT_TRUE(waiting().empty());
  EXPECT_EQ(kind_of(entry_of(order(2))), Kind::duplicate);
  EXPECT_TRUE(done_by_hand().empty());
}

TEST_P(RepairSuite, H28_a_replayed_message_leaves_as_it_came_and_counts_exactly_once) {
  park_the_odd_ones();
  const auto numbers = parked_numbers();
  ASSERT_EQ(numbers.size(), 4u);
  ASSERT_TRUE(repairs().replay("shop", std::vector{numbers[0], numbers[2]}, "again", "fixed"));
  reopen();
  EXPECT_EQ(parked_ids(), (Strings{"m3", "m7"}));
  const auto rows = outbox().pending("again", 100).value();
  ASSERT_EQ(rows.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const Delivery was = order(i == 0 ? 1 : 5);
    EXPECT_EQ(rows[i].message.id, was.id);
    EXPECT_EQ(rows[i].message.key, was.key);
    EXPECT_EQ(rows[i].message.body, was.body);
    EXPECT_EQ(rows[i].message.timestamp_ms, was.timestamp_ms);
    EXPECT_EQ(rows[i].message.headers, (std::vector<Header>{{"h", "\xff"}, {"", ""}}));
    EXPECT_FALSE(rows[i].route);
  }
  // It comes back, and then once more: a broker's redelivery.
  for (const Kind expected : {Kind::fresh, Kind::duplicate})
    for (const OutboxRow& row : rows) EXPECT_EQ(deliver(row.message, 100), expected);
  // The others are known as before.
  for (const int i : {0, 2, 3, 4, 6, 7}) EXPECT_EQ(kind_of(entry_of(order(i))), Kind::duplicate);
  EXPECT_EQ(effects(), (Strings{"m0", "m2", "m4", "m6", "m1", "m5"}));
}

TEST_P(RepairSuite, a_replay_that_is_asked_for_twice_happens_once) {
  park_the_odd_ones();
  const auto numbers = parked_numbers();
  ASSERT_TRUE(repairs().replay("shop", numbers, "again", "fixed"));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(repairs().replay("shop", numbers, "again", "fixed").error().tag, "not_known");
    reopen();
  }
  EXPECT_EQ(waiting(), (Strings{"m1", "m3", "m5", "m7"}));
  for (const OutboxRow& row : rows_for("again")) EXPECT_EQ(deliver(row.message, 100), Kind::fresh);
  for (const auto& [id, count] : effect_counts()) EXPECT_EQ(count, 1) << id;
  EXPECT_EQ(effect_counts().size(), 8u);
  const auto lines = done_by_hand();
  ASSERT_EQ(lines.size(), 4u);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].action, "replay");
    EXPECT_EQ(lines[i].subject, ids()[2 * i + 1]);
    EXPECT_EQ(lines[i].reason,
              "fixed (parked message " + std::to_string(numbers[i]) + ", to again)");
  }
}

TEST_P(RepairSuite, replay_and_drop_are_all_or_nothing) {
  park_the_odd_ones();
  const auto numbers = parked_numbers();
  const std::vector<std::vector<std::int64_t>> wrong{
      {numbers[0], numbers[1], numbers[3] + 1000},
      {numbers[0] - 1000, numbers[0]},
      {numbers[0], numbers[0]},  // the second time it is not parked any more
  };
  for (const auto& some : wrong) {
    EXPECT_EQ(repairs().replay("shop", some, "again", "fixed").error().tag, "not_known");
    EXPECT_EQ(repairs().drop("shop", some, "old").error().tag, "not_known");
  }
  EXPECT_EQ(repairs().replay("other", numbers, "again", "fixed").error().tag, "not_known");
  EXPECT_EQ(repairs().drop("other", numbers, "old").error().tag, "not_known");
  EXPECT_TRUE(repairs().replay("shop", {}, "again", "fixed"));
  EXPECT_TRUE(repairs().drop("shop", {}, "old"));
  reopen();
  EXPECT_EQ(parked_numbers(), numbers);
  EXPECT_TRUE(waiting().empty());
  for (int i = 0; i < 8; ++i) EXPECT_EQ(kind_of(entry_of(order(i))), Kind::duplicate) << i;
  EXPECT_TRUE(done_by_hand().empty());
}

// A copy with other content was parked; the first one has had its effect. Sending the copy again
// must not make the id free, or the next copy of the first one would count twice.
TEST_P(RepairSuite, an_id_that_has_had_its_effect_is_not_freed_by_a_replay) {
  ASSERT_EQ(kind_of(entry("a", 1, 1)), Kind::fresh);
  {
    auto transaction = begin();
    ASSERT_EQ(transaction->admit(std::vector{entry("a", 2, 2)}).value()[0].kind, Kind::mismatch);
    ASSERT_TRUE(transaction->settle(delivery("a", 2), parked("other content")));
    ASSERT_TRUE(transaction->commit());
  }
  ASSERT_TRUE(repairs().replay("shop", parked_numbers(), "again", "let us see"));
  EXPECT_EQ(waiting(), Strings{"a"});
  EXPECT_EQ(kind_of(entry("a", 3, 1)), Kind::duplicate);
  EXPECT_EQ(kind_of(entry("a", 4, 2)), Kind::mismatch);
  // Who means it forces the id, and says so.
  ASSERT_TRUE(repairs().force("shop", "a", "the second one is right"));
  EXPECT_EQ(kind_of(entry("a", 5, 2)), Kind::fresh);
  EXPECT_EQ(kind_of(entry("a", 6, 1)), Kind::mismatch);
  EXPECT_EQ(effects(), (Strings{"a", "a"}));
}

TEST_P(RepairSuite, what_is_dropped_is_gone_and_its_id_stays_known) {
  park_the_odd_ones();
  const auto numbers = parked_numbers();
  ASSERT_TRUE(repairs().drop("shop", std::vector{numbers[3], numbers[1]}, "a test order"));
  reopen();
  EXPECT_EQ(parked_ids(), (Strings{"m1", "m5"}));
  EXPECT_EQ(repairs().drop("shop", std::vector{numbers[1]}, "again").error().tag, "not_known");
  for (int i = 0; i < 8; ++i) EXPECT_EQ(kind_of(entry_of(order(i))), Kind::duplicate) << i;
  EXPECT_EQ(effects(), (Strings{"m0", "m2", "m4", "m6"}));
  EXPECT_TRUE(waiting().empty());
  const auto lines = done_by_hand();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].subject, "m7");
  EXPECT_EQ(lines[1].subject, "m3");
  EXPECT_EQ(lines[1].action, "drop");
  EXPECT_EQ(lines[1].reason, "a test order (parked message " + std::to_string(numbers[1]) + ")");
}

TEST_P(RepairSuite, a_message_without_an_id_can_be_replayed_and_dropped) {
  Delivery bare;
  bare.partition = "p0";
  bare.body = "who am I?";
  for (const bool replays : {true, false}) {
    auto transaction = begin();
    ASSERT_TRUE(transaction->settle(bare, parked("no id")));
    ASSERT_TRUE(transaction->commit());
    transaction.reset();
    const auto numbers = parked_numbers();
    ASSERT_EQ(numbers.size(), 1u);
    ASSERT_TRUE(replays ? repairs().replay("shop", numbers, "again", "why")
                        : repairs().drop("shop", numbers, "why"));
    EXPECT_TRUE(parked_numbers().empty());
  }
  const auto rows = outbox().pending("again", 10).value();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].message.body, "who am I?");
}

// Nobody knows whether it was committed: then all of it was, or nothing.
TEST_P(RepairSuite, a_repair_whose_answer_was_lost_happened_or_did_not) {
  park_the_odd_ones();
  for (const bool kept : {false, true}) {
    const auto numbers = parked_numbers();
    ASSERT_GE(numbers.size(), 2u);
    const std::vector<std::int64_t> two{numbers[0], numbers[1]};
    const Strings ids{parked_ids()[0], parked_ids()[1]};
    const std::size_t waiting_before = waiting().size();
    under_test_->lose_next_commit(kept);
    const auto lost = repairs().replay("shop", two, "again", "fixed");
    ASSERT_FALSE(lost);
    ASSERT_EQ(lost.error().remedy, Remedy::recheck);
    const bool happened = waiting().size() > waiting_before;
    EXPECT_EQ(waiting().size(), waiting_before + (happened ? 2 : 0));
    EXPECT_EQ(parked_numbers().size(), numbers.size() - (happened ? 2 : 0));
    for (const std::string& id : ids)
      EXPECT_EQ(records().find("shop", id).value().has_value(), !happened) << id;
    const auto again = repairs().replay("shop", two, "again", "fixed");
    EXPECT_EQ(again.has_value(), !happened) << "asked again, it has happened once";
    EXPECT_EQ(waiting().size(), waiting_before + 2);
  }
  EXPECT_EQ(waiting(), (Strings{"m1", "m3", "m5", "m7"}));
  EXPECT_EQ(done_by_hand().size(), 4u);
  under_test_->lose_next_commit(true);
  ASSERT_EQ(repairs().force("shop", "m2", "once more").error().remedy, Remedy::recheck);
  const bool forced = !records().find("shop", "m2").value();
  EXPECT_EQ(done_by_hand().size(), forced ? 5u : 4u);
}

// The whole way round: a pipeline parks, a person replays, a relay sends, and the same pipeline
// gets what it could not handle once more, and a copy of it.
TEST_P(RepairSuite, H28_what_was_replayed_goes_through_a_pipeline_exactly_once) {
  bool repaired = false;
  const Handler handler(
      Handler::Needs::any,
      Handler::Each([&](const Delivery& delivery, Transaction& transaction) -> Result<Outcome> {
        if (!repaired && delivery.key == "bad") return parked("no account");
        ONCE_TRY(add_effect(transaction, delivery.id));
        return applied();
      }));
  PipelineOptions options;
  options.scope = "shop";
  options.id = IdRule{};
  options.stop_at_end = true;
  options.batch_wait_ms = 1;
  ScriptSource source;
  const auto work = [&] {
    source.announce("p0");
    auto pipeline = Pipeline::make(source, store(), handler, options).value();
    EXPECT_TRUE(pipeline->run());
  };
  for (int i = 0; i < 40; ++i)
    source.add("p0", {.id = "m" + std::to_string(i),
                      .key = i % 4 == 3 ? "bad" : "good",
                      .timestamp_ms = birth_ms});
  work();
  ASSERT_EQ(parked_ids().size(), 10u);
  ASSERT_EQ(effects().size(), 30u);

  repaired = true;
  ASSERT_TRUE(repairs().replay("shop", parked_numbers(), "again", "the account is there now"));
  reopen();
  MemorySink sink(1);
  auto relay =
      Relay::make(store(), [&](std::string_view) { return shared(sink); }, {.name = "repair"})
          .value();
  ASSERT_EQ(relay->step().value(), 10u);
  for (int copies = 0; copies < 2; ++copies)
    for (const Message& message : sink.messages(0)) source.add("p0", message);
  work();
  Strings expected;
  for (int i = 0; i < 40; ++i)
    if (i % 4 != 3) expected.push_back("m" + std::to_string(i));
  for (int i = 3; i < 40; i += 4) expected.push_back("m" + std::to_string(i));
  EXPECT_EQ(effects(), expected);
  EXPECT_TRUE(parked_ids().empty());
}

}  // namespace once::testing
