// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>
#include <set>

#include "conformance/store_fixture.h"

namespace once::testing {

TEST_P(StoreSuite, an_id_is_fresh_once_and_then_a_duplicate) {
  EXPECT_EQ(kind_of(entry("a", 1)), Kind::fresh);
  EXPECT_EQ(handle_one(entry("a", 2)), (Verdict{Kind::duplicate, applied()}));
  reopen();
  EXPECT_EQ(handle_one(entry("a", 3)), (Verdict{Kind::duplicate, applied()}));
  EXPECT_EQ(effects(), std::vector<std::string>{"a"});
}

TEST_P(StoreSuite, H25_a_mixed_batch_has_one_verdict_per_message_in_its_order) {
  ASSERT_EQ(kind_of(entry("old", 0, 1)), Kind::fresh);
  const std::vector batch{entry("z", 1), entry("old", 2, 1), entry("b", 3),    entry("z", 4),
                          entry("a", 5), entry("old", 6, 2), entry("z", 7, 9), entry("b", 8)};
  const auto verdicts = handle(batch).value();
  const std::vector expected{Kind::fresh, Kind::duplicate, Kind::fresh,    Kind::duplicate,
                             Kind::fresh, Kind::mismatch,  Kind::mismatch, Kind::duplicate};
  ASSERT_EQ(verdicts.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(verdicts[i].kind, expected[i]) << i;
  EXPECT_EQ(effects(), (std::vector<std::string>{"old", "z", "b", "a"}));
  EXPECT_EQ(records().find("shop", "z").value()->offset, 1);
}

TEST_P(StoreSuite, a_mismatch_says_where_the_message_is_to_which_the_id_belongs) {
  Entry stored = entry("a", 7, 1);
  stored.partition = "orders/3";
  ASSERT_EQ(kind_of(stored), Kind::fresh);
  const auto is_at = [](const Verdict& verdict, std::string_view partition, std::int64_t offset) {
    return verdict.kind == Kind::mismatch && verdict.first_partition == partition &&
           verdict.first_offset == offset;
  };
  reopen();
  auto transaction = begin();
  const auto verdicts = transaction->admit(
      std::vector{entry("a", 8, 2), entry("b", 9, 1), entry("b", 10, 2), entry("a", 11, 1)});
  ASSERT_TRUE(verdicts) << verdicts.error().text;
  EXPECT_TRUE(is_at(verdicts->at(0), "orders/3", 7));
  EXPECT_EQ(verdicts->at(1), Verdict{});
  EXPECT_TRUE(is_at(verdicts->at(2), "p0", 9));  // the first of this batch
  EXPECT_EQ(verdicts->at(3), (Verdict{Kind::duplicate, applied()}));
  // What this transaction admitted in an earlier call, and what is too old unless it is known.
  EXPECT_TRUE(is_at(transaction->admit(std::vector{entry("b", 12, 3)}).value()[0], "p0", 9));
  EXPECT_TRUE(
      is_at(transaction->admit(std::vector{entry("a", 13, 3, 0)}).value()[0], "orders/3", 7));
}

TEST_P(StoreSuite, an_empty_batch_is_admitted) {
  auto transaction = begin();
  EXPECT_TRUE(transaction->admit({}).value().empty());
  EXPECT_TRUE(transaction->commit());
}

TEST_P(StoreSuite, ids_of_an_earlier_admit_of_the_same_transaction_are_seen) {
  auto transaction = begin();
  EXPECT_EQ(transaction->admit(std::vector{entry("a", 1)}).value()[0].kind, Kind::fresh);
  EXPECT_EQ(transaction->admit(std::vector{entry("a", 2)}).value()[0].kind, Kind::duplicate);
  EXPECT_EQ(transaction->admit(std::vector{entry("a", 2, 7)}).value()[0].kind, Kind::mismatch);
}

TEST_P(StoreSuite, H13_an_id_with_another_content_is_a_mismatch) {
  ASSERT_EQ(kind_of(entry("a", 1, 1)), Kind::fresh);
  EXPECT_EQ(kind_of(entry("a", 2, 2)), Kind::mismatch);
  EXPECT_EQ(kind_of(entry("a", 3, 1)), Kind::duplicate);
  reopen();
  EXPECT_EQ(kind_of(entry("a", 4, 256)), Kind::mismatch);
  EXPECT_EQ(records().find("shop", "a").value()->fingerprint, print(1));
  EXPECT_EQ(effects(), std::vector<std::string>{"a"});
}

TEST_P(StoreSuite, fingerprints_that_cannot_be_compared_are_not) {
  Entry uncompared = entry("a", 1);
  uncompared.fingerprint = {};
  ASSERT_EQ(kind_of(uncompared), Kind::fresh);
  EXPECT_EQ(kind_of(entry("a", 2, 1)), Kind::duplicate);
  ASSERT_EQ(kind_of(entry("b", 3, 1)), Kind::fresh);
  uncompared.id = "b";
  EXPECT_EQ(kind_of(uncompared), Kind::duplicate);
  Entry another_version = entry("b", 4, 2);
  another_version.fingerprint.version = 2;
  EXPECT_EQ(kind_of(another_version), Kind::duplicate);
  EXPECT_EQ(records().find("shop", "a").value()->fingerprint, Fingerprint{});
}

// Claimed, then a crash before the effect: the message must not be lost.
TEST_P(StoreSuite, H02_an_id_whose_transaction_died_is_still_fresh) {
  for (int round = 0; round < 3; ++round) {
    auto transaction = begin();
    ASSERT_EQ(transaction->admit(std::vector{entry("a")}).value()[0].kind, Kind::fresh);
    if (round == 1) {
      ASSERT_TRUE(add_effect(*transaction, "a"));
    }
    transaction.reset();
    if (round == 2) reopen();
  }
  EXPECT_TRUE(effects().empty());
  EXPECT_EQ(kind_of(entry("a")), Kind::fresh);
  EXPECT_EQ(effects(), std::vector<std::string>{"a"});
}

TEST_P(StoreSuite, H19_effect_record_and_position_are_there_together_or_not_at_all) {
  Position position = store().take("shop", "p0").value();
  std::vector<std::string> expected;
  for (int round = 0; round < 8; ++round) {
    const std::string id = "m" + std::to_string(round);
    const bool commits = round % 3 != 1;
    auto transaction = begin();
    ASSERT_TRUE(transaction->advance("p0", position, round + 1));
    ASSERT_EQ(transaction->admit(std::vector{entry(id, round)}).value()[0].kind, Kind::fresh);
    ASSERT_TRUE(add_effect(*transaction, id));
    if (commits) {
      ASSERT_TRUE(transaction->commit());
    }
    transaction.reset();
    if (round % 2 == 0) reopen();
    if (commits) {
      expected.push_back(id);
      position.offset = round + 1;
    }
    EXPECT_EQ(store().position("shop", "p0").value(), position);
    EXPECT_EQ(records().find("shop", id).value().has_value(), commits);
    EXPECT_EQ(effects(), expected);
  }
}

TEST_P(StoreSuite, H14_ids_that_differ_in_any_byte_are_different_ids) {
  using namespace std::string_literals;
  const std::vector<std::string> ids{"a",
                                     "A",
                                     "a ",
                                     " a",
                                     "a\0"s,
                                     "\0a"s,
                                     "\0"s,
                                     "\0\0"s,
                                     " ",
                                     "aa",
                                     "\xc3\xa4",
                                     "a\xcc\x88",
                                     "\xff\xfe",
                                     "0",
                                     "00",
                                     "1",
                                     "1.0",
                                     "01",
                                     "'",
                                     "\"",
                                     "a'; DROP TABLE x",
                                     "%",
                                     "_",
                                     "NULL",
                                     std::string(1023, 'x'),
                                     std::string(1024, 'x')};
  std::vector<Entry> batch;
  for (const std::string& id : ids) batch.push_back(entry(id));
  const auto verdicts = handle(batch).value();
  for (const Verdict& verdict : verdicts) EXPECT_EQ(verdict.kind, Kind::fresh);
  reopen();
  const auto again = handle(batch).value();
  for (const Verdict& verdict : again) EXPECT_EQ(verdict.kind, Kind::duplicate);
  EXPECT_EQ(effects(), ids);
  for (const std::string& id : ids) EXPECT_EQ(records().find("shop", id).value()->id, id);
}

TEST_P(StoreSuite, H14_empty_and_over_long_ids_are_refused_before_anything_is_recorded) {
  const std::string longer(1025, 'x');
  auto transaction = begin();
  const auto empty = transaction->admit(std::vector{entry("a"), entry("")});
  EXPECT_EQ(empty.error().tag, "no_id");
  EXPECT_EQ(empty.error().remedy, Remedy::park);
  const auto over_long = transaction->admit(std::vector{entry("a"), entry(longer)});
  EXPECT_EQ(over_long.error().tag, "long_id");
  EXPECT_EQ(over_long.error().remedy, Remedy::park);
  transaction.reset();
  EXPECT_EQ(kind_of(entry("a")), Kind::fresh);
}

TEST_P(StoreSuite, H31_scopes_do_not_see_each_other) {
  EXPECT_EQ(kind_of(entry("a"), "tenant 1"), Kind::fresh);
  EXPECT_EQ(kind_of(entry("a"), "tenant 2"), Kind::fresh);
  EXPECT_EQ(kind_of(entry("a"), "tenant 1"), Kind::duplicate);
  ASSERT_TRUE(store().forget("tenant 1", birth_ms + 1, 100));
  EXPECT_EQ(kind_of(entry("a"), "tenant 1"), Kind::too_old);
  EXPECT_EQ(kind_of(entry("a"), "tenant 2"), Kind::duplicate);
}

TEST_P(StoreSuite, every_outcome_is_remembered_for_the_duplicates) {
  {
    auto transaction = begin();
    ASSERT_TRUE(transaction->admit(std::vector{entry("applied", 1), entry("result", 2),
                                               entry("rejected", 3), entry("parked", 4),
                                               entry("no effect", 5), entry("silent", 6)}));
    EXPECT_TRUE(transaction->settle(delivery("applied", 1), applied()));
    EXPECT_TRUE(transaction->settle(delivery("result", 2), applied(std::string("r\0\xff", 3))));
    EXPECT_TRUE(transaction->settle(delivery("rejected", 3), rejected("sold out")));
    EXPECT_TRUE(transaction->settle(delivery("parked", 4), parked("broken")));
    EXPECT_TRUE(transaction->settle(delivery("no effect", 5), no_effect()));
    EXPECT_TRUE(transaction->commit());
  }
  reopen();
  EXPECT_EQ(handle_one(entry("applied", 11)), (Verdict{Kind::duplicate, applied()}));
  EXPECT_EQ(handle_one(entry("result", 12)),
            (Verdict{Kind::duplicate, applied(std::string("r\0\xff", 3))}));
  EXPECT_EQ(handle_one(entry("rejected", 13)), (Verdict{Kind::duplicate, rejected("sold out")}));
  EXPECT_EQ(handle_one(entry("parked", 14)), (Verdict{Kind::duplicate, parked("broken")}));
  EXPECT_EQ(handle_one(entry("no effect", 15)), (Verdict{Kind::fresh, applied()}));
  EXPECT_EQ(handle_one(entry("silent", 16)), (Verdict{Kind::duplicate, applied()}));
}

TEST_P(StoreSuite, an_id_without_effect_is_free_at_once) {
  auto transaction = begin();
  ASSERT_TRUE(transaction->admit(std::vector{entry("a", 1)}));
  ASSERT_TRUE(transaction->settle(delivery("a", 1), no_effect()));
  EXPECT_EQ(transaction->admit(std::vector{entry("a", 2)}).value()[0].kind, Kind::fresh);
  ASSERT_TRUE(transaction->settle(delivery("a", 2), applied("second")));
  ASSERT_TRUE(transaction->commit());
  transaction.reset();
  EXPECT_EQ(handle_one(entry("a", 3)).stored, applied("second"));
}

TEST_P(StoreSuite, retry_cannot_be_recorded) {
  auto transaction = begin();
  ASSERT_TRUE(transaction->admit(std::vector{entry("a")}));
  EXPECT_EQ(transaction->settle(delivery("a"), retry("later")).error().tag, "config");
}

TEST_P(StoreSuite, settling_a_copy_leaves_the_record_of_the_first_alone) {
  {
    auto transaction = begin();
    ASSERT_TRUE(transaction->admit(std::vector{entry("a", 1, 1)}));
    ASSERT_TRUE(transaction->settle(delivery("a", 1), applied("first")));
    ASSERT_TRUE(transaction->commit());
  }
  {
    auto transaction = begin();  // the copy is in another transaction
    ASSERT_EQ(transaction->admit(std::vector{entry("a", 1, 2)}).value()[0].kind, Kind::mismatch);
    ASSERT_TRUE(transaction->settle(delivery("a", 1), parked("other content")));
    ASSERT_TRUE(transaction->settle(delivery("a", 1), no_effect()));
    ASSERT_TRUE(transaction->settle(delivery("a", 1), rejected("no")));
    ASSERT_TRUE(transaction->commit());
  }
  {
    auto transaction = begin();  // the copy is in the same transaction
    const auto verdicts =
        transaction->admit(std::vector{entry("b", 2, 1), entry("b", 3, 2)}).value();
    ASSERT_EQ(verdicts[1].kind, Kind::mismatch);
    ASSERT_TRUE(transaction->settle(delivery("b", 3), parked("other content")));
    ASSERT_TRUE(transaction->settle(delivery("b", 2), applied("first")));
    ASSERT_TRUE(transaction->commit());
  }
  EXPECT_EQ(handle_one(entry("a", 9, 1)), (Verdict{Kind::duplicate, applied("first")}));
  EXPECT_EQ(handle_one(entry("b", 9, 1)), (Verdict{Kind::duplicate, applied("first")}));
  EXPECT_EQ(records().parked("shop", 0, 10).value().size(), 2u);
}

TEST_P(StoreSuite, a_parked_message_is_kept_to_the_last_byte) {
  using namespace std::literals;
  const std::string body = "\0{\"n\": \"\xc3\xa4\"}\xff|\\e"s;
  const std::vector<HeaderView> headers{{"a", "1"}, {"", ""}, {"n\0n"sv, "|\\"}, {"a", "2"}};
  Delivery first = delivery("id\0x"sv, 7);
  first.key = "k|\0"sv;
  first.body = body;
  first.headers = headers;
  first.timestamp_ms = 1234;
  first.attempt = 3;
  Delivery bare;
  bare.partition = "p1";
  {
    auto transaction = begin();
    ASSERT_TRUE(transaction->admit(std::vector{entry(first.id, 7)}));
    ASSERT_TRUE(transaction->settle(first, parked("broken \xc3\xa4")));
    ASSERT_TRUE(transaction->settle(bare, parked("")));  // without an id: only kept
    ASSERT_TRUE(transaction->commit());
  }
  reopen();
  const auto all = records().parked("shop", 0, 10).value();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].partition, "p0");
  EXPECT_EQ(all[0].offset, 7);
  EXPECT_EQ(all[0].attempts, 3u);
  EXPECT_EQ(all[0].reason, "broken \xc3\xa4");
  EXPECT_EQ(all[0].message.id, first.id);
  EXPECT_EQ(all[0].message.key, first.key);
  EXPECT_EQ(all[0].message.body, body);
  EXPECT_EQ(all[0].message.timestamp_ms, 1234);
  ASSERT_EQ(all[0].message.headers.size(), headers.size());
  for (std::size_t i = 0; i < headers.size(); ++i) {
    EXPECT_EQ(all[0].message.headers[i].name, headers[i].name);
    EXPECT_EQ(all[0].message.headers[i].value, headers[i].value);
  }
  EXPECT_EQ(all[1].message, Message{.body = std::nullopt});
  EXPECT_EQ(all[1].partition, "p1");
  EXPECT_EQ(records().parked("shop", all[0].number, 10).value().size(), 1u);
  EXPECT_EQ(records().parked("shop", 0, 1).value().size(), 1u);
  EXPECT_TRUE(records().parked("other", 0, 10).value().empty());
}

