// SPDX-License-Identifier: Apache-2.0
#include "log/segment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <span>

#include "base/crc32c.h"
#include "log/limits.h"

namespace once::log {
namespace {

constexpr std::size_t name_digits = 20;
constexpr std::string_view segment_suffix = ".log";
constexpr std::string_view index_suffix = ".index";
constexpr std::size_t walk_bytes = 16 << 10;
constexpr std::uint64_t index_magic = 0x4f4e43452d494458;  // "ONCE-IDX"
constexpr std::size_t index_header_bytes = 56;
constexpr std::size_t index_entry_bytes = 24;

std::optional<std::int64_t> base_offset_in(std::string_view name, std::string_view suffix) {
  if (name.size() != name_digits + suffix.size() || !name.ends_with(suffix)) return std::nullopt;
  std::int64_t offset = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name_digits, offset);
  if (error != std::errc() || end != name.data() + name_digits || offset < 0) return std::nullopt;
  return offset;
}

// Frames follow each other in a segment, and so do the messages in them.
bool is_possible(const SegmentIndex& index) {
  if (index.base_offset < 0 || index.end_offset < index.base_offset || index.bytes < 0)
    return false;
  SegmentIndex::Entry last{index.base_offset, -1, no_time_ms};
  for (const SegmentIndex::Entry& entry : index.entries) {
    if (entry.offset < last.offset || entry.offset > index.end_offset) return false;
    if (entry.position <= last.position || entry.position >= index.bytes) return false;
    last = entry;
  }
  return true;
}

}  // namespace

std::string segment_path(const std::string& directory, std::int64_t base_offset) {
  return fmt::format("{}/{:020}.log", directory, base_offset);
}

std::string index_path(const std::string& directory, std::int64_t base_offset) {
  return fmt::format("{}/{:020}.index", directory, base_offset);
}

bool is_set_aside(std::string_view name) {
  const std::size_t suffix = name.rfind(damaged_suffix);
  return suffix != name.npos &&
         name.find_first_not_of("0123456789", suffix + damaged_suffix.size()) == name.npos;
}

bool is_partition_file(std::string_view name) {
  if (is_set_aside(name)) return is_partition_file(name.substr(0, name.rfind(damaged_suffix)));
  return name == "superblock" || name == "superblock.new" || name == "watermark" ||
         base_offset_in(name, segment_suffix) || base_offset_in(name, index_suffix);
}

Result<std::vector<std::int64_t>> list_segments(Files& files, const std::string& directory) {
  std::vector<std::int64_t> offsets;
  for (const std::string& name : ONCE_TRY(files.list(directory)))
    if (const auto offset = base_offset_in(name, segment_suffix)) offsets.push_back(*offset);
  std::sort(offsets.begin(), offsets.end());
  return offsets;
}

std::string_view name_of(Flaw flaw) {
  switch (flaw) {
    case Flaw::none: return "good";
    case Flaw::end: return "the end of the file";
    case Flaw::missing: return "cut off";
    case Flaw::damaged: return "damaged in its header";
    case Flaw::body: return "damaged in its body";
    case Flaw::version: return "of an unknown version";
    case Flaw::foreign: return "from another log";
    case Flaw::misplaced: return "from another place of this log";
  }
  return "?";
}

Result<std::string_view> FrameWalker::bytes_at(std::int64_t position, std::size_t count) {
  const auto held = static_cast<std::int64_t>(buffer_.size());
  if (position < buffer_begin_ ||
      position + static_cast<std::int64_t>(count) > buffer_begin_ + held) {
    buffer_.clear();
    const std::size_t wanted = std::max(count, walk_bytes);
    char* into = buffer_.grow(wanted);
    buffer_begin_ = position;
    buffer_.shrink_to(ONCE_TRY(file_.read_at(position, {into, wanted})));
  }
  const auto from = static_cast<std::size_t>(position - buffer_begin_);
  return buffer_.view(from, std::min(count, buffer_.size() - from));
}

