// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "wire/kafka/client.h"

namespace once::kafka {

// Makes librdkafka fetch again as soon as there is room. Once its queues are full, versions before
// 2.2 look at them again after a whole second, so that queues either hold a second's worth of
// messages, which is a lot of memory, or run dry. Any question to the broker wakes the thread that
// fetches from it; this asks one, from a thread of its own, since an answer may take its time.
class FetchWaker {
 public:
  explicit FetchWaker(std::shared_ptr<Client> client);
  FetchWaker(const FetchWaker&) = delete;
  FetchWaker& operator=(const FetchWaker&) = delete;
  ~FetchWaker();

  // There is room for messages of this partition.
  void wake(const std::string& topic, std::int32_t partition);

 private:
  struct Place {
    std::string topic;
    std::int32_t partition = 0;
  };

  void run();

  const std::shared_ptr<Client> client_;
  std::mutex mutex_;  // taken with no other lock
  std::condition_variable changed_;
  std::optional<Place> wanted_;  // guarded by mutex_
  bool ending_ = false;          // guarded by mutex_
  std::thread thread_;           // last: it uses all of the above
};

}  // namespace once::kafka