TEST_P(StoreSuite, a_record_says_what_happened_to_an_id) {
  Entry one{"order 100", print(3), birth_ms, "orders-7", 42};
  ASSERT_EQ(kind_of(one), Kind::fresh);
  reopen();
  const auto record = records().find("shop", "order 100").value();
  ASSERT_TRUE(record);
  EXPECT_EQ(record->id, "order 100");
  EXPECT_EQ(record->fingerprint, print(3));
  EXPECT_EQ(record->outcome, applied());
  EXPECT_EQ(record->born_ms, birth_ms);
  EXPECT_GT(record->recorded_ms, 0);
  EXPECT_EQ(record->partition, "orders-7");
  EXPECT_EQ(record->offset, 42);
  EXPECT_FALSE(records().find("shop", "order 101").value());
  EXPECT_FALSE(records().find("other", "order 100").value());
}

TEST_P(StoreSuite, what_is_forgotten_is_too_old_and_never_fresh) {
  ASSERT_TRUE(handle(std::vector{entry("old", 1, 0, birth_ms), entry("edge", 2, 0, birth_ms + 1),
                                 entry("new", 3, 0, birth_ms + 2)}));
  EXPECT_EQ(forget_all(birth_ms + 1), 1u);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(kind_of(entry("old", 9, 0, birth_ms)), Kind::too_old);
    EXPECT_EQ(kind_of(entry("never seen", 9, 0, birth_ms)), Kind::too_old);
    EXPECT_EQ(kind_of(entry("edge", 9, 0, birth_ms + 1)), Kind::duplicate);
    EXPECT_EQ(kind_of(entry("new", 9, 0, birth_ms + 2)), Kind::duplicate);
    reopen();
  }
  EXPECT_EQ(kind_of(entry("fresh", 9, 0, birth_ms + 1)), Kind::fresh);
  EXPECT_EQ(effect_counts(),
            (std::map<std::string, int>{{"old", 1}, {"edge", 1}, {"new", 1}, {"fresh", 1}}));
}

