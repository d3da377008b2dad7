// SPDX-License-Identifier: Apache-2.0
#include "cli/signals.h"

#include <once/clock.h>

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

SignalWatch::SignalWatch() {
  const sigset_t set = watched();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::thread([this] { work(); });
}

SignalWatch::~SignalWatch() {
  ending_ = true;
  thread_.join();
  unblock();
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

void SignalWatch::work() {
  const sigset_t set = watched();
  const timespec tick{tick_ms / 1000, (tick_ms % 1000) * ns_per_ms};
  while (!ending_) {
    const int number = sigtimedwait(&set, nullptr, &tick);
    const std::lock_guard lock(mutex_);
    if (number > 0) take(number);
    if (came_ != 0) look_at_clock();
    if (reactions_) tick_once();
  }
}

// It only tells how it goes: one that throws, as without memory, is left out.
void SignalWatch::tick_once() {
  try {
    reactions_->on_tick();
  } catch (const std::exception&) {
  }
}

void SignalWatch::take(int number) {
  if (came_ != 0 || !began_) die_of(number);
  came_ = number;
  came_ns_ = system_clock().ticks_ns();
  if (reactions_) reactions_->on_signal();
}

void SignalWatch::look_at_clock() {
  const std::int64_t waited_ms = (system_clock().ticks_ns() - came_ns_) / ns_per_ms;
  if (waited_ms >= end_ms) die_of(came_);
  if (waited_ms < overdue_ms || is_overdue_) return;
  is_overdue_ = true;
  unblock();  // giving up may take a moment, in which a second signal still kills
  if (reactions_) reactions_->on_overdue();
}

}  // namespace once::cli
