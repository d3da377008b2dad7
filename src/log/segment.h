// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "log/bytes.h"
#include "log/frame.h"

namespace once::log {

// The file of a segment is named after the offset of its first message, in 20 digits.
std::string segment_path(const std::string& directory, std::int64_t base_offset);
std::string index_path(const std::string& directory, std::int64_t base_offset);

// Whether the log makes files of this name in the directory of a partition.
bool is_partition_file(std::string_view name);

// Files that a repair has set aside end with this, and perhaps a number.
inline constexpr std::string_view damaged_suffix = ".damaged";
bool is_set_aside(std::string_view name);

// The base offsets of the segments in a directory, sorted. Other files are not looked at.
[[nodiscard]] Result<std::vector<std::int64_t>> list_segments(Files& files,
                                                              const std::string& directory);

// What the next frame of a file must say of itself.
struct Expected {
  std::uint64_t log_id = 0;
  std::uint64_t address = 0;
  std::int64_t offset = 0;
};

// Why there is no good frame at a place.
enum class Flaw : std::uint8_t {
  none,
  end,       // the file ends exactly here
  missing,   // the file ends inside the frame
  damaged,   // the header's checksum or marks are wrong
  body,      // the header is good, the body is not
  version,   // a good header of another version
  foreign,   // a good header of another log
  misplaced  // a good header of this log that belongs elsewhere
};

std::string_view name_of(Flaw flaw);

struct Found {
  Flaw flaw = Flaw::none;
  std::int64_t position = 0;  // in the file
  bool headed = false;        // the header is good, whatever the rest is
  FrameHeader header;
  std::string_view body;  // only with Depth::bodies; valid until the next step
};

// How much of each frame is read and checked.
enum class Depth : std::uint8_t {
  headers,  // the header, and that the file has the last byte
  heads,    // also what the frame's own checksum covers of a record batch: all but its records
  bodies,   // everything
};

// Goes through the frames of one file in order and checks that each continues the one before.
class FrameWalker {
 public:
  FrameWalker(File& file, std::int64_t position, const Expected& expected, Depth depth)
      : file_(file), position_(position), expected_(expected), depth_(depth) {}

  // The frame at the present place; moves on only if it is good.
  [[nodiscard]] Result<Found> next();

  std::int64_t position() const { return position_; }
  const Expected& expected() const { return expected_; }

 private:
  // At most `count` bytes from `position`; fewer only at the end of the file.
  [[nodiscard]] Result<std::string_view> bytes_at(std::int64_t position, std::size_t count);
  [[nodiscard]] Result<Flaw> check_whole(Found& found);
  [[nodiscard]] Result<Flaw> check_edges(const Found& found);

  File& file_;
  std::int64_t position_;
  Expected expected_;
  Depth depth_;
  Buffer buffer_;
  std::int64_t buffer_begin_ = 0;
};

// The first frame of a segment: always a snapshot.
[[nodiscard]] Result<Found> read_first_frame(File& file, std::uint64_t log_id,
                                             std::int64_t base_offset);

// Whether there is nothing but zeros from a place to the end of the file.
[[nodiscard]] Result<bool> is_zero_from(File& file, std::int64_t position);

inline constexpr std::int64_t no_time_ms = std::numeric_limits<std::int64_t>::min();

// Where frames are in a segment, by offset and by time, every few kilobytes. A cache: its file has
// a checksum, and whoever finds it bad or missing makes it again from the segment.
struct SegmentIndex {
  struct Entry {
    std::int64_t offset = 0;                   // of the first message in the frame
    std::int64_t position = 0;                 // of the frame in the file
    std::int64_t time_before_ms = no_time_ms;  // the largest time of all messages before it

    bool operator==(const Entry&) const = default;
  };
  std::uint64_t log_id = 0;
  std::int64_t base_offset = 0;
  std::int64_t end_offset = 0;
  std::int64_t bytes = 0;                 // of the segment that was indexed
  std::int64_t time_max_ms = no_time_ms;  // of all its messages
  std::vector<Entry> entries;

  // To be called for each frame in order.
  void add(const FrameHeader& header, std::int64_t position);
  // Where to start looking for an offset or a time: a frame at or before it.
  Entry before(std::int64_t offset) const;
  Entry before_time(std::int64_t time_ms) const;

  std::string encode() const;
  static std::optional<SegmentIndex> decode(std::string_view bytes);

  bool operator==(const SegmentIndex&) const = default;
};

// The index from its file, if that is good and belongs to a segment of this size.
std::optional<SegmentIndex> load_index(Files& files, const std::string& directory,
                                       std::uint64_t log_id, std::int64_t base_offset,
                                       std::int64_t segment_bytes);
// The index made again from the headers of the segment, as far as they are good.
[[nodiscard]] Result<SegmentIndex> make_index(File& segment, std::uint64_t log_id,
                                              std::int64_t base_offset);
// Writes it without a sync: it is only a cache.
[[nodiscard]] Status save_index(Files& files, const std::string& directory,
                                const SegmentIndex& index);

}  // namespace once::log
