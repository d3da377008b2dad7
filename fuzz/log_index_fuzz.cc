// SPDX-License-Identifier: Apache-2.0
// An index of arbitrary bytes beside a good segment. With an odd first byte it is made to belong to
// that segment. A bad index may cost time or an error, but never a message or a wrong one.
#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "../tests/testing/memory_files.h"
#include "base/assert.h"
#include "base/crc32c.h"
#include "log/bytes.h"
#include "log/partition.h"
#include "log/segment.h"

namespace {

using namespace once;
using namespace once::log;

constexpr int message_count = 40;
const std::string directory = "d/t/0";

class StillClock final : public Clock {
 public:
  std::int64_t now_ms() override { return 1; }
  std::int64_t ticks_ns() override { return 1; }
};

PartitionOptions options() {
  PartitionOptions chosen;
  chosen.segment_bytes_max = 4096;
  chosen.random = [] { return std::uint64_t{7}; };
  return chosen;
}

std::map<std::string, std::string> small_log() {
  testing::MemoryFiles files;
  StillClock clock;
  auto partition = Partition::open(files, clock, directory, options()).value();
  for (int i = 0; i < message_count; ++i) {
    const Message message{fmt::format("m{}", i), "", std::string(300, 'x'), {}, 100 + i};
    ONCE_ASSERT(partition->stage({}, std::span(&message, 1)).has_value());
    ONCE_ASSERT(partition->sync().has_value());
  }
  ONCE_ASSERT(partition->close().has_value());
  return files.contents();
}

void make_right(std::string& index, const std::string& segment) {
  if (index.size() < 60) return;
  char* at = index.data();
  put_u64(at, 0x4f4e43452d494458);
  put_u32(at + 8, 1);
  put_u32(at + 12, static_cast<std::uint32_t>((index.size() - 60) / 24));
  index.resize(60 + (index.size() - 60) / 24 * 24);
  put_u64(at + 16, 7);
  put_i64(at + 24, 0);
  put_i64(at + 40, static_cast<std::int64_t>(segment.size()));
  put_u32(at + index.size() - 4, crc32c({at, index.size() - 4}));
}

// As many messages as can be read, in order.
std::int64_t read_from(Partition& partition, std::int64_t offset) {
  while (offset < partition.end_offset()) {
    const auto read = partition.read(offset, 1000);
    if (!read) break;
    for (const Delivery& delivery : read->deliveries) {
      ONCE_ASSERT(delivery.offset == offset && delivery.id == fmt::format("m{}", offset));
      ++offset;
    }
  }
  return offset;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::map<std::string, std::string> good = small_log();
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if ((data[0] & 1) != 0) make_right(bytes, good.at(segment_path(directory, 0)));
  if (const auto index = SegmentIndex::decode(bytes)) {
    ONCE_ASSERT(index->encode() == bytes);
    (void)index->before(static_cast<std::int64_t>(size));
    (void)index->before_time(static_cast<std::int64_t>(size));
  }
  std::map<std::string, std::string> contents = good;
  contents[index_path(directory, 0)] = bytes;
  testing::MemoryFiles files;
  files.set_contents(contents);
  StillClock clock;
  auto partition = Partition::open(files, clock, directory, options());
  ONCE_ASSERT(partition.has_value() && (*partition)->end_offset() == message_count);
  // From the front no index is needed.
  ONCE_ASSERT(read_from(**partition, 0) == message_count || (data[0] & 1) != 0);
  for (const std::int64_t offset : {5, 1, 9}) (void)read_from(**partition, offset);
  if (const auto offset = (*partition)->offset_at(105)) ONCE_ASSERT(*offset <= message_count);
  return 0;
}