TEST_P(StoreSuite, the_horizon_is_durable_before_anything_is_forgotten) {
  ASSERT_TRUE(handle(std::vector{entry("a"), entry("b")}));
  const Forgotten forgotten = store().forget("shop", birth_ms + 1, 0).value();
  EXPECT_EQ(forgotten.rows, 0u);
  EXPECT_TRUE(forgotten.more);
  reopen();
  EXPECT_EQ(records().horizon_ms("shop").value(), birth_ms + 1);
  EXPECT_EQ(kind_of(entry("c")), Kind::too_old);
  // What is still recorded is still known for what it is.
  EXPECT_EQ(kind_of(entry("a")), Kind::duplicate);
  EXPECT_EQ(kind_of(entry("a", 0, 5)), Kind::mismatch);
}

TEST_P(StoreSuite, the_horizon_never_goes_back) {
  EXPECT_EQ(records().horizon_ms("shop").value(), 0);
  for (const std::int64_t horizon : {500, 400, 0, -1, 500}) {
    EXPECT_EQ(forget_all(horizon), 0u);
    EXPECT_EQ(records().horizon_ms("shop").value(), 500);
    if (horizon == 400) reopen();
  }
  EXPECT_EQ(kind_of(entry("a", 0, 0, 499)), Kind::too_old);
  EXPECT_EQ(kind_of(entry("b", 0, 0, 500)), Kind::fresh);
  EXPECT_EQ(records().horizon_ms("other").value(), 0);
}

