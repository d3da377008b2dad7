// SPDX-License-Identifier: Apache-2.0
#include "runtime/lane_thread.h"

#include <chrono>
#include <iterator>
#include <utility>

#include "base/exception.h"
#include "base/mutant.h"

namespace once {

LaneThread::LaneThread(const LaneParts& parts, Identify identify, std::function<void()> wake)
    : identify_(identify),
      tells_births_(!parts.positions),
      lane_(parts),
      wake_(std::move(wake)),
      thread_([this] { run(); }) {}

LaneThread::~LaneThread() { stop(); }

// A batch is counted with its command: counted earlier, the thread could take it for one that has
// left the lane, and the lane would look idle while the batch is in the mailbox.
void LaneThread::post(Command command, std::size_t batches) {
  {
    const std::lock_guard lock(mutex_);
    mailed_ += batches;
    commands_.push_back(std::move(command));
  }
  mail_.notify_one();
}

void LaneThread::own(std::string partition, const Position& position) {
  post([partition = std::move(partition), position](Lane& lane) { lane.own(partition, position); });
}

void LaneThread::disown(std::string partition) {
  post([partition = std::move(partition)](Lane& lane) { lane.disown(partition); });
}

void LaneThread::drained(std::string partition, std::int64_t settled_ms) {
  post([partition = std::move(partition), settled_ms](Lane& lane) {
    lane.drained(partition, settled_ms);
  });
}

// std::function wants something that can be copied.
void LaneThread::push(Batch batch) {
  if (identify_ == Identify::by_poller) {
    auto task = std::make_shared<Lane::Prepared>(prepare(std::move(batch)));
    return post([task = std::move(task)](Lane& lane) { lane.push(std::move(*task)); }, 1);
  }
  auto shared = std::make_shared<Batch>(std::move(batch));
  post([this, shared = std::move(shared)](Lane& lane) { lane.push(prepare(std::move(*shared))); },
       1);
}

Lane::Prepared LaneThread::prepare(Batch batch) {
  const bool tells = tells_births_ && !Lane::is_deferred(batch);
  auto task = lane_.prepare(std::move(batch));
  if (!tells) return task;
  auto births = Lane::births(*task);
  const std::lock_guard lock(mutex_);
  news_.identified.push_back(std::move(births));
  return task;
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
  return mailed_ + in_lane_;
}

std::size_t LaneThread::held() const {
  const std::lock_guard lock(mutex_);
  return mailed_ + held_;
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
  try {
    work();
  } catch (const std::exception& exception) {
    {
      const std::lock_guard lock(mutex_);
      news_.failure = error_from_exception(exception);
    }
    wake_();
  }
}

void LaneThread::work() {
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
      held_ += mailed_;
      in_lane_ += std::exchange(mailed_, 0);
    }
    for (Command& command : commands) command(lane_);
    Result<Lane::Step> step = lane_.idle() ? Lane::Step{} : lane_.step();
    {
      const std::lock_guard lock(mutex_);
      held_ = lane_.batches_held();
      // Whatever left the queue, and for whatever reason, makes room.
      if (!mutant(Mutant::revoked_in_doubt_leaks))
        in_lane_ = lane_.batches_queued();
      else if (step)
        in_lane_ -= step->finished.size();
      if (!step) {
        news_.failure = std::move(step).error();
      } else {
        std::move(step->finished.begin(), step->finished.end(), std::back_inserter(news_.finished));
        std::move(step->given_back.begin(), step->given_back.end(),
                  std::back_inserter(news_.given_back));
      }
    }
    wake_();
    if (!step) return;
    wait_ms = step->wait_ms;
  }
}

}  // namespace once