Result<Found> FrameWalker::next() {
  Found found;
  found.position = position_;
  std::string_view bytes = ONCE_TRY(bytes_at(position_, frame_header_bytes));
  if (bytes.size() < frame_header_bytes) {
    found.flaw = bytes.empty() ? Flaw::end : Flaw::missing;
    return found;
  }
  const HeaderAnswer answer = decode_frame_header(bytes);
  found.header = answer.header;
  found.headed = answer.fault == HeaderFault::none;
  if (answer.fault == HeaderFault::damaged)
    found.flaw = Flaw::damaged;
  else if (answer.fault == HeaderFault::version)
    found.flaw = Flaw::version;
  else if (answer.header.log_id != expected_.log_id)
    found.flaw = Flaw::foreign;
  else if (answer.fault == HeaderFault::limits || answer.header.address != expected_.address ||
           answer.header.base_offset != expected_.offset)
    found.flaw = Flaw::misplaced;
  if (found.flaw != Flaw::none) return found;

  found.flaw = ONCE_TRY(depth_ == Depth::bodies ? check_whole(found) : check_edges(found));
  if (found.flaw != Flaw::none) return found;
  position_ += static_cast<std::int64_t>(found.header.frame_bytes());
  expected_.address = found.header.end_address();
  expected_.offset = found.header.end_offset();
  return found;
}

Result<Flaw> FrameWalker::check_whole(Found& found) {
  const auto frame_bytes = static_cast<std::size_t>(found.header.frame_bytes());
  const std::string_view bytes = ONCE_TRY(bytes_at(position_, frame_bytes));
  if (bytes.size() < frame_bytes) return Flaw::missing;
  if (!frame_body_is_good(found.header, bytes)) return Flaw::body;
  found.body = bytes.substr(frame_header_bytes, found.header.body_bytes);
  return Flaw::none;
}

// Without the records, which may be much more than all else.
Result<Flaw> FrameWalker::check_edges(const Found& found) {
  const FrameHeader& header = found.header;
  if (depth_ == Depth::heads && header.kind == FrameKind::data) {
    const std::size_t covered = body_crc_bytes(header.kind, header.body_bytes);
    const auto begin = position_ + static_cast<std::int64_t>(frame_header_bytes);
    const std::string_view head = ONCE_TRY(bytes_at(begin, covered));
    if (head.size() < covered) return Flaw::missing;
    if (crc32c(head) != header.body_crc) return Flaw::body;
  }
  const auto last = position_ + static_cast<std::int64_t>(header.frame_bytes()) - 1;
  return ONCE_TRY(bytes_at(last, 1)).empty() ? Flaw::missing : Flaw::none;
}

Result<bool> is_zero_from(File& file, std::int64_t position) {
  const auto chunk = std::make_unique_for_overwrite<char[]>(walk_bytes);
  for (;;) {
    const std::size_t got = ONCE_TRY(file.read_at(position, {chunk.get(), walk_bytes}));
    if (!is_zero({chunk.get(), got})) return false;
    if (got < walk_bytes) return true;
    position += static_cast<std::int64_t>(got);
  }
}

Result<Found> read_first_frame(File& file, std::uint64_t log_id, std::int64_t base_offset) {
  // The address is taken from the frame: whoever asks compares it with the segment before.
  std::array<char, frame_header_bytes> bytes;
  const std::size_t got = ONCE_TRY(file.read_at(0, bytes));
  const HeaderAnswer answer = decode_frame_header({bytes.data(), got});
  Expected expected{log_id, answer.header.address, base_offset};
  FrameWalker walker(file, 0, expected, Depth::bodies);
  Found found = ONCE_TRY(walker.next());
  if (found.flaw == Flaw::none && found.header.kind != FrameKind::snapshot)
    found.flaw = Flaw::misplaced;
  found.body = {};
  return found;
}

void SegmentIndex::add(const FrameHeader& header, std::int64_t position) {
  if (entries.empty() || position - entries.back().position >= index_every_bytes)
    entries.push_back({header.base_offset, position, time_max_ms});
  if (header.kind == FrameKind::data) time_max_ms = std::max(time_max_ms, header.time_max_ms);
  end_offset = header.end_offset();
  bytes = position + static_cast<std::int64_t>(header.frame_bytes());
}