TEST_P(StoreSuite, forgetting_is_bounded_and_complete) {
  std::vector<std::string> ids;
  for (int i = 0; i < 100; ++i) ids.push_back("m" + std::to_string(i * 7919 % 100));
  std::vector<Entry> batch;
  for (int i = 0; i < 100; ++i)
    batch.push_back(entry(ids[static_cast<std::size_t>(i)], i, 0, birth_ms + i));
  ASSERT_TRUE(handle(batch));
  std::size_t rows = 0;
  for (int call = 0; call < 3; ++call) {
    if (call == 2) reopen();
    const Forgotten forgotten = store().forget("shop", birth_ms + 30, 7).value();
    EXPECT_LE(forgotten.rows, 7u);
    EXPECT_TRUE(forgotten.more);
    rows += forgotten.rows;
  }
  rows += forget_all(birth_ms + 60, 7);  // the horizon moves on while the work is under way
  EXPECT_EQ(rows, 60u);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(records().find("shop", ids[static_cast<std::size_t>(i)]).value().has_value(), i >= 60)
        << i;
  EXPECT_EQ(forget_all(birth_ms + 60, 7), 0u);
  for (const Entry& one : batch)
    EXPECT_EQ(kind_of(one), one.born_ms < birth_ms + 60 ? Kind::too_old : Kind::duplicate);
  EXPECT_EQ(effects(), ids);
}

