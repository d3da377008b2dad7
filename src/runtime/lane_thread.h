// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/lane.h"

namespace once {

// A lane with its thread. The poller talks to it through a mailbox; all methods are the poller's.
class LaneThread {
 public:
  // `wake` is called, from the lane's thread, when there is news for the poller.
  LaneThread(const LaneParts& parts, std::function<void()> wake);
  ~LaneThread();

  void own(std::string partition, const Position& position);
  void disown(std::string partition);
  void drained(std::string partition, std::int64_t settled_ms);
  // What the messages of a batch are; on the poller's thread, to spare the lane's.
  Lane::Prepared prepare(Batch batch) const { return lane_.prepare(std::move(batch)); }
  void push(Lane::Prepared task);

  struct News {
    std::vector<Batch> finished;
    std::optional<Error> failure;
  };
  News take_news();
  // Batches that were pushed and are not finished.
  std::size_t queued() const;

  // Ends the thread after its present step; answers what it had not settled.
  std::vector<Batch> stop();

 private:
  using Command = std::function<void(Lane&)>;

  void run();
  void work();
  void post(Command command);

  Lane lane_;  // of the thread
  std::function<void()> wake_;

  mutable std::mutex mutex_;
  std::condition_variable mail_;
  std::deque<Command> commands_;  // guarded by mutex_
  News news_;                     // guarded by mutex_
  std::size_t mailed_ = 0;        // guarded by mutex_: batches in the mailbox ...
  std::size_t in_lane_ = 0;       // guarded by mutex_: ... and in the lane, when it last said so
  bool stopping_ = false;         // guarded by mutex_
  std::thread thread_;            // last: it uses all of the above
};

}  // namespace once
