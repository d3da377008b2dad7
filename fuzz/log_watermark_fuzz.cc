// SPDX-License-Identifier: Apache-2.0
// A watermark of arbitrary bytes. The first byte says which slots get a right checksum and the
// right log. Whatever it says, what is published after it is read back once both slots are written.
#include <cstdint>
#include <string>

#include "../tests/testing/memory_files.h"
#include "base/assert.h"
#include "base/crc32c.h"
#include "log/bytes.h"
#include "log/superblock.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace once;
  using namespace once::log;
  if (size == 0) return 0;
  constexpr std::uint64_t log_id = 0x6f6e6365;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  for (const std::size_t slot : {std::size_t{0}, std::size_t{512}}) {
    if ((data[0] & (slot == 0 ? 1 : 2)) == 0 || bytes.size() < slot + 48) continue;
    put_u64(bytes.data() + slot + 8, log_id);
    put_u32(bytes.data() + slot + 44, crc32c({bytes.data() + slot, 44}));
  }
  testing::MemoryFiles files;
  files.set_contents({{"d/watermark", bytes}});
  (void)Watermark::open_to_read(files, "d", log_id).value()->read();
  ONCE_ASSERT(!Watermark::open_to_read(files, "d", log_id + 1).value()->read() ||
              (data[0] & 3) != 3);
  const auto writer = Watermark::open_to_write(files, "d", log_id).value();
  const Told told{{1000, 10}, (data[0] & 4) != 0};
  ONCE_ASSERT(writer->publish(told).has_value());
  ONCE_ASSERT(writer->publish(told).has_value());
  const auto reader = Watermark::open_to_read(files, "d", log_id).value();
  ONCE_ASSERT(reader->read() == told);
  const Told idle{told.end, false};
  ONCE_ASSERT(writer->publish(idle).has_value());
  ONCE_ASSERT(reader->read() == idle);
  ONCE_ASSERT(writer->publish({{2000, 20}, false}).has_value());
  ONCE_ASSERT(reader->read()->end.offset == 20);
  return 0;
}