TEST_P(StoreSuite, a_birth_before_1970_counts_as_1970) {
  EXPECT_EQ(kind_of(entry("a", 0, 0, -5)), Kind::fresh);
  EXPECT_EQ(kind_of(entry("a", 0, 0, -5)), Kind::duplicate);
  EXPECT_EQ(forget_all(1), 1u);
  EXPECT_EQ(kind_of(entry("a", 0, 0, -5)), Kind::too_old);
}

TEST_P(StoreSuite, H27_the_clock_of_the_machine_decides_nothing) {
  ASSERT_EQ(kind_of(entry("a")), Kind::fresh);
  EXPECT_EQ(forget_all(birth_ms - 1), 0u);
  for (const std::int64_t jump_ms : {1000 * day_ms, -3000 * day_ms, 2000 * day_ms}) {
    under_test_->jump_clock(jump_ms);
    EXPECT_EQ(kind_of(entry("a")), Kind::duplicate);
    EXPECT_EQ(kind_of(entry("older", 0, 0, birth_ms - 2)), Kind::too_old);
    EXPECT_EQ(records().horizon_ms("shop").value(), birth_ms - 1);
    reopen();
  }
  EXPECT_EQ(kind_of(entry("b")), Kind::fresh);
  EXPECT_EQ(effects(), (std::vector<std::string>{"a", "b"}));
}

