// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "log/frame.h"
#include "log/producer_table.h"
#include "log/segment.h"
#include "log/superblock.h"

namespace once::log {

// The last segment of a log: the one that is written.
struct Tail {
  std::unique_ptr<File> file;
  std::int64_t base_offset = 0;
  std::uint64_t base_address = 0;
  std::int64_t position = 0;        // where the next frame goes
  std::int64_t snapshot_bytes = 0;  // of the frame at its start
  std::int64_t reserved_bytes = 0;  // the size of the file: room that is ours on the disk
  SegmentIndex index;

  std::uint64_t address() const { return base_address + static_cast<std::uint64_t>(position); }
};

struct SealedSegment {
  std::int64_t base_offset = 0;
  std::int64_t bytes = 0;
  std::int64_t time_max_ms = 0;
};

struct Recovered {
  Superblock superblock;
  std::vector<SealedSegment> sealed;  // oldest first
  Tail tail;
  ProducerTable table;
  End end;
  std::int64_t cut_bytes = 0;  // of a torn tail
};

struct RecoveryOptions {
  std::uint64_t new_log_id = 0;  // for a partition that has to be made
  bool must_exist = false;       // it was made before: that it is missing is damage
};

// Brings a partition into a state from which it can be written: makes it when it is new, cuts a
// torn tail, makes durable what is there. Reads the last segment whole and of the others only the
// first frame. Data that was durable is never cut: damage below the watermark is an error with the
// tag "corrupt" that names file and byte, and nothing on disk is changed then.
[[nodiscard]] Result<Recovered> recover(Files& files, const std::string& directory,
                                        const RecoveryOptions& options);

// Makes a segment that starts with this table, durable with its name. Also used for a roll. Never
// replaces a file. When the disk is full, nothing is left behind.
[[nodiscard]] Result<Tail> create_segment(Files& files, const std::string& directory,
                                          std::uint64_t log_id, const End& begin,
                                          const ProducerTable& table, std::int64_t reserve_bytes);

}  // namespace once::log
