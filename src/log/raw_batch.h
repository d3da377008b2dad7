// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
#include <once/result.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "log/bytes.h"
#include "log/record_batch.h"

namespace once::log {

// A record batch as a Kafka client sent it, checked and not yet in a log. Refers to the bytes.
struct RawBatch {
  std::string_view bytes;
  BatchHeader header;
  // Of its messages. A batch that is not compressed and says otherwise of itself is corrected.
  std::int64_t time_max_ms = 0;

  bool has_producer() const { return header.producer > 0; }
};

// Checks that `bytes` are one batch that can be stored as it is: length, version, checksum,
// attributes, counts, limits and producer fields; of one that is not compressed also every record.
// Compressed records are not opened: neither their number nor their content is checked, and a
// consumer that cannot decompress them is the first to notice. Tags: "checksum" (retry), "invalid",
// "unsupported" and "too_large" (park).
[[nodiscard]] Result<RawBatch> check_raw_batch(std::string_view bytes);

// The batch at the end of a buffer, with its place in the log; the records stay as they came.
void put_raw_batch(Buffer& into, const RawBatch& batch, std::int64_t base_offset);

// Its messages. "compressed" when they cannot be opened.
[[nodiscard]] Result<std::vector<Message>> messages_of(const RawBatch& batch);

}  // namespace once::log
