// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a record batch of a Kafka client. What is accepted must be the same behind its
// place when it is stored, and decode as what it says of itself.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/crc32c.h"
#include "log/limits.h"
#include "log/raw_batch.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace once::log;
  // The first byte chooses whether the checksum is made right: that way the fuzzer gets deeper.
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if ((data[0] & 1) != 0 && bytes.size() >= batch_header_bytes)
    put_u32(bytes.data() + 17, once::crc32c(std::string_view(bytes).substr(batch_crc_from)));
  const auto batch = check_raw_batch(bytes);
  if (!batch) return 0;
  ONCE_ASSERT(batch->bytes.size() == bytes.size());
  ONCE_ASSERT(batch->header.count > 0 && batch->header.count <= batch_count_max);
  constexpr std::int64_t base_offset = 1'000'000;
  Buffer stored;
  put_raw_batch(stored, *batch, base_offset);
  ONCE_ASSERT(batch_crc_is_good(stored.view()));
  const auto header = decode_batch_header(stored.view());
  ONCE_ASSERT(header && header->base_offset == base_offset);
  ONCE_ASSERT(header->count == batch->header.count && header->bytes == bytes.size());
  ONCE_ASSERT(header->time_max_ms == batch->time_max_ms);
  ONCE_ASSERT(stored.view().substr(batch_header_bytes) ==
              std::string_view(bytes).substr(batch_header_bytes));
  if (header->is_compressed()) return 0;
  Deliveries decoded;
  ONCE_ASSERT(decode_batch(stored.view(), {9, 1, 100}, true, decoded).has_value());
  ONCE_ASSERT(decoded.deliveries.size() == header->count);
  const auto messages = messages_of(*batch);
  ONCE_ASSERT(messages && messages->size() == header->count);
  return 0;
}
