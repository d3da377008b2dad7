// SPDX-License-Identifier: Apache-2.0
#include "cli/signals.h"

#include <csignal>
#include <cstdlib>
#include <exception>
#include <utility>

namespace once::cli {
namespace {

sigset_t watched() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

}  // namespace

SignalWatch::SignalWatch() {
  const sigset_t set = watched();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

SignalWatch::~SignalWatch() {
  stop();
  const sigset_t set = watched();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void SignalWatch::start(std::function<void()> on_signal, std::function<void()> on_tick,
                        std::int64_t tick_ms) {
  on_signal_ = std::move(on_signal);
  on_tick_ = std::move(on_tick);
  thread_ = std::thread([this, tick_ms] { work(tick_ms); });
}

void SignalWatch::stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

void SignalWatch::work(std::int64_t tick_ms) {
  const sigset_t set = watched();
  const timespec tick{tick_ms / 1000, (tick_ms % 1000) * 1'000'000};
  while (!stopping_) {
    const int number = sigtimedwait(&set, nullptr, &tick);
    if (number > 0 && came_ != 0) std::_Exit(128 + number);
    if (number > 0) {
      came_ = number;
      on_signal_();
    }
    try {
      on_tick_();
    } catch (const std::exception&) {  // it only tells how it goes
    }
  }
}

}  // namespace once::cli
