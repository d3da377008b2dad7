// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace once::bench {

// The floor of a durable log: bytes that someone else has prepared go to the end of a file with
// pwritev and are made durable with fdatasync. Space is asked for in large steps, since a file
// whose size changes takes longer to sync. Used by one thread.
class RawLog {
 public:
  explicit RawLog(const std::string& path);
  RawLog(const RawLog&) = delete;
  RawLog& operator=(const RawLog&) = delete;
  ~RawLog();

  void append(std::string_view group);

 private:
  int file_;
  std::int64_t end_ = 0;
  std::int64_t reserved_ = 0;
};

// The same for several threads: what they bring while a group is on its way to the disk is the next
// group, which the first of them writes for all. Returns when the bytes are durable. Thread-safe.
class RawGroupLog {
 public:
  explicit RawGroupLog(const std::string& path) : log_(path) {}

  void append(std::string_view bytes);

 private:
  RawLog log_;  // of who is writing
  std::mutex mutex_;
  std::condition_variable landed_;
  std::string pending_;             // guarded by mutex_
  std::uint64_t group_ = 1;         // guarded by mutex_: the number of the pending group
  std::uint64_t landed_group_ = 0;  // guarded by mutex_: durable up to here
  bool writing_ = false;            // guarded by mutex_
};

}  // namespace once::bench
