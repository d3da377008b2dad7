// SPDX-License-Identifier: Apache-2.0
#include "log/frame.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/crc32c.h"
#include "log/limits.h"
#include "log/record_batch.h"

namespace once::log {
namespace {

constexpr std::uint32_t frame_magic = 0x4f4e4345;  // "ONCE"
// The last bytes of a header and of a frame. They are never zero, and no single flipped bit makes
// them zero, so a zero piece at the edge of a sector always means that the sector is missing.
constexpr std::uint32_t end_mark = 0xa5a5a5a5;

constexpr std::size_t version_at = 4;
constexpr std::size_t kind_at = 5;
constexpr std::size_t reserved_at = 6;
constexpr std::size_t log_id_at = 8;
constexpr std::size_t address_at = 16;
constexpr std::size_t base_offset_at = 24;
constexpr std::size_t record_count_at = 32;
constexpr std::size_t body_bytes_at = 36;
constexpr std::size_t producer_at = 40;
constexpr std::size_t epoch_at = 48;
constexpr std::size_t zero_sectors_at = 52;
constexpr std::size_t sequence_at = 56;
constexpr std::size_t synced_upto_at = 64;
constexpr std::size_t time_max_at = 72;
constexpr std::size_t body_crc_at = 80;
constexpr std::size_t header_crc_at = 84;
constexpr std::size_t mark_at = 88;
static_assert(mark_at + 4 == frame_header_bytes);

bool is_within_limits(const FrameHeader& header) {
  constexpr auto address_max = std::uint64_t{1} << 62;
  constexpr auto offset_max = std::int64_t{1} << 62;
  if (header.body_bytes > body_bytes_max || header.address > address_max) return false;
  if (header.base_offset < 0 || header.base_offset > offset_max) return false;
  if (header.synced_upto > header.address) return false;
  if (header.stamp.sequence > std::numeric_limits<std::uint64_t>::max() - header.record_count)
    return false;
  switch (header.kind) {
    case FrameKind::data: return header.record_count > 0;
    case FrameKind::enter: return header.record_count == 0 && header.stamp.producer != 0;
    case FrameKind::snapshot: return header.record_count == 0;
  }
  return false;
}

bool is_known_version(const FrameHeader& header) {
  if (header.kind == FrameKind::data)
    return header.version == format_version || header.version == compressed_version;
  if (header.kind == FrameKind::snapshot)
    return header.version >= format_version && header.version <= snapshot_version;
  return header.version == format_version;
}

}  // namespace

bool is_zero(std::string_view bytes) {
  return bytes.empty() ||
         (bytes.front() == 0 && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

void encode_frame_header(char* at, const FrameHeader& header) {
  put_u32(at, frame_magic);
  put_u8(at + version_at, header.version);
  put_u8(at + kind_at, static_cast<std::uint8_t>(header.kind));
  put_u16(at + reserved_at, 0);
  put_u64(at + log_id_at, header.log_id);
  put_u64(at + address_at, header.address);
  put_i64(at + base_offset_at, header.base_offset);
  put_u32(at + record_count_at, header.record_count);
  put_u32(at + body_bytes_at, header.body_bytes);
  put_u64(at + producer_at, header.stamp.producer);
  put_u32(at + epoch_at, header.stamp.epoch);
  put_u32(at + zero_sectors_at, header.zero_sectors);
  put_u64(at + sequence_at, header.stamp.sequence);
  put_u64(at + synced_upto_at, header.synced_upto);
  put_i64(at + time_max_at, header.time_max_ms);
  put_u32(at + body_crc_at, header.body_crc);
  put_u32(at + header_crc_at, crc32c({at, header_crc_at}));
  put_u32(at + mark_at, end_mark);
}

HeaderAnswer decode_frame_header(std::string_view bytes) {
  const char* at = bytes.data();
  HeaderAnswer answer;
  answer.fault = HeaderFault::damaged;
  if (bytes.size() < frame_header_bytes || get_u32(at) != frame_magic) return answer;
  if (get_u32(at + mark_at) != end_mark) return answer;
  if (get_u32(at + header_crc_at) != crc32c({at, header_crc_at})) return answer;
  FrameHeader& header = answer.header;
  header.version = get_u8(at + version_at);
  header.kind = static_cast<FrameKind>(get_u8(at + kind_at));
  header.log_id = get_u64(at + log_id_at);
  header.address = get_u64(at + address_at);
  header.base_offset = get_i64(at + base_offset_at);
  header.record_count = get_u32(at + record_count_at);
  header.body_bytes = get_u32(at + body_bytes_at);
  header.stamp.producer = get_u64(at + producer_at);
  header.stamp.epoch = get_u32(at + epoch_at);
  header.zero_sectors = get_u32(at + zero_sectors_at);
  header.stamp.sequence = get_u64(at + sequence_at);
  header.synced_upto = get_u64(at + synced_upto_at);
  header.time_max_ms = get_i64(at + time_max_at);
  header.body_crc = get_u32(at + body_crc_at);
  if (!is_known_version(header) || get_u16(at + reserved_at) != 0)
    answer.fault = HeaderFault::version;
  else
    answer.fault = is_within_limits(header) ? HeaderFault::none : HeaderFault::limits;
  return answer;
}

void put_frame_end(char* at) { put_u32(at, end_mark); }

std::size_t body_crc_bytes(FrameKind kind, std::size_t body_bytes) {
  return kind == FrameKind::data ? std::min(body_bytes, batch_crc_from) : body_bytes;
}

bool frame_body_is_good(const FrameHeader& header, std::string_view frame) {
  if (frame.size() < header.frame_bytes()) return false;
  const std::string_view body = frame.substr(frame_header_bytes, header.body_bytes);
  if (get_u32(body.data() + body.size()) != end_mark) return false;
  const std::size_t covered = body_crc_bytes(header.kind, body.size());
  if (crc32c(body.substr(0, covered)) != header.body_crc) return false;
  return header.kind != FrameKind::data || batch_crc_is_good(body);
}

std::uint32_t count_zero_sectors(std::string_view frame, std::int64_t file_position) {
  if (frame.size() < frame_overhead_bytes) return 0;
  std::uint32_t count = 0;
  const std::int64_t body_begin = file_position + static_cast<std::int64_t>(frame_header_bytes);
  const std::int64_t body_end =
      file_position + static_cast<std::int64_t>(frame.size() - frame_end_bytes);
  std::int64_t sector = (body_begin + sector_bytes - 1) / sector_bytes * sector_bytes;
  for (; sector + sector_bytes <= body_end; sector += sector_bytes) {
    const auto from = static_cast<std::size_t>(sector - file_position);
    if (is_zero(frame.substr(from, static_cast<std::size_t>(sector_bytes)))) ++count;
  }
  return count;
}

bool has_zero_piece(std::string_view bytes, std::int64_t file_position) {
  while (!bytes.empty()) {
    const auto in_sector = static_cast<std::size_t>(sector_bytes - file_position % sector_bytes);
    const std::string_view piece = bytes.substr(0, std::min(in_sector, bytes.size()));
    if (is_zero(piece)) return true;
    bytes.remove_prefix(piece.size());
    file_position += static_cast<std::int64_t>(piece.size());
  }
  return false;
}

void seal_frame(char* frame, std::size_t frame_bytes, std::int64_t file_position,
                FrameHeader& header) {
  const std::size_t body_bytes = frame_bytes - frame_overhead_bytes;
  header.body_bytes = static_cast<std::uint32_t>(body_bytes);
  header.body_crc = crc32c({frame + frame_header_bytes, body_crc_bytes(header.kind, body_bytes)});
  put_frame_end(frame + frame_header_bytes + body_bytes);
  header.zero_sectors = count_zero_sectors({frame, frame_bytes}, file_position);
  encode_frame_header(frame, header);
}

}  // namespace once::log
