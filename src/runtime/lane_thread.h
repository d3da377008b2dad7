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
  // Which thread finds out what messages are: with one lane the poller's, to spare the lane's; with
  // several lanes each does it for its own messages.
  enum class Identify : std::uint8_t { by_poller, by_lane };

  // `wake` is called, from the lane's thread, when there is news for the poller.
  LaneThread(const LaneParts& parts, Identify identify, std::function<void()> wake);
  ~LaneThread();

  void own(std::string partition, const Position& position);
  void disown(std::string partition);
  void drained(std::string partition, std::int64_t settled_ms);
  void push(Batch batch);

  struct News {
    std::vector<Lane::Births> identified;  // where the poller moves the positions
    std::vector<Batch> finished;
    std::vector<Lane::GivenBack> given_back;
    std::optional<Error> failure;
  };
  News take_news();
  // Batches that were pushed and take up room; and all that are not finished.
  std::size_t queued() const;
  std::size_t held() const;

  // Ends the thread after its present step; answers what it had not settled.
  std::vector<Batch> stop();

 private:
  using Command = std::function<void(Lane&)>;

  Lane::Prepared prepare(Batch batch);
  void run();
  void work();
  void post(Command command, std::size_t batches = 0);

  const Identify identify_;
  const bool tells_births_;
  Lane lane_;  // of the thread
  std::function<void()> wake_;

  mutable std::mutex mutex_;
  std::condition_variable mail_;
  std::deque<Command> commands_;  // guarded by mutex_
  News news_;                     // guarded by mutex_
  std::size_t mailed_ = 0;        // guarded by mutex_: batches in the mailbox ...
  std::size_t in_lane_ = 0;       // guarded by mutex_: ... and in the lane, when it last said so
  std::size_t held_ = 0;          // guarded by mutex_: the same with those that take up no room
  bool stopping_ = false;         // guarded by mutex_
  std::thread thread_;            // last: it uses all of the above
};

}  // namespace once
