// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/gate.h"

#include <fmt/format.h>

#include <chrono>

namespace once {

Result<std::unique_ptr<Gate::Turn>> Gate::enter() {
  {
    std::unique_lock lock(mutex_);
    if (taken_ && owner_ == std::this_thread::get_id())
      return fail(Remedy::stop, "nested",
                  fmt::format("{}: this thread has a transaction open already; SQLite has one "
                              "writer, so finish it first",
                              where_));
    const auto limit = std::chrono::milliseconds(wait_ms_max_);
    if (!free_.wait_for(lock, limit, [&] { return !taken_; }))
      return fail(Remedy::retry, "busy",
                  fmt::format("{}: another thread has been writing for {} ms; try again", where_,
                              wait_ms_max_));
    taken_ = true;
    owner_ = std::this_thread::get_id();
  }
  auto turn = std::make_unique<Turn>(*this);
  lock_ = ONCE_TRY(lock_file());
  return turn;
}

Result<std::unique_ptr<File>> Gate::lock_file() {
  for (std::int64_t waited_ms = 0;; ++waited_ms) {
    auto lock = files_.open(lock_path_, OpenMode::lock);
    if (lock || lock.error().tag != "busy") return lock;
    if (waited_ms >= wait_ms_max_)
      return fail(Remedy::retry, "busy",
                  fmt::format("{}: another process has been writing for {} ms; try again", where_,
                              wait_ms_max_));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void Gate::leave() {
  lock_.reset();
  {
    const std::lock_guard lock(mutex_);
    taken_ = false;
    owner_ = {};
  }
  free_.notify_one();
}

}  // namespace once
