// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
#include <once/result.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "log/producer_table.h"
#include "log/segment.h"
#include "log/superblock.h"

namespace once::log {

// Messages of one partition in order. The views point into `memory`.
struct ReadResult {
  std::vector<Delivery> deliveries;
  std::int64_t end_offset = 0;  // where to read next
  std::shared_ptr<const void> memory;
};

// One record batch as it lies in a segment file: the bytes that a Kafka client understands.
struct StoredBatch {
  std::int64_t base_offset = 0;
  std::uint32_t count = 0;    // of messages; control frames have no batches
  std::int64_t position = 0;  // in the file
  std::uint32_t bytes = 0;

  bool operator==(const StoredBatch&) const = default;
};

// Consecutive record batches of one file. Between two of them lie the end of one frame and the
// header of the next. The file stays readable as long as this lives, even if retention deletes it.
struct StoredBatches {
  std::shared_ptr<File> file;  // null when there are none
  std::vector<StoredBatch> batches;
  std::size_t bytes = 0;        // of the batches
  std::int64_t end_offset = 0;  // where to go on
};

// The same in memory; the views point into `memory`.
struct LoadedBatches {
  std::vector<std::string_view> batches;
  std::shared_ptr<const void> memory;
};

// Reads located batches with one call and checks all their bytes. "corrupt": the disk has changed.
[[nodiscard]] Result<LoadedBatches> load(const StoredBatches& stored);

// Reads the segments of one partition, in the process that writes it or in another. It only reads
// below the durable end that it is given. Opens its own files, so it needs no lock against the
// writer; used by one thread at a time.
class Reader {
 public:
  Reader(Files& files, std::string directory, std::uint64_t log_id)
      : files_(files), directory_(std::move(directory)), log_id_(log_id) {}

  // About `bytes_max` bytes of whole messages from `offset` on, at least one message if there is
  // one. An offset that retention deleted is "gone", damage is "corrupt".
  [[nodiscard]] Result<ReadResult> read(std::int64_t offset, std::size_t bytes_max,
                                        const End& durable);

  // The batches from the one with message `offset` on, as they are on disk: whole batches of
  // together at most `bytes_max` bytes, but always one if there is one. They end with their file,
  // so the next call may give more. Everything is checked but what a batch's own checksum covers,
  // which is left to the client or to `load`. Errors as in `read`.
  [[nodiscard]] Result<StoredBatches> locate(std::int64_t offset, std::size_t bytes_max,
                                             const End& durable);

  // The oldest message there is, as the superblock says; "corrupt" when it is not there.
  [[nodiscard]] Result<std::int64_t> first_offset();

  // The first message with this time or a later one; the durable end when there is none.
  [[nodiscard]] Result<std::int64_t> offset_at(std::int64_t time_ms, const End& durable);

  // Where a producer's messages are, found by their sequences in the headers of all frames, in one
  // pass; in the order of sequences. What retention has deleted is missing.
  [[nodiscard]] Result<std::vector<Placed>> find(std::uint64_t producer, Interval sequences,
                                                 const End& durable);

  // The offset from which it reads on without searching.
  std::int64_t next_offset() const { return place_.offset; }

 private:
  struct Place {
    std::int64_t position = 0;
    std::int64_t offset = 0;
  };
  struct Chunk;
  struct Search;

  [[nodiscard]] Status open_segment(std::int64_t base_offset);
  [[nodiscard]] Status make_ready_to_search(const End& durable);
  [[nodiscard]] Result<bool> open_next_segment(std::int64_t offset);
  [[nodiscard]] Status go_to(std::int64_t offset, const End& durable);
  [[nodiscard]] Status check_offset(std::int64_t offset, const End& durable) const;
  [[nodiscard]] Status go_on_in_next_segment();
  [[nodiscard]] Status locate_here(StoredBatches& into, std::int64_t offset, std::size_t bytes_max,
                                   const End& durable);
  [[nodiscard]] Status fill(Chunk& chunk, std::int64_t offset, const End& durable);
  [[nodiscard]] Status find_in(std::int64_t segment, Place from, Search& search);
  Expected expected_at(const Place& place) const;
  tl::unexpected<Error> gone(std::int64_t offset) const;
  tl::unexpected<Error> corrupt(std::int64_t position, std::string_view what) const;

  Files& files_;
  std::string directory_;
  std::uint64_t log_id_;
  std::int64_t first_offset_ = 0;
  std::vector<std::int64_t> segments_;
  // The segment that is open, and the frame where the last read ended.
  std::shared_ptr<File> file_;
  std::int64_t base_offset_ = -1;
  std::uint64_t base_address_ = 0;
  std::optional<SegmentIndex> index_;
  Place place_;
  // Where `find` was last lucky.
  std::optional<std::pair<std::int64_t, Place>> last_found_;
};

}  // namespace once::log
