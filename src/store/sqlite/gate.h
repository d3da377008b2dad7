// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/file.h"

namespace once {

// Lets one transaction of all threads and all processes write a file at a time. SQLite has a lock
// for that, but not one that keeps a checkpoint and a writer apart; this one does both. A process
// that dies gives its turn back. Thread-safe.
class Gate {
 public:
  Gate(Files& files, std::string where, std::string lock_path, std::int64_t wait_ms_max)
      : files_(files),
        where_(std::move(where)),
        lock_path_(std::move(lock_path)),
        wait_ms_max_(wait_ms_max) {}

  // A turn at writing; it ends with the object. May end on another thread than it began.
  class Turn {
   public:
    explicit Turn(Gate& gate) : gate_(gate) {}
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() { gate_.leave(); }

   private:
    Gate& gate_;
  };

  // Waits for a turn, up to a limit. A thread that waited for itself would wait for ever, so that
  // is an error at once.
  [[nodiscard]] Result<std::unique_ptr<Turn>> enter();

 private:
  void leave();
  Result<std::unique_ptr<File>> lock_file();

  Files& files_;
  const std::string where_;
  const std::string lock_path_;
  const std::int64_t wait_ms_max_;

  std::mutex mutex_;
  std::condition_variable free_;
  bool taken_ = false;
  std::thread::id owner_;
  std::unique_ptr<File> lock_;  // held against other processes while it is taken
};

}  // namespace once
