// SPDX-License-Identifier: Apache-2.0
#include "log/group_commit.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "log/limits.h"
#include "log/log_testing.h"

namespace once::log {
namespace {

TEST(GroupCommit, appends_of_many_threads_are_all_there_once_and_in_their_order) {
  Bench bench;
  constexpr int threads_count = 8;
  constexpr int messages_count = 200;
  {
    GroupCommit commit(bench.open());
    std::vector<std::thread> threads;
    for (int t = 0; t < threads_count; ++t)
      threads.emplace_back([&, t] {
        const Stamp stamp = commit.enter("p" + std::to_string(t)).value();
        for (int i = 0; i < messages_count; ++i) {
          const Message message{"", "", fmt::format("{}:{}", t, i), {}, 1};
          const Stamp own = after(stamp, static_cast<std::uint64_t>(i));
          const Receipt receipt = commit.append(own, std::span(&message, 1)).value();
          EXPECT_EQ(receipt.duplicates, 0u);
          if (i % 7 == 0) {
            EXPECT_EQ(commit.append(own, std::span(&message, 1)).value(),
                      (Receipt{receipt.offset, 1}));
          }
        }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(commit.info().end_offset, threads_count * messages_count);
    EXPECT_EQ(commit.info().producers, static_cast<std::uint32_t>(threads_count));
  }
  auto partition = bench.open();
  std::vector<int> next(threads_count, 0);
  for (const std::string& body : read_all(*partition)) {
    const auto t = static_cast<std::size_t>(body[0] - '0');
    EXPECT_EQ(body, fmt::format("{}:{}", t, next[t]++));
  }
  for (const int count : next) EXPECT_EQ(count, messages_count);
}

// Some MiB each: more than one append, and more than one group, takes.
std::vector<Message> large(std::size_t count, std::size_t bytes) {
  std::vector<Message> messages(count);
  for (std::size_t i = 0; i < count; ++i) {
    messages[i].id = fmt::format("m{}", i);
    messages[i].body = std::string(bytes, static_cast<char>('a' + i % 26));
  }
  return messages;
}

TEST(GroupCommit, what_is_too_large_for_one_append_is_cut) {
  Bench bench;
  GroupCommit commit(bench.open());
  const Stamp stamp = commit.enter("shop").value();
  const std::vector<Message> sent = large(20, 5 << 20);
  EXPECT_EQ(commit.append(stamp, std::span(sent).first(9)).value(), (Receipt{0, 0}));
  EXPECT_EQ(commit.append(stamp, sent).value(), (Receipt{0, 9})) << "the first part was there";
  EXPECT_EQ(commit.append(stamp, sent).value(), (Receipt{0, 20}));
  EXPECT_EQ(commit.info().end_offset, 20);
  const std::vector<Message> many(batch_count_max + 1);
  EXPECT_EQ(commit.append(after(stamp, 20), many).value(), (Receipt{20, 0}));
  EXPECT_EQ(commit.info().end_offset, 21 + static_cast<std::int64_t>(batch_count_max));
}

TEST(GroupCommit, a_message_that_no_append_takes_is_refused_before_anything_is_written) {
  Bench bench;
  GroupCommit commit(bench.open());
  const Stamp stamp = commit.enter("shop").value();
  std::vector<Message> sent = large(20, 5 << 20);
  sent.back().body = std::string(message_bytes_max + 1, 'x');
  const auto refused = commit.append(stamp, sent);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().tag, "too_large");
  EXPECT_EQ(refused.error().remedy, Remedy::park);
  EXPECT_EQ(commit.info().end_offset, 0);
  EXPECT_EQ(commit.append(stamp, std::span(sent).first(19)).value(), (Receipt{0, 0}));
}

TEST(GroupCommit, the_first_waiter_writes_for_all) {
  Bench bench;
  std::atomic<int> syncs = 0;
  std::atomic<int> waiting = 0;
  auto partition = bench.open();
  bench.files.refuse = [&](const std::string& call, const std::string&) -> Status {
    if (call != "sync") return {};
    // The first sync takes until all others have staged theirs behind it.
    if (++syncs == 1)
      while (waiting < 20) std::this_thread::yield();
    return {};
  };
  GroupCommit commit(std::move(partition));
  std::vector<std::thread> threads;
  for (int t = 0; t < 20; ++t)
    threads.emplace_back([&] {
      ++waiting;
      const Message message{"", "", "x", {}, 1};
      EXPECT_TRUE(commit.append({}, std::span(&message, 1)));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(commit.info().end_offset, 20);
  EXPECT_LE(syncs.load(), 20);
  EXPECT_LT(syncs.load(), 12);  // far fewer than appends
}

TEST(GroupCommit, a_failed_sync_is_told_to_every_waiter) {
  Bench bench;
  auto partition = bench.open();
  bench.files.refuse = [&](const std::string& call, const std::string& path) -> Status {
    return call == "sync" ? fail(error_from_errno(EIO, "sync", path)) : Status{};
  };
  GroupCommit commit(std::move(partition));
  std::atomic<int> unknown = 0;
  std::atomic<int> refused = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 10; ++t)
    threads.emplace_back([&] {
      const Message message{"", "", "x", {}, 1};
      const auto receipt = commit.append({}, std::span(&message, 1));
      ASSERT_FALSE(receipt);
      EXPECT_EQ(receipt.error().tag, "poisoned");
      ++(receipt.error().remedy == Remedy::recheck ? unknown : refused);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(unknown.load(), 1);
  EXPECT_EQ(unknown + refused, 10);
}

TEST(GroupCommit, a_held_append_returns_when_its_predecessors_have_come) {
  Bench bench;
  bench.options.gaps = GapPolicy::hold;
  GroupCommit commit(bench.open(), system_clock(), 60'000);
  const Stamp stamp = commit.enter("p").value();
  std::vector<std::thread> threads;
  for (int i = 9; i >= 0; --i)
    threads.emplace_back([&, i] {
      const auto message = texts(i, i + 1);
      EXPECT_EQ(commit.append(after(stamp, static_cast<std::uint64_t>(i)), message).value(),
                (Receipt{i, 0}));
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(GroupCommit, a_held_append_whose_predecessors_do_not_come_is_given_back) {
  Bench bench;
  bench.options.gaps = GapPolicy::hold;
  GroupCommit commit(bench.open(), system_clock(), 20);
  const Stamp stamp = commit.enter("p").value();
  const auto held = commit.append(after(stamp, 5), texts(5, 6));
  EXPECT_EQ(held.error().tag, "gap");
  EXPECT_EQ(held.error().remedy, Remedy::retry);
  EXPECT_EQ(commit.info().end_offset, 0);
}

TEST(GroupCommit, more_than_fits_into_one_group_waits_for_the_next) {
  Bench bench;
  GroupCommit commit(bench.open());
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&] {
      std::vector<Message> large(2);
      for (Message& message : large) message.body->assign(12 << 20, 'x');
      EXPECT_TRUE(commit.append({}, large));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(commit.info().end_offset, 12);
}

}  // namespace
}  // namespace once::log
