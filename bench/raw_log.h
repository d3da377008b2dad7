// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
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

}  // namespace once::bench
