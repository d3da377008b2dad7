// SPDX-License-Identifier: Apache-2.0
#include "cli/signals.h"

#include <once/clock.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <utility>

namespace once::cli {
namespace {

constexpr std::int64_t tick_ms = 100;
constexpr std::int64_t ns_per_ms = 1'000'000;

sigset_t watched() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

void unblock() {
  const sigset_t set = watched();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

// As if nobody had waited for the signal.
[[noreturn]] void die_of(int number) {
  unblock();
  std::raise(number);
  std::_Exit(128 + number);  // where somebody has it ignored
}

}  // namespace

SignalWatch::SignalWatch(const Limits& limits) : limits_(limits) {
  const sigset_t set = watched();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  try {
    reactor_ = std::thread([this] { react(); });
    thread_ = std::thread([this] { watch(); });
  } catch (...) {
    end_reactor();
    unblock();
    throw;
  }
}

// While a reaction runs that does not return, a signal still ends the process.
SignalWatch::~SignalWatch() {
  end_reactor();
  ending_ = true;
  thread_.join();
  unblock();
}

void SignalWatch::end_reactor() {
  {
    const std::lock_guard lock(news_mutex_);
    reactor_ending_ = true;
  }
  news_.notify_all();
  if (reactor_.joinable()) reactor_.join();
}

SignalWatch::Scope::Scope(SignalWatch& watch, SignalReactions reactions) : watch_(watch) {
  const std::lock_guard lock(watch_.mutex_);
  watch_.reactions_ = std::move(reactions);
  watch_.began_ = true;
}

SignalWatch::Scope::~Scope() {
  const std::lock_guard lock(watch_.mutex_);
  watch_.reactions_.reset();
}

// Nothing here waits for anything but signals.
void SignalWatch::watch() {
  const sigset_t set = watched();
  const timespec tick{tick_ms / 1000, (tick_ms % 1000) * ns_per_ms};
  while (!ending_) {
    const int number = sigtimedwait(&set, nullptr, &tick);
    if (number > 0) take(number);
    if (came_ != 0) look_at_clock();
  }
}

void SignalWatch::take(int number) {
  if (came_ != 0 || !began_) die_of(number);
  came_ns_ = system_clock().ticks_ns();
  came_ = number;
  signal_untold_ = true;
  news_.notify_all();
}

void SignalWatch::look_at_clock() {
  const std::int64_t waited_ms = (system_clock().ticks_ns() - came_ns_) / ns_per_ms;
  if (waited_ms >= limits_.end_ms) die_of(came_);
  if (waited_ms < limits_.overdue_ms || std::exchange(is_overdue_, true)) return;
  overdue_untold_ = true;
  news_.notify_all();
}

void SignalWatch::react() {
  while (true) {
    {
      std::unique_lock lock(news_mutex_);
      const auto has_news = [this] { return reactor_ending_ || signal_untold_ || overdue_untold_; };
      news_.wait_for(lock, std::chrono::milliseconds(tick_ms), has_news);
      if (reactor_ending_) return;
    }
    react_once();
  }
}

void SignalWatch::react_once() {
  const std::lock_guard lock(mutex_);
  const bool came = signal_untold_.exchange(false);
  const bool is_overdue = overdue_untold_.exchange(false);
  if (!reactions_) return;
  if (came) reactions_->on_signal();
  if (is_overdue) reactions_->on_overdue();
  try {
    reactions_->on_tick();
  } catch (const std::exception&) {  // it only tells how it goes; without memory it is left out
  }
}

}  // namespace once::cli
