// SPDX-License-Identifier: Apache-2.0
// Opens a partition whose segment is arbitrary bytes. The first byte says what else there is: a
// superblock or none, and whether checksums are made right first, so that the fuzzer gets past
// them. Whatever it is, opening must not crash, what can be opened can be read, written and opened
// again, and what was found the first time is found the second time.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "../tests/testing/memory_files.h"
#include "base/assert.h"
#include "base/crc32c.h"
#include "log/bytes.h"
#include "log/frame.h"
#include "log/partition.h"
#include "log/record_batch.h"
#include "log/superblock.h"
#include "log/verify.h"

namespace {

using namespace once;
using namespace once::log;

constexpr std::uint64_t log_id = 0x6f6e6365;
const std::string directory = "d/t/0";

class StillClock final : public Clock {
 public:
  std::int64_t now_ms() override { return 1; }
  std::int64_t ticks_ns() override { return 1; }
};

// Gives every frame that the bytes claim to have its right checksums, log and address.
void make_right(std::string& bytes) {
  std::uint64_t address = 0;
  std::size_t at = 0;
  while (at + frame_overhead_bytes <= bytes.size() && bytes.compare(at, 4, "ONCE") == 0) {
    char* frame = bytes.data() + at;
    const std::size_t body = get_u32(frame + 36);
    if (body > bytes.size() - at - frame_overhead_bytes) return;
    put_u64(frame + 8, log_id);
    put_u64(frame + 16, address);
    const auto kind = static_cast<FrameKind>(frame[5]);
    char* inner = frame + frame_header_bytes;
    if (kind == FrameKind::data && body >= batch_header_bytes)
      put_u32(inner + 17, crc32c({inner + batch_crc_from, body - batch_crc_from}));
    put_u32(frame + 80, crc32c({inner, body_crc_bytes(kind, body)}));
    put_u32(frame + 84, crc32c({frame, 84}));
    put_u32(frame + 88, 0xa5a5a5a5);
    put_frame_end(frame + frame_header_bytes + body);
    at += frame_overhead_bytes + body;
    address += frame_overhead_bytes + body;
  }
}

Result<std::vector<std::string>> read_all(Partition& partition) {
  std::vector<std::string> bodies;
  std::int64_t offset = partition.first_offset();
  while (offset < partition.end_offset()) {
    const ReadResult read = ONCE_TRY(partition.read(offset, 1000));
    ONCE_ASSERT(!read.deliveries.empty());
    for (const Delivery& delivery : read.deliveries) {
      ONCE_ASSERT(delivery.offset == offset);
      ++offset;
      bodies.emplace_back(delivery.body);
    }
    ONCE_ASSERT(read.end_offset == offset);
  }
  return bodies;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if ((data[0] & 1) != 0) make_right(bytes);
  testing::MemoryFiles files;
  if ((data[0] & 2) == 0)
    ONCE_ASSERT(create_superblock(files, directory, {log_id, 1, {}, 0}).has_value());
  std::map<std::string, std::string> contents = files.contents();
  contents[segment_path(directory, 0)] = bytes;
  if ((data[0] & 4) != 0) contents[directory + "/watermark"] = bytes;
  if ((data[0] & 8) != 0) contents[index_path(directory, 0)] = bytes;
  files.set_contents(contents);

  StillClock clock;
  PartitionOptions options;
  options.segment_bytes_max = 4096;
  std::uint64_t drawn = 100;
  options.random = [&] { return drawn += 2; };
  auto partition = Partition::open(files, clock, directory, options);
  if (!partition) {
    // Whoever refuses changes nothing.
    ONCE_ASSERT(!partition.error().text.empty());
    ONCE_ASSERT(files.contents() == contents);
    return 0;
  }
  const auto found = read_all(**partition);
  (void)verify_partition(files, directory);
  const auto stamp = (*partition)->enter("fuzz");
  if (!stamp || !found) return 0;
  const std::vector<Message> messages(1, Message{"id", "", "new", {}, 1});
  const auto ticket = (*partition)->stage(*stamp, messages);
  if (!ticket) return 0;
  ONCE_ASSERT((*partition)->sync().has_value());
  partition->reset();
  partition = Partition::open(files, clock, directory, options);
  ONCE_ASSERT(partition.has_value());
  auto again = read_all(**partition);
  ONCE_ASSERT(again.has_value() && again->size() == found->size() + 1);
  ONCE_ASSERT(again->back() == "new");
  again->pop_back();
  ONCE_ASSERT(*again == *found);
  return 0;
}
