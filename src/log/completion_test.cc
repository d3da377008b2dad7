// SPDX-License-Identifier: Apache-2.0
// Appends without a waiting thread, and readers that are woken.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "log/group_commit.h"
#include "log/log_testing.h"

namespace once::log {
namespace {

// A partition that is written by some threads of an executor.
struct Served : Bench {
  ThreadExecutor executor{2};
  std::unique_ptr<GroupCommit> commit;

  explicit Served(GapPolicy gaps = GapPolicy::refuse, std::int64_t hold_ms = 60'000) {
    options.gaps = gaps;
    commit = std::make_unique<GroupCommit>(open(), system_clock(), hold_ms, &executor);
  }
  std::future<Result<Verdict>> append(const Stamp& stamp, const std::vector<Message>& messages) {
    auto promise = std::make_shared<std::promise<Result<Verdict>>>();
    commit->append({.stamp = stamp, .messages = messages},
                   [promise](const Result<Verdict>& verdict) {
                     promise->set_value(verdict);  // throws if it is called twice
                   });
    return promise->get_future();
  }
};

TEST(Completion, of_a_thousand_connections_comes_once_each_in_order_with_few_syncs) {
  Served log;
  constexpr int clients = 1000, rounds = 5;
  std::atomic<int> syncs = 0;
  log.files.refuse = [&](const std::string& call, const std::string&) -> Status {
    if (call == "sync") ++syncs;
    return {};
  };
  std::vector<Stamp> stamps;
  for (int c = 0; c < clients; ++c) stamps.push_back(log.commit->enter("").value());
  syncs = 0;
  std::mutex mutex;
  std::map<int, std::vector<std::int64_t>> offsets;
  std::atomic<int> done = 0;
  for (int round = 0; round < rounds; ++round)
    for (int c = 0; c < clients; ++c) {
      const auto message = texts(round, round + 1);
      const Stamp stamp =
          after(stamps[static_cast<std::size_t>(c)], static_cast<std::uint64_t>(round));
      log.commit->append({.stamp = stamp, .messages = message},
                         [&, c](const Result<Verdict>& verdict) {
                           ASSERT_TRUE(verdict) << verdict.error().text;
                           {
                             const std::lock_guard lock(mutex);
                             offsets[c].push_back(verdict->receipt().offset);
                           }
                           ++done;
                         });
    }
  while (done < clients * rounds) std::this_thread::yield();
  EXPECT_LT(syncs.load(), clients * rounds / 10);
  const std::vector<std::string> stored = [&] {
    EXPECT_TRUE(log.commit->close());
    log.commit.reset();
    return read_all(*log.open());
  }();
  ASSERT_EQ(stored.size(), static_cast<std::size_t>(clients * rounds));
  std::map<std::int64_t, int> once;
  for (const auto& [c, places] : offsets)
    for (int round = 0; round < rounds; ++round) {
      const auto place = places[static_cast<std::size_t>(round)];
      EXPECT_EQ(stored[static_cast<std::size_t>(place)], bodies(round, round + 1)[0]);
      EXPECT_EQ(++once[place], 1);
    }
}

TEST(Completion, is_not_called_before_the_sync_and_not_inside_the_call) {
  Served log;
  std::atomic<bool> may_sync = false;
  log.files.refuse = [&](const std::string& call, const std::string&) -> Status {
    while (call == "sync" && !may_sync) std::this_thread::yield();
    return {};
  };
  auto answer = log.append({}, texts(0, 1));
  EXPECT_EQ(answer.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  may_sync = true;
  EXPECT_EQ(answer.get()->receipt(), (Receipt{0, 0}));
  // What is answered at once is not answered inside the call either: a lock of ours is no problem.
  std::mutex ours;
  std::promise<void> called;
  {
    const std::lock_guard lock(ours);
    log.commit->append({.stamp = {4711, 1, 0}, .messages = texts(0, 1)},
                       [&](const Result<Verdict>& verdict) {
                         const std::lock_guard inner(ours);
                         EXPECT_EQ(verdict.error().tag, "unknown");
                         called.set_value();
                       });
  }
  called.get_future().wait();
}

TEST(Completion, may_append_and_wait_in_the_same_partition) {
  Served log;
  std::promise<Result<Receipt>> second;
  log.commit->append({.messages = texts(0, 1)}, [&](const Result<Verdict>&) {
    second.set_value(log.commit->append({}, texts(1, 2)));
  });
  EXPECT_EQ(second.get_future().get().value(), (Receipt{1, 0}));
}

TEST(Completion, works_beside_threads_that_wait) {
  Served log;
  const Stamp stamp = log.commit->enter("p").value();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) EXPECT_TRUE(log.commit->append({}, texts(0, 1)));
    });
  std::vector<std::future<Result<Verdict>>> answers;
  for (int i = 0; i < 200; ++i)
    answers.push_back(log.append(after(stamp, static_cast<std::uint64_t>(i)), texts(i, i + 1)));
  std::int64_t last = -1;
  for (auto& answer : answers) {
    const Verdict verdict = answer.get().value();
    EXPECT_GT(verdict.receipt().offset, last);
    last = verdict.receipt().offset;
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(log.commit->info().end_offset, 400);
}

TEST(Completion, hears_of_a_failed_sync_and_of_everything_after_it) {
  Served log;
  log.files.refuse = [](const std::string& call, const std::string& path) -> Status {
    return call == "sync" ? fail(error_from_errno(EIO, "sync", path)) : Status{};
  };
  EXPECT_EQ(log.append({}, texts(0, 1)).get().error().remedy, Remedy::recheck);
  EXPECT_EQ(log.append({}, texts(0, 1)).get().error().remedy, Remedy::stop);
}

TEST(Completion, of_a_held_append_comes_with_its_predecessors_or_when_it_is_late) {
  Served log(GapPolicy::hold, 50);
  const Stamp stamp = log.commit->enter("p").value();
  auto held = log.append(after(stamp, 1), texts(1, 2));
  EXPECT_EQ(log.append(stamp, texts(0, 1)).get()->receipt(), (Receipt{0, 0}));
  EXPECT_EQ(held.get()->receipt(), (Receipt{1, 0}));
  auto late = log.append(after(stamp, 5), texts(5, 6));
  auto same = log.append(after(stamp, 5), texts(5, 6));
  for (auto* answer : {&late, &same}) {
    const auto refused = answer->get();
    EXPECT_EQ(refused.error().tag, "gap");
    EXPECT_EQ(refused.error().remedy, Remedy::retry);
  }
}

TEST(Completion, of_an_old_duplicate_has_the_offset_of_its_original) {
  Served log;
  log.commit.reset();
  log.options.segment_bytes_max = 4096;
  log.commit = std::make_unique<GroupCommit>(log.open(), system_clock(), 1000, &log.executor);
  const Stamp stamp = log.commit->enter("p").value();
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(log.commit->append(after(stamp, static_cast<std::uint64_t>(i)), texts(i, i + 1)));
    ASSERT_TRUE(log.commit->append({}, texts(0, 1)));
  }
  EXPECT_EQ(log.append(after(stamp, 3), texts(3, 4)).get()->receipt(), (Receipt{6, 1}));
}

