// SPDX-License-Identifier: Apache-2.0
#include "log/executor.h"

#include <chrono>
#include <utility>

namespace once::log {

ThreadExecutor::ThreadExecutor(std::size_t thread_count, Clock& clock) : clock_(clock) {
  for (std::size_t i = 0; i < thread_count; ++i) threads_.emplace_back([this] { work(); });
}

ThreadExecutor::~ThreadExecutor() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadExecutor::post_at(std::int64_t ticks_ns, Task task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.emplace(ticks_ns, std::move(task));
  }
  changed_.notify_one();
}

void ThreadExecutor::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto first = tasks_.begin();
    const std::int64_t now_ns = clock_.ticks_ns();
    if (first != tasks_.end() && first->first <= now_ns) {
      const Task task = std::move(first->second);
      tasks_.erase(first);
      lock.unlock();
      task();
      lock.lock();
      continue;
    }
    if (is_ending_) return;
    if (first == tasks_.end())
      changed_.wait(lock);
    else
      changed_.wait_for(lock, std::chrono::nanoseconds(first->first - now_ns));
  }
}

}  // namespace once::log
