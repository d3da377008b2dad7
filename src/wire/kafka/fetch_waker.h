// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "wire/kafka/client.h"

namespace once::kafka {

// Makes librdkafka fetch again as soon as there is room. Once its queues are full, versions before
// 2.2 look at them again after a whole second, so that queues either hold a second's worth of
// messages, which is a lot of memory, or run dry. Any question to the broker wakes the thread that
// fetches from it; this asks one, from a thread of its own, since an answer may take its time.
class FetchWaker {
 public:
  FetchWaker(std::shared_ptr<Client> client, std::string topic);
  FetchWaker(const FetchWaker&) = delete;
  FetchWaker& operator=(const FetchWaker&) = delete;
  ~FetchWaker();

  // There is room for messages of this partition.
  void wake(std::int32_t partition);

 private:
  void run();

  const std::shared_ptr<Client> client_;
  const std::string topic_;
  std::mutex mutex_;  // taken with no other lock
  std::condition_variable changed_;
  std::optional<std::int32_t> wanted_;  // guarded by mutex_
  bool ending_ = false;                 // guarded by mutex_
  std::thread thread_;                  // last: it uses all of the above
};

}  // namespace once::kafka
