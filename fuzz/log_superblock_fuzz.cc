// SPDX-License-Identifier: Apache-2.0
// A superblock of arbitrary bytes. The first byte says which of its copies get a right checksum.
// What is accepted can be updated, and an update that a crash cut in half still leaves one of both.
#include <cstdint>
#include <string>

#include "../tests/testing/memory_files.h"
#include "base/assert.h"
#include "base/crc32c.h"
#include "log/bytes.h"
#include "log/layout.h"
#include "log/superblock.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace once;
  using namespace once::log;
  if (size == 0) return 0;
  const std::string path = "d/superblock";
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  for (const std::size_t copy : {std::size_t{0}, std::size_t{4096}})
    if ((data[0] & (copy == 0 ? 1 : 2)) != 0 && bytes.size() >= copy + 64)
      put_u32(bytes.data() + copy + 60, crc32c({bytes.data() + copy, 60}));
  testing::MemoryFiles files;
  files.set_contents({{path, bytes}});
  const auto found = read_superblock(files, "d");
  (void)read_layout(files, "d");
  if (!found) {
    ONCE_ASSERT(found.error().tag == "corrupt" || found.error().tag == "version");
    return 0;
  }
  Superblock next = *found;
  ++next.generation;
  next.first_offset = 5;
  if (next.generation == 0) return 0;
  // The second write of the update fails.
  int writes = 0;
  files.refuse = [&](const std::string& call, const std::string&) -> Status {
    if (call == "write" && ++writes == 2) return fail(Remedy::recheck, "io", "half of it");
    return {};
  };
  ONCE_ASSERT(!update_superblock(files, "d", next));
  files.refuse = nullptr;
  ONCE_ASSERT(read_superblock(files, "d").value() == next);
  ONCE_ASSERT(update_superblock(files, "d", next).has_value());
  ONCE_ASSERT(read_superblock(files, "d").value() == next);
  return 0;
}
