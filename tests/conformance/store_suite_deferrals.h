// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/pipeline.h>

#include <chrono>
#include <deque>
#include <optional>
#include <thread>

#include "conformance/store_fixture.h"
#include "testing/script_source.h"

namespace once::testing {

// Messages that wait in the store, and parked ones that are had again.
class DeferralSuite : public StoreSuite {
 protected:
  static constexpr std::int64_t long_ms = 3'600'000;

  Deferrals& deferrals() { return *store().deferrals(); }

  static Delivery order(const char* id, std::int64_t offset = 0, const char* key = "ann") {
    static const std::vector<HeaderView> headers{{"h", "\xff"}, {"none", std::string_view()}};
    Delivery made = delivery(id, offset);
    made.key = key;
    made.headers = headers;
    made.timestamp_ms = birth_ms;
    made.deferral.in_order = true;
    return made;
  }
  static Entry entry_of(const Delivery& delivery, int content = 0) {
    return {.id = delivery.id,
            .fingerprint = print(content),
            .born_ms = birth_ms,
            .partition = delivery.partition,
            .offset = delivery.offset,
            .deferral = delivery.deferral,
            .order_key = delivery.key};
  }
  static Delivery delivery_of(const DeferredRecord& record) {
    Delivery made = delivery(record.message.id, record.offset);
    made.key = *record.message.key;
    made.attempt = record.attempts + 1;
    made.deferral = {record.number, record.attempts, record.in_order};
    return made;
  }

  // One attempt: it is admitted, and settled if it is fresh.
  Verdict attempt(const Delivery& delivery, const Outcome& outcome) {
    auto transaction = begin();
    const auto entry = entry_of(delivery);
    const auto verdicts = transaction->admit(std::span(&entry, 1));
    EXPECT_TRUE(verdicts) << verdicts.error().text;
    if (verdicts->at(0).kind == Kind::fresh) {
      if (outcome.kind == Outcome::Kind::applied) {
        EXPECT_TRUE(add_effect(*transaction, delivery.id));
      }
      EXPECT_TRUE(transaction->settle(delivery, outcome));
    }
    const Status committed = transaction->commit();
    EXPECT_TRUE(committed) << committed.error().text;
    return verdicts->at(0);
  }
  void put_off(const char* id, std::int64_t after_ms = 0, std::int64_t offset = 0) {
    ASSERT_EQ(attempt(order(id, offset), later("not yet", after_ms)).kind, Kind::fresh);
  }

  // What these answer lives as long as the test: deliveries refer to it.
  const std::vector<DeferredRecord>& due() {
    return kept_.emplace_back(deferrals().due("shop", 100).value().messages);
  }
  const std::vector<DeferredRecord>& waiting() {
    return kept_.emplace_back(deferrals().deferred("shop", 0, 100).value());
  }
  std::vector<std::string> waiting_ids() {
    std::vector<std::string> ids;
    const auto records = waiting();
    for (const DeferredRecord& record : records) ids.push_back(record.message.id);
    return ids;
  }
  LedgerRecord record_of(const char* id) { return records().find("shop", id).value().value(); }
  Outcome outcome_of(const char* id) { return record_of(id).outcome; }
  static void let_time_pass() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

