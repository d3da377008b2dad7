// SPDX-License-Identifier: Apache-2.0
#include "runtime/lane_thread.h"

#include <chrono>
#include <iterator>
#include <utility>

namespace once {

LaneThread::LaneThread(const LaneParts& parts, std::function<void()> wake)
    : lane_(parts), wake_(std::move(wake)), thread_([this] { run(); }) {}

LaneThread::~LaneThread() { stop(); }

void LaneThread::post(Command command) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back(std::move(command));
  }
  mail_.notify_one();
}

void LaneThread::own(std::string partition, const Position& position) {
  post([partition = std::move(partition), position](Lane& lane) { lane.own(partition, position); });
}

void LaneThread::disown(std::string partition) {
  post([this, partition = std::move(partition)](Lane& lane) {
    const std::size_t before = lane.batches_queued();
    lane.disown(partition);
    const std::lock_guard lock(mutex_);
    queued_ -= before - lane.batches_queued();
  });
}

void LaneThread::push(Batch batch) {
  {
    const std::lock_guard lock(mutex_);
    ++queued_;
  }
  // std::function wants something that can be copied.
  auto shared = std::make_shared<Lane::Prepared>(lane_.prepare(std::move(batch)));
  post([shared = std::move(shared)](Lane& lane) { lane.push(std::move(*shared)); });
}

LaneThread::News LaneThread::take_news() {
  const std::lock_guard lock(mutex_);
  News news = std::move(news_);
  news_ = {};
  news_.failure = news.failure;  // a failure stays
  return news;
}

std::size_t LaneThread::queued() const {
  const std::lock_guard lock(mutex_);
  return queued_;
}

std::vector<Batch> LaneThread::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  mail_.notify_one();
  if (!thread_.joinable()) return {};
  thread_.join();
  for (Command& command : commands_) command(lane_);
  commands_.clear();
  return lane_.give_back();
}

void LaneThread::run() {
  std::int64_t wait_ms = 0;
  while (true) {
    std::deque<Command> commands;
    {
      std::unique_lock lock(mutex_);
      const auto mail = [&] { return stopping_ || !commands_.empty(); };
      if (lane_.idle())
        mail_.wait(lock, mail);
      else if (wait_ms > 0)
        mail_.wait_for(lock, std::chrono::milliseconds(wait_ms), mail);
      if (stopping_) return;
      commands.swap(commands_);
    }
    for (Command& command : commands) command(lane_);
    if (lane_.idle()) continue;

    auto step = lane_.step();
    {
      const std::lock_guard lock(mutex_);
      if (!step) {
        news_.failure = std::move(step).error();
      } else {
        queued_ -= step->finished.size();
        news_.progress_ms = lane_.progress_ms();
        std::move(step->finished.begin(), step->finished.end(), std::back_inserter(news_.finished));
      }
    }
    wake_();
    if (!step) return;
    wait_ms = step->wait_ms;
  }
}

}  // namespace once
