// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <new>
#include <thread>

#include "strategies/ground.h"

namespace once::testing {

inline constexpr int contenders = 2;
inline constexpr int rounds_max = 4000;

// What contenders share, also across processes.
struct Arena {
  std::atomic<int> arrived{0};
  std::atomic<int> inside{0};           // of whatever only one may be in
  std::atomic<int> collisions{0};       // times that two were
  std::atomic<int> looked{0};           // how often somebody has
  std::atomic<int> rounds{rounds_max};  // to be played
  std::atomic<bool> broken{false};
  std::array<char, 1000> why{};
  std::array<std::array<std::int64_t, contenders>, rounds_max> answers{};

  void fail(const std::string& text) {
    if (!broken.exchange(true)) std::snprintf(why.data(), why.size(), "%s", text.c_str());
  }
};

// One contender's part in every round; answers a number for the books.
using Contender = std::function<Result<std::int64_t>(int round)>;
using Enter = std::function<Contender(Store& store, int contender, Arena& arena)>;
using Answers = std::vector<std::array<std::int64_t, contenders>>;  // by round

// Lets two contenders do the same at the same instant, round after round: two processes, each with
// a store of its own, where the ground can be shared by processes, else two threads. On a machine
// that is busy with other things there are fewer rounds, not longer tests.
class Race {
 public:
  explicit Race(Ground& ground) : ground_(ground) {
    void* memory =
        ::mmap(nullptr, sizeof(Arena), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    arena_ = new (memory) Arena;
  }
  Race(const Race&) = delete;
  Race& operator=(const Race&) = delete;
  ~Race() { ::munmap(arena_, sizeof(Arena)); }

  // The answers of each round that was played.
  Answers run(int rounds, const Enter& enter) {
    arena_->rounds = rounds;
    until_ = std::chrono::steady_clock::now() + std::chrono::seconds(6);
    if (ground_.shared_by_processes())
      run_processes(enter);
    else
      run_threads(enter);
    EXPECT_FALSE(arena_->broken) << arena_->why.data();
    EXPECT_GE(arena_->rounds, 50);
    ::testing::Test::RecordProperty("rounds", arena_->rounds);
    return {arena_->answers.begin(), arena_->answers.begin() + arena_->rounds};
  }

  int collisions() const { return arena_->collisions; }

 private:
  void run_processes(const Enter& enter) {
    std::vector<pid_t> children;
    for (int c = 0; c < contenders; ++c) {
      const pid_t child = ::fork();
      if (child == 0) {
        contend(c, enter);
        ::_exit(0);
      }
      EXPECT_GT(child, 0);
      children.push_back(child);
    }
    for (const pid_t child : children) {
      int status = 0;
      EXPECT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0);
    }
  }

  void run_threads(const Enter& enter) {
    std::vector<std::thread> threads;
    for (int c = 0; c < contenders; ++c) threads.emplace_back([&, c] { contend(c, enter); });
    for (std::thread& thread : threads) thread.join();
  }

  void contend(int contender, const Enter& enter) {
    // What a child throws must not reach the tests that its parent runs.
    try {
      contend_or_throw(contender, enter);
    } catch (const std::exception& error) {
      arena_->fail(error.what());
    }
  }

  void contend_or_throw(int contender, const Enter& enter) {
    const std::shared_ptr<Store> store = ground_.open();
    if (store == nullptr) return arena_->fail("the store does not open");
    const Contender work = enter(*store, contender, *arena_);
    for (int round = 0; meet(contender, round); ++round) {
      const auto answer = work(round);
      if (!answer) return arena_->fail(answer.error().text);
      arena_->answers[static_cast<std::size_t>(round)][static_cast<std::size_t>(contender)] =
          *answer;
    }
  }

  // False: that was the last round, or the other one will not come.
  bool meet(int contender, int round) {
    using Time = std::chrono::steady_clock;
    // Said before we meet, so that both know.
    if (contender == 0 && Time::now() > until_ && round < arena_->rounds) arena_->rounds = round;
    ++arena_->arrived;
    while (arena_->arrived < contenders * (round + 1)) {
      if (arena_->broken) return false;
      if (Time::now() > until_ + std::chrono::seconds(60)) arena_->fail("a contender did not come");
      std::this_thread::yield();
    }
    return round < arena_->rounds;
  }

  Ground& ground_;
  std::chrono::steady_clock::time_point until_;
  Arena* arena_;
};

}  // namespace once::testing
