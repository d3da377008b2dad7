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

// An SQLite store with accounts, and pipelines that pay into them. The store remembers what it
// was given: every load must have new ids.
class Ledger {
 public:
  explicit Ledger(const std::string& path);

  // Puts rows into the empty ledger as if that many messages had been handled, only faster: with
  // SQL, without durability. They are spread over the file as they would be.
  void fill(IdKind kind, std::size_t rows);

  // The messages through a pipeline with at most `rows` per transaction; then the books are
  // checked. Only the pipeline is timed.
  double seconds_for(const std::vector<Message>& messages, std::size_t rows) const;

 private:
  std::string path_;
  std::unique_ptr<Store> store_;
};

}  // namespace once::bench