  std::deque<std::vector<DeferredRecord>> kept_;
};

TEST_P(DeferralSuite, a_message_that_waits_is_kept_whole_and_survives_the_process) {
  auto transaction = begin();
  Delivery one = order("m0", 7);
  one.attempt = 3;
  one.body = std::string_view();  // absent
  const auto entry = entry_of(one);
  ASSERT_EQ(transaction->admit(std::span(&entry, 1)).value()[0].kind, Kind::fresh);
  ASSERT_TRUE(transaction->settle(one, later("not \xff yet", long_ms)));
  ASSERT_TRUE(transaction->commit());
  reopen();
  const auto records = waiting();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_GT(records[0].number, 0);
  EXPECT_EQ(records[0].partition, "p0");
  EXPECT_EQ(records[0].offset, 7);
  EXPECT_EQ(records[0].attempts, 3u);
  EXPECT_EQ(records[0].due_ms - records[0].deferred_ms, long_ms);
  EXPECT_TRUE(records[0].in_order);
  EXPECT_EQ(records[0].reason, "not \xff yet");
  EXPECT_EQ(records[0].message.id, "m0");
  EXPECT_EQ(records[0].message.key, "ann");
  EXPECT_EQ(records[0].message.body, std::nullopt);
  EXPECT_EQ(records[0].message.headers,
            (std::vector<Header>{{"h", "\xff"}, {"none", std::nullopt}}));
  EXPECT_EQ(records[0].message.timestamp_ms, birth_ms);
  EXPECT_EQ(outcome_of("m0").kind, Outcome::Kind::later);
  EXPECT_TRUE(due().empty());
  const std::int64_t wait_ms = deferrals().due("shop", 100).value().wait_ms;
  EXPECT_GT(wait_ms, long_ms - 60'000);
  EXPECT_LE(wait_ms, long_ms);
}

TEST_P(DeferralSuite, what_is_rolled_back_does_not_wait) {
  {
    auto transaction = begin();
    const Delivery one = order("m0");
    const auto entry = entry_of(one);
    ASSERT_TRUE(transaction->admit(std::span(&entry, 1)));
    ASSERT_TRUE(transaction->settle(one, later("not yet", 0)));
  }
  EXPECT_TRUE(waiting().empty());
  EXPECT_EQ(deferrals().due("shop", 100).value().wait_ms, -1);
  EXPECT_FALSE(records().find("shop", "m0").value());
}

TEST_P(DeferralSuite, due_messages_come_by_due_time_then_by_number) {
  std::vector<std::string> ids;
  for (int i = 0; i < 12; ++i) ids.push_back("m" + std::to_string(i));
  for (std::size_t i = 0; i < ids.size(); ++i) put_off(ids[i].c_str(), 0, static_cast<int>(i));
  put_off("last", long_ms);
  const auto found = due();
  ASSERT_EQ(found.size(), 12u);
  std::vector<std::string> found_ids;
  for (const DeferredRecord& record : found) found_ids.push_back(record.message.id);
  EXPECT_EQ(found_ids, ids);
  EXPECT_EQ(deferrals().due("shop", 5).value().messages.size(), 5u);
  EXPECT_TRUE(deferrals().due("another", 5).value().messages.empty());
  const auto page = deferrals().deferred("shop", found[1].number, 3).value();
  ASSERT_EQ(page.size(), 3u);
  EXPECT_EQ(page[0].message.id, "m2");
}

TEST_P(DeferralSuite, while_it_waits_copies_are_duplicates_and_other_content_is_a_mismatch) {
  put_off("m0", long_ms);
  const Verdict copy = handle_one(entry("m0", 1));
  EXPECT_EQ(copy.kind, Kind::duplicate);
  EXPECT_EQ(copy.stored.kind, Outcome::Kind::later);
  EXPECT_EQ(kind_of(entry("m0", 2, 1)), Kind::mismatch);
  EXPECT_EQ(waiting_ids(), (std::vector<std::string>{"m0"}));
}

TEST_P(DeferralSuite, it_is_had_again_once_and_then_waits_no_longer) {
  put_off("m0");
  const std::int64_t put_off_ms = record_of("m0").recorded_ms;
  let_time_pass();
  const Delivery again = delivery_of(due().at(0));
  EXPECT_EQ(attempt(again, applied("done")).kind, Kind::fresh);
  EXPECT_GT(record_of("m0").recorded_ms, put_off_ms) << "the time at which it was settled";
  const Verdict late = attempt(again, applied());
  EXPECT_EQ(late.kind, Kind::duplicate);
  EXPECT_EQ(late.stored.kind, Outcome::Kind::later);  // not to be settled
  EXPECT_EQ(effects(), (std::vector<std::string>{"m0"}));
  EXPECT_TRUE(waiting().empty());
  EXPECT_EQ(outcome_of("m0"), applied("done"));
  EXPECT_EQ(kind_of(entry("m0", 1)), Kind::duplicate);
}

TEST_P(DeferralSuite, put_off_again_it_keeps_its_number_and_the_old_reading_is_worth_nothing) {
  put_off("m0");
  const DeferredRecord before = due().at(0);
  ASSERT_EQ(attempt(delivery_of(before), later("still not", long_ms)).kind, Kind::fresh);
  const auto records = waiting();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].number, before.number);
  EXPECT_EQ(records[0].attempts, before.attempts + 1);
  EXPECT_EQ(records[0].reason, "still not");
  EXPECT_EQ(records[0].message, before.message);
  EXPECT_GT(records[0].due_ms, before.due_ms);
  EXPECT_EQ(attempt(delivery_of(before), applied()).kind, Kind::duplicate);
  EXPECT_TRUE(effects().empty());
  EXPECT_EQ(outcome_of("m0").kind, Outcome::Kind::later);
}

