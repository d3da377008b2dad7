// SPDX-License-Identifier: Apache-2.0
// A file `topic` of arbitrary bytes. With an odd first byte its checksum is made right first. What
// is accepted is within the limits, can be written again and says the same then.
#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <string>

#include "../tests/testing/memory_files.h"
#include "base/assert.h"
#include "base/crc32c.h"
#include "log/limits.h"
#include "log/topic.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace once;
  using namespace once::log;
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if ((data[0] & 1) != 0) {
    std::string line = bytes.substr(0, bytes.find('\n'));
    line += '\n';
    bytes = fmt::format("{}crc32c {:08x}\n", line, crc32c(line));
  }
  testing::MemoryFiles files;
  files.set_contents({{"d/t/topic", bytes}});
  const auto found = read_topic(files, "d", "t");
  if (!found) {
    ONCE_ASSERT(found.error().tag == "corrupt" || found.error().tag == "version");
    return 0;
  }
  ONCE_ASSERT(found->options.partitions >= 1 && found->options.partitions <= partitions_max);
  ONCE_ASSERT(found->options.segment_bytes_max >= segment_bytes_least);
  ONCE_ASSERT(found->options.retention_ms >= -1 && found->options.retention_bytes >= -1);
  ONCE_ASSERT(found->id.empty() || found->id.size() == 32);
  // Nothing is in the partitions, which only a topic that was never written may say.
  ONCE_ASSERT(describe_topic(files, "d", "t").has_value() != found->is_written);
  ONCE_ASSERT(mark_written(files, "d", "t", *found, [] { return 7u; }).has_value());
  const auto again = read_topic(files, "d", "t");
  ONCE_ASSERT(again && again->options == found->options && again->is_written);
  ONCE_ASSERT(again->id == found->id || found->id.empty());
  return 0;
}
