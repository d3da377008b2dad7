// SPDX-License-Identifier: Apache-2.0
#include "wire/kafka/fetch_waker.h"

#include <chrono>
#include <utility>

namespace once::kafka {
namespace {

// So often is enough for queues of some thousand messages.
constexpr std::chrono::milliseconds pause(10);
constexpr int question_ms = 500;

}  // namespace

FetchWaker::FetchWaker(std::shared_ptr<Client> client)
    : client_(std::move(client)), thread_([this] { run(); }) {}

FetchWaker::~FetchWaker() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void FetchWaker::wake(const std::string& topic, std::int32_t partition) {
  {
    const std::lock_guard lock(mutex_);
    wanted_ = Place{topic, partition};
  }
  changed_.notify_one();
}

void FetchWaker::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return wanted_ || ending_; });
    if (ending_) return;
    const Place place = *std::exchange(wanted_, std::nullopt);
    lock.unlock();
    std::int64_t low = 0;
    std::int64_t high = 0;
    // The answer is of no interest.
    (void)rd_kafka_query_watermark_offsets(client_->get(), place.topic.c_str(), place.partition,
                                           &low, &high, question_ms);
    lock.lock();
    changed_.wait_for(lock, pause, [this] { return ending_; });
  }
}

}  // namespace once::kafka
