// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "log/producer_table.h"
#include "log/segment.h"
#include "log/superblock.h"

namespace once::log {

// Which files a partition has, before a message is read. Writers and readers ask here, so that
// both call the same things damage.
struct Layout {
  Superblock superblock;
  std::optional<Told> told;            // by the watermark
  std::vector<std::int64_t> segments;  // oldest first; empty: nothing was ever written
  std::vector<std::int64_t> deleted;   // retention gave them up, and a crash has left them behind

  // Everything below this address was durable.
  std::uint64_t durable_address() const;
};

// "missing": the partition was never made. "corrupt": something that must be there is not.
[[nodiscard]] Result<Layout> read_layout(Files& files, const std::string& directory);

// How far a reader may read, as the files tell it.
struct ReadableEnd {
  End durable;
  End frames;  // of all good frames: what the next writer will find
  std::uint32_t producers = 0;
};

// Without a writer, frames that the watermark does not know yet count as well: after a power cut it
// is old or lost, and what can be read then is on the disk. `has_writer` when its lock is held.
[[nodiscard]] Result<ReadableEnd> find_readable_end(Files& files, const std::string& directory,
                                                    const Layout& layout, bool has_writer);

Error lost_partition(const std::string& directory);

// Whether a segment whose first frame has this flaw may be a roll that a crash has interrupted.
bool may_be_unfinished(Flaw first_frame);

tl::unexpected<Error> corrupt_file(const std::string& path, std::int64_t position,
                                   std::string_view what);

// Applies one frame; the same for recovery, readers and verification.
[[nodiscard]] bool apply_frame(const FrameHeader& header, std::string_view body,
                               ProducerTable& table);

}  // namespace once::log
