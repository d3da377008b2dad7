// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
#include <once/result.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "log/bytes.h"

namespace once::log {

// Everything in a segment file is a frame: header, body, end mark. docs/log_format.md has the
// table of its bytes. Header and body have a checksum each, so that a torn body does not make its
// length doubtful; the header's covers the body's. The body of a data frame begins with the head of
// a record batch, in which is the batch's own checksum of the rest: there the body's checksum ends,
// so that each byte is summed once.

enum class FrameKind : std::uint8_t {
  data = 1,      // body: one record batch
  enter = 2,     // body: the name of a producer; its id and epoch are in the stamp
  snapshot = 3,  // body: the producer table; the first frame of every segment
};

inline constexpr std::size_t frame_header_bytes = 92;
inline constexpr std::size_t frame_end_bytes = 4;
inline constexpr std::size_t frame_overhead_bytes = frame_header_bytes + frame_end_bytes;
inline constexpr std::uint8_t format_version = 1;
// Frames whose body an older program cannot read have a later version, so that it says so.
inline constexpr std::uint8_t compressed_version = 2;  // of data frames whose batch is compressed
inline constexpr std::uint8_t snapshot_version = 3;    // of snapshots we write; 1 and 2 are read
inline constexpr std::int64_t sector_bytes = 512;      // what a disk writes whole or not at all

struct FrameHeader {
  FrameKind kind = FrameKind::data;
  std::uint8_t version = format_version;
  std::uint64_t log_id = 0;      // of the partition, random: foreign frames are found
  std::uint64_t address = 0;     // of this frame: bytes since the log began, over all segments
  std::int64_t base_offset = 0;  // of the first record; of a control frame, of the next record
  std::uint32_t record_count = 0;
  std::uint32_t body_bytes = 0;
  Stamp stamp;
  std::uint32_t zero_sectors = 0;  // aligned sectors inside the body that are zero on purpose
  std::uint64_t synced_upto = 0;   // everything below this address was durable before this group
  std::int64_t time_max_ms = 0;
  std::uint32_t body_crc = 0;

  std::uint64_t frame_bytes() const { return frame_overhead_bytes + body_bytes; }
  std::uint64_t end_address() const { return address + frame_bytes(); }
  std::int64_t end_offset() const { return base_offset + record_count; }

  bool operator==(const FrameHeader&) const = default;
};

// Why bytes are not the header of a frame.
enum class HeaderFault : std::uint8_t { none, damaged, version, limits };

struct HeaderAnswer {
  HeaderFault fault = HeaderFault::none;
  FrameHeader header;
};

void encode_frame_header(char* at, const FrameHeader& header);
// `bytes` has at least frame_header_bytes. Any fault but `damaged` has a correct checksum.
HeaderAnswer decode_frame_header(std::string_view bytes);

void put_frame_end(char* at);
// How many bytes of a body its checksum covers.
std::size_t body_crc_bytes(FrameKind kind, std::size_t body_bytes);

// Body and end mark of a frame whose header is good; `frame` has all its bytes.
bool frame_body_is_good(const FrameHeader& header, std::string_view frame);

// Finishes a frame in place: `frame` has its body, with a batch's checksum in it, at
// frame_header_bytes and room for the end mark; `file_position` is where it goes in its file. Sets
// body_bytes, body_crc and zero_sectors.
void seal_frame(char* frame, std::size_t frame_bytes, std::int64_t file_position,
                FrameHeader& header);

// How many aligned sectors that lie wholly inside the body are zero.
std::uint32_t count_zero_sectors(std::string_view frame, std::int64_t file_position);

// Whether a piece of [file_position, +bytes) that one sector of the disk holds is all zero: that
// piece was never written. Headers have no such piece, wherever a sector ends inside them.
bool has_zero_piece(std::string_view bytes, std::int64_t file_position);

bool is_zero(std::string_view bytes);

}  // namespace once::log
