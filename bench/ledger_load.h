// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/store.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "load.h"

namespace once::bench {

// An SQLite store with accounts, and pipelines that pay into them.
class Ledger {
 public:
  explicit Ledger(const std::string& path);

  // Puts rows into the empty ledger as if that many messages had been handled, only faster: with
  // SQL, without durability.
  void fill(IdKind kind, std::size_t rows);

  // New messages through a pipeline with at most `rows` per transaction. Only that is timed; the
  // books are checked afterwards.
  double messages_per_s(IdKind kind, std::size_t count, std::size_t rows);

 private:
  std::string path_;
  std::unique_ptr<Store> store_;
  std::uint64_t next_ = 0;  // the number of the next message
};

}  // namespace once::bench
