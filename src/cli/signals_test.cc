// SPDX-License-Identifier: Apache-2.0
#include "cli/signals.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

namespace once::cli {
namespace {

constexpr SignalWatch::Limits soon{.overdue_ms = 50, .end_ms = 300};

void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// By which signal a process ends that does this when it gets SIGTERM; 0: by itself.
template <class Work>
int signal_that_ends(const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);  // so that a defect ends
    work();
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST(Signals, one_that_stops_in_time_ends_by_itself) {
  EXPECT_EQ(signal_that_ends([] {
              SignalWatch watch(soon);
              std::atomic<bool> stopped{false};
              const SignalWatch::Scope scope(
                  watch, {.on_signal = [&] { stopped = true; }, .on_overdue = [] {}});
              ::kill(::getpid(), SIGTERM);
              while (!stopped) sleep_ms(1);
            }),
            0);
}

TEST(Signals, one_that_does_not_stop_is_ended_by_the_signal) {
  EXPECT_EQ(signal_that_ends([] {
              SignalWatch watch(soon);
              const SignalWatch::Scope scope(watch, {.on_signal = [] {}, .on_overdue = [] {}});
              ::kill(::getpid(), SIGTERM);
              sleep_ms(60'000);
            }),
            SIGTERM);
}

// Each reaction may wait for what never comes: stderr that nobody reads, the client of a broker.
TEST(Signals, a_reaction_that_does_not_return_keeps_no_process_alive) {
  const auto stuck = [] { sleep_ms(60'000); };
  const auto nothing = [] {};
  const SignalReactions each[] = {{.on_signal = stuck, .on_overdue = nothing},
                                  {.on_signal = nothing, .on_overdue = stuck},
                                  {.on_signal = nothing, .on_overdue = nothing, .on_tick = stuck}};
  for (const SignalReactions& reactions : each)
    EXPECT_EQ(signal_that_ends([&] {
                SignalWatch watch(soon);
                const SignalWatch::Scope scope(watch, reactions);
                sleep_ms(150);  // then the tick is stuck
                ::kill(::getpid(), SIGTERM);
                sleep_ms(60'000);
              }),
              SIGTERM);
}

TEST(Signals, a_second_one_ends_the_process_at_once) {
  EXPECT_EQ(signal_that_ends([] {
              SignalWatch watch;  // with seconds of patience
              std::atomic<bool> stopping{false};
              const SignalWatch::Scope scope(
                  watch, {.on_signal = [&] { stopping = true; }, .on_overdue = [] {}});
              ::kill(::getpid(), SIGTERM);
              while (!stopping) sleep_ms(1);
              ::kill(::getpid(), SIGINT);
              sleep_ms(60'000);
            }),
            SIGINT);
}

}  // namespace
}  // namespace once::cli