// As after a restore: what was read before has the number of another message.
TEST_P(DeferralSuite, another_message_under_the_same_number_is_left_alone) {
  put_off("m0");
  Delivery stale = delivery_of(due().at(0));
  stale.id = "m1";
  EXPECT_EQ(attempt(stale, applied()).kind, Kind::duplicate);
  EXPECT_EQ(waiting_ids(), (std::vector<std::string>{"m0"}));
  EXPECT_TRUE(effects().empty());
}

TEST_P(DeferralSuite, every_outcome_ends_the_waiting) {
  for (const char* id : {"parked", "rejected", "free"}) put_off(id);
  for (const DeferredRecord& record : due()) {
    const Delivery again = delivery_of(record);
    if (again.id == "parked") attempt(again, parked("cannot be"));
    if (again.id == "rejected") attempt(again, rejected("will not be"));
    if (again.id == "free") attempt(again, no_effect());
  }
  EXPECT_TRUE(waiting().empty());
  EXPECT_EQ(outcome_of("parked"), parked("cannot be"));
  EXPECT_EQ(outcome_of("rejected"), rejected("will not be"));
  EXPECT_EQ(records().parked("shop", 0, 10).value().size(), 1u);
  EXPECT_EQ(kind_of(entry("free", 1)), Kind::fresh);
}