SegmentIndex::Entry SegmentIndex::before(std::int64_t offset) const {
  const auto behind =
      std::upper_bound(entries.begin(), entries.end(), offset,
                       [](std::int64_t value, const Entry& entry) { return value < entry.offset; });
  return behind == entries.begin() ? Entry{base_offset, 0, no_time_ms} : *std::prev(behind);
}

SegmentIndex::Entry SegmentIndex::before_time(std::int64_t time_ms) const {
  const auto behind = std::partition_point(entries.begin(), entries.end(), [&](const Entry& entry) {
    return entry.time_before_ms < time_ms;
  });
  return behind == entries.begin() ? Entry{base_offset, 0, no_time_ms} : *std::prev(behind);
}

std::string SegmentIndex::encode() const {
  std::string content(index_header_bytes + entries.size() * index_entry_bytes + 4, '\0');
  char* at = content.data();
  put_u64(at, index_magic);
  put_u32(at + 8, format_version);
  put_u32(at + 12, static_cast<std::uint32_t>(entries.size()));
  put_u64(at + 16, log_id);
  put_i64(at + 24, base_offset);
  put_i64(at + 32, end_offset);
  put_i64(at + 40, bytes);
  put_i64(at + 48, time_max_ms);
  at += index_header_bytes;
  for (const Entry& entry : entries) {
    put_i64(at, entry.offset);
    put_i64(at + 8, entry.position);
    put_i64(at + 16, entry.time_before_ms);
    at += index_entry_bytes;
  }
  put_u32(at, crc32c({content.data(), content.size() - 4}));
  return content;
}

std::optional<SegmentIndex> SegmentIndex::decode(std::string_view content) {
  if (content.size() < index_header_bytes + 4) return std::nullopt;
  const char* at = content.data();
  if (get_u64(at) != index_magic || get_u32(at + 8) != format_version) return std::nullopt;
  const std::size_t count = get_u32(at + 12);
  if (content.size() != index_header_bytes + count * index_entry_bytes + 4) return std::nullopt;
  const std::string_view covered = content.substr(0, content.size() - 4);
  if (get_u32(at + covered.size()) != crc32c(covered)) return std::nullopt;
  SegmentIndex index;
  index.log_id = get_u64(at + 16);
  index.base_offset = get_i64(at + 24);
  index.end_offset = get_i64(at + 32);
  index.bytes = get_i64(at + 40);
  index.time_max_ms = get_i64(at + 48);
  index.entries.resize(count);
  at += index_header_bytes;
  for (Entry& entry : index.entries) {
    entry = {get_i64(at), get_i64(at + 8), get_i64(at + 16)};
    at += index_entry_bytes;
  }
  if (!is_possible(index)) return std::nullopt;
  return index;
}

std::optional<SegmentIndex> load_index(Files& files, const std::string& directory,
                                       std::uint64_t log_id, std::int64_t base_offset,
                                       std::int64_t segment_bytes) {
  const auto content = read_file(files, index_path(directory, base_offset));
  if (!content) return std::nullopt;
  auto index = SegmentIndex::decode(*content);
  if (!index || index->log_id != log_id || index->base_offset != base_offset ||
      index->bytes != segment_bytes)
    return std::nullopt;
  return index;
}

Result<SegmentIndex> make_index(File& segment, std::uint64_t log_id, std::int64_t base_offset) {
  const Found first = ONCE_TRY(read_first_frame(segment, log_id, base_offset));
  SegmentIndex index;
  index.log_id = log_id;
  index.base_offset = base_offset;
  index.end_offset = base_offset;
  FrameWalker walker(segment, 0, {log_id, first.header.address, base_offset}, Depth::headers);
  for (;;) {
    const Found found = ONCE_TRY(walker.next());
    if (found.flaw != Flaw::none) break;
    index.add(found.header, found.position);
  }
  return index;
}

Status save_index(Files& files, const std::string& directory, const SegmentIndex& index) {
  const std::string path = index_path(directory, index.base_offset);
  ONCE_TRY(files.remove(path));
  auto file = ONCE_TRY(files.open(path, OpenMode::create));
  const std::string content = index.encode();
  const std::string_view view = content;
  return file->write_at(0, std::span(&view, 1));
}

}  // namespace once::log