TEST(Completion, is_called_by_the_end_of_the_partition_at_the_latest) {
  for (const bool is_closed : {true, false}) {
    std::atomic<int> called = 0, stored = 0;
    std::int64_t end = 0;
    {
      Served log;
      for (int i = 0; i < 100; ++i)
        log.commit->append({.messages = texts(i, i + 1)}, [&](const Result<Verdict>& verdict) {
          ++called;
          if (verdict) ++stored;
        });
      (void)log.commit->subscribe(1000, [&](const Result<std::int64_t>& news) {
        EXPECT_EQ(news.error().tag, "closed");
        ++called;
      });
      EXPECT_TRUE(!is_closed || log.commit->close());
      log.commit.reset();
      end = log.open()->end_offset();
    }
    EXPECT_EQ(called.load(), 101);
    EXPECT_GE(end, stored.load());
    EXPECT_TRUE(!is_closed || stored == 100);
  }
}

TEST(Wakeup, a_reader_waits_for_what_comes_or_for_its_time) {
  Served log;
  EXPECT_EQ(log.commit->wait_beyond(0, 5).value(), 0);
  std::thread writer([&] { EXPECT_TRUE(log.commit->append({}, texts(0, 2))); });
  EXPECT_EQ(log.commit->wait_beyond(1, 60'000).value(), 2);
  EXPECT_EQ(log.commit->wait_beyond(1, 60'000).value(), 2);  // at once
  writer.join();
}

TEST(Wakeup, comes_once_when_the_durable_end_has_passed) {
  Served log;
  std::atomic<int> woken = 0;
  const auto count = [&](const Result<std::int64_t>& end) {
    EXPECT_GT(end.value(), 1);
    ++woken;
  };
  (void)log.commit->subscribe(1, count);
  ASSERT_TRUE(log.append({}, texts(0, 1)).get());
  EXPECT_EQ(woken.load(), 0);
  ASSERT_TRUE(log.append({}, texts(1, 2)).get());
  while (woken == 0) std::this_thread::yield();
  // It has passed before: at once, and not only with the next append.
  const std::uint64_t number = log.commit->subscribe(1, count);
  while (woken == 1) std::this_thread::yield();
  EXPECT_FALSE(log.commit->unsubscribe(number));
  ASSERT_TRUE(log.append({}, texts(2, 3)).get());
  EXPECT_EQ(woken.load(), 2);
}

TEST(Wakeup, that_was_given_back_never_comes) {
  Served log;
  std::atomic<int> woken = 0;
  const std::uint64_t number =
      log.commit->subscribe(0, [&](const Result<std::int64_t>&) { ++woken; });
  EXPECT_TRUE(log.commit->unsubscribe(number));
  EXPECT_FALSE(log.commit->unsubscribe(number));
  ASSERT_TRUE(log.append({}, texts(0, 1)).get());
  EXPECT_TRUE(log.commit->close());
  EXPECT_EQ(woken.load(), 0);
}

TEST(Wakeup, readers_hear_that_nothing_will_come_any_more) {
  Served log;
  log.files.refuse = [](const std::string& call, const std::string& path) -> Status {
    return call == "sync" ? fail(error_from_errno(EIO, "sync", path)) : Status{};
  };
  std::promise<Result<std::int64_t>> news;
  (void)log.commit->subscribe(0, [&](const Result<std::int64_t>& end) { news.set_value(end); });
  EXPECT_FALSE(log.append({}, texts(0, 1)).get());
  EXPECT_EQ(news.get_future().get().error().tag, "poisoned");
  EXPECT_EQ(log.commit->wait_beyond(0, 60'000).error().tag, "poisoned");
}

}  // namespace
}  // namespace once::log
