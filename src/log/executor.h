// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/clock.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace once::log {

using Task = std::function<void()>;

// Runs work for others. A task is never run inside the call that posts it.
class Executor {
 public:
  virtual ~Executor() = default;
  // Any thread may call these.
  virtual void post(Task task) = 0;
  // Not before this time of the clock's ticks.
  virtual void post_at(std::int64_t ticks_ns, Task task) = 0;
};

// Some threads. A sync blocks one of them, so their number is how many partitions are written at
// the same time. The destructor runs what was posted and drops what was for later.
class ThreadExecutor final : public Executor {
 public:
  explicit ThreadExecutor(std::size_t thread_count, Clock& clock = system_clock());
  ThreadExecutor(const ThreadExecutor&) = delete;
  ThreadExecutor& operator=(const ThreadExecutor&) = delete;
  ~ThreadExecutor() override;

  void post(Task task) override { post_at(0, std::move(task)); }
  void post_at(std::int64_t ticks_ns, Task task) override;

 private:
  void work();

  Clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<std::int64_t, Task> tasks_;  // by time; 0: at once, in the order of posting
  bool is_ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace once::log