TEST_P(DeferralSuite, two_transactions_that_have_it_again_give_it_one_effect) {
  if (under_test_->has_one_writer()) return;  // there is no rival
  put_off("m0");
  const Delivery again = delivery_of(due().at(0));
  const auto entry = entry_of(again);
  auto first = begin();
  ASSERT_EQ(first->admit(std::span(&entry, 1)).value()[0].kind, Kind::fresh);
  std::optional<Result<std::vector<Verdict>>> answer;
  auto second = begin();
  std::thread rival([&] {
    answer = second->admit(std::span(&entry, 1));
    if (*answer && answer->value()[0].kind == Kind::fresh) {
      (void)add_effect(*second, again.id);
      (void)second->settle(again, applied());
      if (auto done = second->commit(); !done) answer = fail(done.error());
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ASSERT_TRUE(add_effect(*first, again.id));
  ASSERT_TRUE(first->settle(again, applied()));
  const Status committed = first->commit();
  rival.join();
  const bool rival_won = *answer && answer->value()[0].kind == Kind::fresh;
  EXPECT_NE(committed.has_value(), rival_won);
  EXPECT_EQ(effects(), (std::vector<std::string>{"m0"}));
  EXPECT_TRUE(waiting().empty());
}

TEST_P(DeferralSuite, messages_of_a_key_wait_behind_those_before_them) {
  ASSERT_EQ(attempt(order("a1", 0, "a"), later("not yet", long_ms)).behind_ms, -1);
  const Verdict behind = attempt(order("a2", 1, "a"), later("behind", long_ms));
  EXPECT_EQ(behind.behind_number, waiting().at(0).number);
  EXPECT_GT(behind.behind_ms, long_ms - 60'000);
  EXPECT_LE(behind.behind_ms, long_ms);
  EXPECT_EQ(attempt(order("b1", 2, "b"), applied()).behind_ms, -1);
  const auto records = waiting();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(attempt(delivery_of(records[1]), later("behind", long_ms)).behind_ms >= 0, true);
  EXPECT_EQ(attempt(delivery_of(records[0]), applied()).behind_ms, -1);
  EXPECT_EQ(attempt(delivery_of(waiting().at(0)), applied()).behind_ms, -1);
  EXPECT_EQ(attempt(order("a3", 3, "a"), applied()).behind_ms, -1);
  EXPECT_EQ(effects(), (std::vector<std::string>{"b1", "a1", "a2", "a3"}));
}

TEST_P(DeferralSuite, without_order_nobody_waits_behind_it) {
  Delivery one = order("a1", 0, "a");
  one.deferral.in_order = false;
  ASSERT_EQ(attempt(one, later("not yet", long_ms)).kind, Kind::fresh);
  EXPECT_EQ(attempt(order("a2", 1, "a"), applied()).behind_ms, -1);
  EXPECT_FALSE(waiting().at(0).in_order);
}

TEST_P(DeferralSuite, its_id_is_not_forgotten_while_it_waits) {
  put_off("m0");
  EXPECT_EQ(kind_of(entry("m1", 1)), Kind::fresh);
  EXPECT_EQ(forget_all(birth_ms + 1), 1u);
  EXPECT_EQ(kind_of(entry("m0", 2)), Kind::duplicate);
  EXPECT_EQ(kind_of(entry("m1", 3)), Kind::too_old);
  EXPECT_EQ(attempt(delivery_of(due().at(0)), applied()).kind, Kind::fresh);
  EXPECT_EQ(effects(), (std::vector<std::string>{"m1", "m0"}));
  forget_all(birth_ms + 2);
  EXPECT_EQ(kind_of(entry("m0", 4)), Kind::too_old);
}

TEST_P(DeferralSuite, a_person_can_hasten_it_and_give_it_up) {
  for (const char* id : {"m0", "m1", "m2"}) put_off(id, long_ms);
  const auto records = waiting();
  const std::vector<std::int64_t> numbers{records[0].number, records[1].number};
  EXPECT_EQ(deferrals().hasten("shop", numbers, " ").error().tag, "config");
  ASSERT_TRUE(deferrals().hasten("shop", numbers, "the bank is back"));
  EXPECT_EQ(due().size(), 2u);
  EXPECT_EQ(due().at(0).message.id, "m0");
  const std::vector<std::int64_t> wrong{records[2].number, 4711};
  EXPECT_EQ(deferrals().abandon("shop", wrong, "why").error().tag, "not_known");
  EXPECT_EQ(deferrals().hasten("shop", wrong, "why").error().tag, "not_known");
  EXPECT_EQ(deferrals().hasten("another", numbers, "why").error().tag, "not_known");
  EXPECT_EQ(waiting().size(), 3u);
  ASSERT_TRUE(deferrals().abandon("shop", std::span(wrong).first(1), "of no use"));
  EXPECT_EQ(waiting_ids(), (std::vector<std::string>{"m0", "m1"}));
  EXPECT_EQ(outcome_of("m2"), parked("given up while it waited: of no use"));
  EXPECT_EQ(kind_of(entry("m2", 9)), Kind::duplicate);
  const auto log = this->records().operations("shop", 0, 100).value();
  ASSERT_GE(log.size(), 3u);
  EXPECT_EQ(log.back().action, "abandon");
  EXPECT_EQ(log.back().subject, "m2");
  EXPECT_EQ(log[log.size() - 2].action, "hasten");
  EXPECT_NE(log[log.size() - 2].reason.find("the bank is back"), std::string::npos);
}

TEST_P(DeferralSuite, a_commit_in_doubt_is_told_by_what_waits) {
  for (const bool kept : {false, true}) {
    const std::string id = kept ? "kept" : "lost";
    put_off(id.c_str());
    const Delivery again = delivery_of(due().at(0));
    const auto entry = entry_of(again);
    {
      auto transaction = begin();
      ASSERT_EQ(transaction->admit(std::span(&entry, 1)).value()[0].kind, Kind::fresh);
      ASSERT_TRUE(add_effect(*transaction, again.id));
      ASSERT_TRUE(transaction->settle(again, applied()));
      under_test_->lose_next_commit(kept);
      EXPECT_FALSE(transaction->commit());
    }
    attempt(again, applied());
    EXPECT_EQ(effect_counts()[id], 1);
    EXPECT_TRUE(waiting().empty());
  }
}

TEST_P(DeferralSuite, a_parked_message_that_is_sent_again_on_purpose_is_had_again_once) {
  ASSERT_EQ(attempt(order("m0"), parked("no account")).kind, Kind::fresh);
  ASSERT_EQ(attempt(order("m1", 1), parked("no account")).kind, Kind::fresh);
  Entry again = entry("m0", 2);
  EXPECT_EQ(kind_of(again), Kind::duplicate);  // a copy is not on purpose
  again.replays_parked = true;
  Entry other = entry("m0", 3, 1);
  other.replays_parked = true;
  EXPECT_EQ(kind_of(other), Kind::mismatch);
  const std::int64_t parked_ms = record_of("m0").recorded_ms;
  EXPECT_EQ(record_of("m0").offset, 0);
  let_time_pass();
  const auto verdicts = handle(std::vector{again, again}).value();
  EXPECT_EQ(verdicts[0].kind, Kind::fresh);
  EXPECT_EQ(verdicts[1].kind, Kind::duplicate);
  EXPECT_EQ(kind_of(again), Kind::duplicate);
  EXPECT_EQ(effects(), (std::vector<std::string>{"m0"}));
  const auto parked = records().parked("shop", 0, 10).value();
  ASSERT_EQ(parked.size(), 1u);
  EXPECT_EQ(parked[0].message.id, "m1");
  EXPECT_EQ(outcome_of("m0"), applied());
  // What the ledger says is about the delivery that was handled.
  EXPECT_EQ(record_of("m0").offset, 2);
  EXPECT_EQ(record_of("m0").partition, again.partition);
  EXPECT_GT(record_of("m0").recorded_ms, parked_ms);
}

// A pipeline with real threads on the store: each key in order, each message once.
TEST_P(DeferralSuite, a_pipeline_that_puts_off_messages_loses_none_and_keeps_the_order_of_keys) {
  constexpr int count = 60;
  ScriptSource source;
  for (int i = 0; i < count; ++i)
    source.add("p0", {.id = std::to_string(i),
                      .key = "k" + std::to_string(i % 5),
                      .body = "b",
                      .headers = {},
                      .timestamp_ms = birth_ms});
  source.announce("p0");
  PipelineOptions options;
  options.scope = "shop";
  options.id = IdRule{};
  options.order = Order::key;
  options.batch_wait_ms = 1;
  const auto handle = [](const Delivery& delivery, Transaction& transaction) -> Result<Outcome> {
    if (delivery.attempt == 1 && std::stoi(std::string(delivery.id)) % 6 == 0)
      return later("not at once", 20);
    ONCE_TRY(add_effect(transaction, delivery.id));
    return applied();
  };
  auto pipeline = Pipeline::make(source, store(), each(handle), options);
  ASSERT_TRUE(pipeline) << pipeline.error().text;
  std::thread running([&] { EXPECT_TRUE((*pipeline)->run()); });
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while ((*pipeline)->statistics().applied < count && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  (*pipeline)->stop();
  running.join();
  std::map<int, int> last;
  const auto ids = effects();
  EXPECT_EQ(ids.size(), static_cast<std::size_t>(count));
  for (const std::string& id : ids) {
    const int number = std::stoi(id);
    const auto [at, first] = last.try_emplace(number % 5, number);
    EXPECT_TRUE(first || at->second < number) << id;
    at->second = number;
  }
  EXPECT_TRUE(waiting().empty());
}

}  // namespace once::testing
