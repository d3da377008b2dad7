// SPDX-License-Identifier: Apache-2.0
#include "log/reader_pool.h"

#include <algorithm>

namespace once::log {

std::unique_ptr<Reader> ReaderPool::acquire(std::int64_t offset) {
  const std::lock_guard lock(mutex_);
  auto found = std::find_if(idle_.begin(), idle_.end(), [&](const std::unique_ptr<Reader>& reader) {
    return reader->next_offset() == offset;
  });
  // One that stands elsewhere is worth more to its own caller than to this one, up to a limit.
  if (found == idle_.end() && idle_.size() >= idle_max) found = idle_.begin();
  if (found == idle_.end()) return make_();
  std::unique_ptr<Reader> reader = std::move(*found);
  idle_.erase(found);
  return reader;
}

void ReaderPool::put_back(std::unique_ptr<Reader> reader) {
  const std::lock_guard lock(mutex_);
  if (idle_.size() < idle_max) idle_.push_back(std::move(reader));
}

}  // namespace once::log