// Times whose bytes are letters, digits, blanks, marks or no text at all.
TEST_P(StoreSuite, times_are_compared_as_numbers_whatever_their_bytes_are) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 20; ++round) {
    const std::string scope = "scope " + std::to_string(round);
    const auto horizon_ms = static_cast<std::int64_t>(birth_ms + random() % day_ms);
    std::map<std::string, std::int64_t> births;
    for (int i = 0; i < 40; ++i) {
      const auto distance = static_cast<std::int64_t>(random() >> (24 + random() % 40));
      births["order " + std::to_string(i)] =
          std::max<std::int64_t>(horizon_ms + (i % 2 == 0 ? distance : -distance), 0);
    }
    std::vector<Entry> batch;
    std::size_t old = 0;
    for (const auto& [id, born_ms] : births) {
      batch.push_back(entry(id, 0, 0, born_ms));
      old += born_ms < horizon_ms ? 1 : 0;
    }
    ASSERT_TRUE(handle(batch, scope));
    std::size_t gone = 0;
    for (bool more = true; more;) {
      const auto forgotten = store().forget(scope, horizon_ms, 100).value();
      gone += forgotten.rows;
      more = forgotten.more;
    }
    EXPECT_EQ(gone, old);
    EXPECT_EQ(records().horizon_ms(scope).value(), horizon_ms);
    ASSERT_TRUE(store().forget(scope, horizon_ms - 1 - round, 100));
    EXPECT_EQ(records().horizon_ms(scope).value(), horizon_ms);
    for (const auto& [id, born_ms] : births) {
      EXPECT_EQ(kind_of(entry(id, 0, 0, born_ms), scope),
                born_ms < horizon_ms ? Kind::too_old : Kind::duplicate);
      const std::string fresh = "new " + id;
      EXPECT_EQ(kind_of(entry(fresh, 0, 0, born_ms), scope),
                born_ms < horizon_ms ? Kind::too_old : Kind::fresh);
    }
  }
}

// No filter, cache or digest may take a new id for an old one.
TEST_P(StoreSuite, H29_a_new_id_is_never_taken_for_an_old_one) {
  std::mt19937_64 random(29);
  std::set<std::string> ids;
  while (ids.size() < 20'000) ids.insert(std::to_string(random() % 10'000'000'000));
  const std::vector<std::string> all(ids.begin(), ids.end());
  for (const Kind expected : {Kind::fresh, Kind::duplicate}) {
    for (std::size_t at = 0; at < all.size(); at += 1000) {
      auto transaction = begin();
      std::vector<Entry> batch;
      for (std::size_t i = at; i < at + 1000; ++i)
        batch.push_back(entry(all[i * 7919 % all.size()]));
      const auto verdicts = transaction->admit(batch).value();
      for (const Verdict& verdict : verdicts) ASSERT_EQ(verdict.kind, expected);
      ASSERT_TRUE(transaction->commit());
    }
    reopen();
  }
}

}  // namespace once::testing
