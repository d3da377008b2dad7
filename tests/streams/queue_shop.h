// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <once/once.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "store/memory/memory.h"

namespace once::testing {

// A pipeline over a queue: how often each id took effect.
class QueueShop {
 public:
  explicit QueueShop(std::unique_ptr<Source> source) : source_(std::move(source)) {
    options_.scope = "shop";
    options_.id = IdRule{};
    options_.retention_ms = -1;
    options_.batch_count_max = 20;
    options_.retry.backoff_ms_max = 200;
  }
  ~QueueShop() { stop(); }

  void start() {
    pipeline_ =
        Pipeline::make(*source_, store_,
                       each([this](const Delivery& delivery, Transaction&) -> Result<Outcome> {
                         const std::lock_guard lock(mutex_);
                         ++effects_[std::string(delivery.id)];
                         return applied();
                       }),
                       options_)
            .value();
    thread_ = std::thread([this] { ran_ = pipeline_->run(); });
  }
  Status stop() {
    if (!thread_.joinable()) return ran_;
    pipeline_->stop();
    thread_.join();
    return ran_;
  }
  std::map<std::string, int> effects() const {
    const std::lock_guard lock(mutex_);
    return effects_;
  }
  bool wait_for(std::size_t count) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(40);
    while (effects().size() < count) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }

 private:
  std::unique_ptr<Source> source_;
  MemoryStore store_{system_clock()};
  PipelineOptions options_;
  mutable std::mutex mutex_;
  std::map<std::string, int> effects_;  // guarded by mutex_
  std::unique_ptr<Pipeline> pipeline_;
  std::thread thread_;
  Status ran_;
};

// Sends until it is told that all are there, as a producer does that must not lose any.
inline void send_for_certain(Sink& sink, const std::vector<Message>& sent) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(40);
  while (true) {
    const auto receipt = sink.append(0, {}, sent);
    if (receipt) return;
    ASSERT_TRUE(is_transient(receipt.error().remedy)) << receipt.error().text;
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << receipt.error().text;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

inline std::vector<Message> orders(int from, int to) {
  std::vector<Message> made;
  for (int i = from; i < to; ++i)
    made.push_back({.id = fmt::format("order {}", i),
                    .key = fmt::format("customer {}", i % 7),
                    .body = fmt::format(R"({{"number": {}}})", i),
                    .timestamp_ms = 1'700'000'000'000 + i});
  return made;
}

// Each of these once, and nothing else.
inline std::map<std::string, int> each_order_once(int from, int to) {
  std::map<std::string, int> wanted;
  for (const Message& message : orders(from, to)) wanted[message.id] = 1;
  return wanted;
}

}  // namespace once::testing
