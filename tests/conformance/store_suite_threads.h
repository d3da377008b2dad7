// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/identity.h>

#include <atomic>
#include <random>
#include <set>
#include <thread>

#include "conformance/store_fixture.h"

namespace once::testing {

// Begins again for as long as the store says that nothing happened.
template <class Work>
Status until_done(Work&& work) {
  for (;;) {
    Status done = work();
    if (done || done.error().remedy != Remedy::retry) return done;
    std::this_thread::yield();
  }
}

TEST_P(StoreSuite, H01_a_thousand_copies_at_the_same_time_have_one_effect) {
  std::atomic<int> fresh = 0;
  std::atomic<int> duplicates = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 250; ++i) {
        const Status done = until_done([&]() -> Status {
          const Entry one = entry("the one");
          const auto verdicts = ONCE_TRY(handle(std::span(&one, 1)));
          ++(verdicts[0].kind == Kind::fresh ? fresh : duplicates);
          return {};
        });
        EXPECT_TRUE(done) << done.error().text;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fresh, 1);
  EXPECT_EQ(duplicates, 999);
  EXPECT_EQ(effects(), std::vector<std::string>{"the one"});
}

TEST_P(StoreSuite, H17_overlapping_batches_from_threads_lose_and_double_nothing) {
  constexpr int threads_count = 4, rounds = 25, ids_count = 100;
  std::vector<std::thread> threads;
  for (int t = 0; t < threads_count; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int round = 0; round < rounds; ++round) {
        std::vector<std::string> ids;
        for (int i = 0; i < 20; ++i) ids.push_back("m" + std::to_string(random() % ids_count));
        std::vector<Entry> batch;
        for (const std::string& id : ids) batch.push_back(entry(id));
        const Status done = until_done([&]() -> Status {
          ONCE_TRY(handle(batch));
          return {};
        });
        EXPECT_TRUE(done) << done.error().text;
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::map<std::string, int> expected;
  for (int i = 0; i < ids_count; ++i) expected["m" + std::to_string(i)] = 1;
  EXPECT_EQ(effect_counts(), expected);
}

// Owners fight for one partition: each message is handled by exactly one of them, in order.
TEST_P(StoreSuite, rival_owners_lose_and_double_nothing_and_keep_the_order) {
  constexpr std::int64_t messages = 200;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (;;) {
        const auto taken = store().take("shop", "p0");
        ASSERT_TRUE(taken) << taken.error().text;
        Position position = *taken;
        for (int batches = 0; batches < 5; ++batches) {
          const std::int64_t next = std::max<std::int64_t>(position.offset, 0);
          if (next == messages) return;
          const Status done = until_done([&]() -> Status {
            auto transaction = ONCE_TRY(store().begin("shop"));
            ONCE_TRY(transaction->advance("p0", position, next + 1));
            ONCE_TRY(add_effect(*transaction, "m" + std::to_string(next)));
            return transaction->commit();
          });
          if (!done) {
            ASSERT_EQ(done.error().tag, "fenced") << done.error().text;
            break;
          }
          position.offset = next + 1;
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<std::string> expected;
  for (int i = 0; i < messages; ++i) expected.push_back("m" + std::to_string(i));
  EXPECT_EQ(effects(), expected);
}

TEST_P(StoreSuite, segment_ids_are_dense_and_never_repeat) {
  SegmentOptions options;
  options.name = "orders";
  options.range_count = 10;
  std::int64_t last = 0;
  for (int round = 0; round < 3; ++round) {
    auto maker = make_segment_ids(store(), options).value();
    std::int64_t previous = 0;
    for (int i = 0; i < 25; ++i) {
      const std::int64_t id = std::stoll(maker->next().value());
      EXPECT_GT(id, last);
      if (previous != 0) {
        EXPECT_EQ(id, previous + 1);
      }
      previous = last = id;
    }
    reopen();
  }
  EXPECT_LE(last, 3 * 40);
}

TEST_P(StoreSuite, segment_ids_of_threads_and_makers_are_different) {
  SegmentOptions options;
  options.name = "orders";
  options.range_count = 50;
  auto first = make_segment_ids(store(), options).value();
  auto second = make_segment_ids(store(), options).value();
  std::mutex mutex;
  std::set<std::string> ids;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 250; ++i) {
        const auto id = (t % 2 == 0 ? first : second)->next();
        ASSERT_TRUE(id) << id.error().text;
        const std::lock_guard lock(mutex);
        EXPECT_TRUE(ids.insert(*id).second) << *id;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ids.size(), 1000u);
}

// Nobody has drawn from these counters: who comes first makes the row, and both must not have it.
TEST_P(StoreSuite, segment_ids_of_first_draws_at_once_are_different) {
  for (int round = 0; round < 40; ++round) {
    const SegmentOptions options{"orders " + std::to_string(round), 10};
    std::array<std::string, 2> ids;
    std::vector<std::thread> threads;
    for (std::string& id : ids)
      threads.emplace_back(
          [&] { id = make_segment_ids(store(), options).value()->next().value(); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_NE(ids[0], ids[1]) << "in round " << round;
  }
}

TEST_P(StoreSuite, segment_ids_skip_a_range_whose_draw_is_in_doubt) {
  SegmentOptions options;
  options.name = "orders";
  options.range_count = 4;
  auto maker = make_segment_ids(store(), options).value();
  std::set<std::string> ids;
  for (int i = 0; i < 40; ++i) {
    if (i % 7 == 0) under_test_->lose_next_commit(i % 2 == 0);
    const auto id = maker->next();
    ASSERT_TRUE(id) << id.error().text;
    EXPECT_TRUE(ids.insert(*id).second) << *id;
  }
  EXPECT_EQ(make_segment_ids(store(), {"", 10}).error().tag, "config");
  EXPECT_EQ(make_segment_ids(store(), {"orders", 0}).error().tag, "config");
}

// A book kept beside the store, in the plainest way, says what each verdict must be.
TEST_P(StoreSuite, any_history_has_the_verdicts_of_a_plain_book) {
  std::mt19937 random(1);
  std::map<std::string, std::pair<int, std::int64_t>> book;  // id: content, birth
  std::map<std::string, int> expected;
  std::int64_t horizon = 0;
  for (int step = 0; step < 400; ++step) {
    if (random() % 40 == 0) reopen();
    if (random() % 20 == 0) {
      horizon = std::max<std::int64_t>(horizon, random() % 60);
      while (store().forget("shop", horizon, 3).value().more) {
      }
      std::erase_if(book, [&](const auto& row) { return row.second.second < horizon; });
    }
    auto draft = book;
    auto effects_draft = expected;
    auto transaction = begin();
    for (int message = static_cast<int>(random() % 6); message > 0; --message) {
      const std::string id = "m" + std::to_string(random() % 60);
      const int content = random() % 10 == 0 ? 1 : 0;
      const std::int64_t born = std::stoi(id.substr(1));
      const auto found = draft.find(id);
      const Kind truth = found != draft.end()
                             ? (found->second.first == content ? Kind::duplicate : Kind::mismatch)
                         : born < horizon ? Kind::too_old
                                          : Kind::fresh;
      const auto verdict = transaction->admit(std::vector{entry(id, step, content, born)});
      ASSERT_TRUE(verdict);
      ASSERT_EQ(verdict->at(0).kind, truth) << "step " << step << " " << id;
      if (truth != Kind::fresh) continue;
      if (random() % 5 == 0) {
        ASSERT_TRUE(transaction->settle(delivery(id, step), no_effect()));
        continue;
      }
      ASSERT_TRUE(add_effect(*transaction, id));
      draft[id] = {content, born};
      ++effects_draft[id];
    }
    if (random() % 4 == 0) continue;  // dies without a commit
    ASSERT_TRUE(transaction->commit());
    book = draft;
    expected = effects_draft;
  }
  EXPECT_EQ(effect_counts(), expected);
  for (int i = 0; i < 60; ++i) {
    const std::string id = "m" + std::to_string(i);
    EXPECT_EQ(records().find("shop", id).value().has_value(), book.contains(id)) << id;
    EXPECT_LE(expected[id], 1);
  }
}

}  // namespace once::testing
