// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "log/reader.h"

namespace once::log {

inline constexpr std::int64_t any_offset = -1;  // for work that begins nowhere

// Readers of one partition for many threads. Each call has a reader of its own, if possible one
// that stopped where this call begins. Thread-safe.
class ReaderPool {
 public:
  using Make = std::function<std::unique_ptr<Reader>()>;

  explicit ReaderPool(Make make) : make_(std::move(make)) {}

  // Calls `work` with a reader. One that answers an error is not used again.
  template <class Work>
  auto use(std::int64_t offset, Work&& work) {
    std::unique_ptr<Reader> reader = acquire(offset);
    auto answer = work(*reader);
    if (answer) put_back(std::move(reader));
    return answer;
  }

 private:
  static constexpr std::size_t idle_max = 16;  // each has a file open

  std::unique_ptr<Reader> acquire(std::int64_t offset);
  void put_back(std::unique_ptr<Reader> reader);

  const Make make_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Reader>> idle_;  // the one used last is the last
};

}  // namespace once::log
