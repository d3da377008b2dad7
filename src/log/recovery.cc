// SPDX-License-Identifier: Apache-2.0
#include "log/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/mutant.h"
#include "log/layout.h"
#include "log/limits.h"

namespace once::log {
namespace {

constexpr std::size_t scan_bytes = 16 << 10;

// A segment file in which the walk stopped, and what is known of it.
struct Break {
  File& file;
  std::string path;
  Found found;
  Expected expected;  // of the frame that should have been there
};

// The largest `synced_upto` of all good headers of this log behind the break. A frame there that
// belongs to a later group proves that the place of the break was durable.
Result<std::uint64_t> watermark_behind(const Break& at) {
  std::uint64_t watermark = 0;
  const auto chunk = std::make_unique_for_overwrite<char[]>(scan_bytes);
  for (std::int64_t begin = at.found.position + 1;;) {
    const std::size_t got = ONCE_TRY(at.file.read_at(begin, {chunk.get(), scan_bytes}));
    const std::string_view bytes(chunk.get(), got);
    for (std::size_t i = bytes.find("ONCE"); i != std::string_view::npos;
         i = bytes.find("ONCE", i + 1)) {
      if (got - i < frame_header_bytes) break;
      const HeaderAnswer answer = decode_frame_header(bytes.substr(i));
      const auto distance =
          static_cast<std::uint64_t>(begin + static_cast<std::int64_t>(i) - at.found.position);
      if (answer.fault == HeaderFault::none && answer.header.log_id == at.expected.log_id &&
          answer.header.address == at.expected.address + distance)
        watermark = std::max(watermark, answer.header.synced_upto);
    }
    if (got < scan_bytes) return watermark;
    begin += static_cast<std::int64_t>(got - frame_header_bytes);  // a header on the edge
  }
}

// Whether the bytes of the frame are not all there: the file is too short, or a sector of it (or
// its end, which is never zero) was not written.
Result<bool> is_torn(const Break& at) {
  const std::size_t wanted = at.found.headed
                                 ? static_cast<std::size_t>(at.found.header.frame_bytes())
                                 : frame_header_bytes;
  std::vector<char> memory(wanted);
  const std::size_t got = ONCE_TRY(at.file.read_at(at.found.position, memory));
  if (got < wanted || memory.back() == 0) return true;
  const std::string_view bytes(memory.data(), got);
  if (!at.found.headed) return has_zero_piece(bytes, at.found.position);
  return count_zero_sectors(bytes, at.found.position) > at.found.header.zero_sectors;
}

// Decides what the break in the last segment is: fine (a torn tail that may be cut, or the clean
// end), or corruption. `watermark` is an address below which everything was durable.
Status judge(const Break& at, std::uint64_t watermark) {
  if (mutant(Mutant::corruption_cut_as_torn_tail)) return {};
  const std::uint64_t here = at.expected.address;
  const std::int64_t position = at.found.position;
  if (ONCE_TRY(is_zero_from(at.file, position))) {
    if (watermark <= here) return {};
    return corrupt_file(
        at.path, position,
        fmt::format("the log ends here, but {} more bytes were durable", watermark - here));
  }
  const std::string what = fmt::format("the frame is {}", name_of(at.found.flaw));
  if (at.found.flaw == Flaw::version)
    return fail(
        Remedy::stop, "version",
        fmt::format("{} at byte {}: {}; use the program that wrote it", at.path, position, what));
  if (at.found.flaw == Flaw::foreign || at.found.flaw == Flaw::misplaced)
    return corrupt_file(at.path, position, what);
  if (watermark > here) return corrupt_file(at.path, position, what + ", and it was durable");
  if (ONCE_TRY(watermark_behind(at)) > here)
    return corrupt_file(at.path, position, what + ", and later frames say that it was durable");
  if (!ONCE_TRY(is_torn(at)))
    return corrupt_file(at.path, position, what + ", though none of its bytes is missing");
  return {};
}

struct Scan {
  Tail tail;
  ProducerTable table;
  Expected end;
  Found stopped;
};

// Reads a segment from its first frame, which is good, to the first that is not.
Result<Scan> scan_segment(Files& files, const std::string& directory, std::uint64_t log_id,
                          std::int64_t base_offset) {
  Scan scan;
  const std::string path = segment_path(directory, base_offset);
  scan.tail.file = ONCE_TRY(files.open(path, OpenMode::write));
  const Found first = ONCE_TRY(read_first_frame(*scan.tail.file, log_id, base_offset));
  scan.tail.base_offset = base_offset;
  scan.tail.base_address = first.header.address;
  scan.tail.snapshot_bytes = static_cast<std::int64_t>(first.header.frame_bytes());
  scan.tail.reserved_bytes = ONCE_TRY(scan.tail.file->size());
  scan.tail.index.log_id = log_id;
  scan.tail.index.base_offset = base_offset;
  scan.tail.index.end_offset = base_offset;
  FrameWalker walker(*scan.tail.file, 0, {log_id, first.header.address, base_offset},
                     Depth::bodies);
  for (;;) {
    scan.stopped = ONCE_TRY(walker.next());
    if (scan.stopped.flaw != Flaw::none) break;
    if (!apply_frame(scan.stopped.header, scan.stopped.body, scan.table))
      return corrupt_file(path, scan.stopped.position, "the frame contradicts those before it");
    scan.tail.index.add(scan.stopped.header, scan.stopped.position);
  }
  scan.stopped.body = {};
  scan.tail.position = walker.position();
  scan.end = walker.expected();
  return scan;
}

class Recovery {
 public:
  Recovery(Files& files, const std::string& directory) : files_(files), directory_(directory) {}

  Result<Recovered> run(const RecoveryOptions& options) {
    ONCE_TRY(look(options));
    ONCE_TRY(drop_what_retention_left());
    if (!segments_.empty()) ONCE_TRY(drop_unfinished_roll());
    if (segments_.empty()) {
      ONCE_TRY(start_first_segment());
      return finish();
    }
    ONCE_TRY(check_chain());
    ONCE_TRY(recover_tail());
    return finish();
  }

 private:
  Status look(const RecoveryOptions& options) {
    auto layout = read_layout(files_, directory_);
    if (!layout && layout.error().tag == "missing") {
      if (options.must_exist) return fail(lost_partition(directory_));
      layout = Layout{};
      layout->superblock = {options.new_log_id, 1, {}, 0};
      ONCE_TRY(create_superblock(files_, directory_, layout->superblock));
    }
    if (!layout) return fail(std::move(layout).error());
    // It will be written later, and must not be a link then.
    ONCE_TRY(files_.open(directory_ + "/superblock", OpenMode::write));
    // Every time: whoever made the directory may have died before its name was durable.
    ONCE_TRY(files_.sync_directory(parent_directory(directory_)));
    result_.superblock = layout->superblock;
    watermark_ = layout->durable_address();
    segments_ = std::move(layout->segments);
    deleted_ = std::move(layout->deleted);
    return {};
  }

  // Retention first says in the superblock what goes, then deletes. A crash in between is
  // finished here.
  Status drop_what_retention_left() {
    if (deleted_.empty()) return {};
    for (const std::int64_t base_offset : deleted_) {
      ONCE_TRY(files_.remove(index_path(directory_, base_offset)));
      ONCE_TRY(files_.remove(segment_path(directory_, base_offset)));
    }
    return files_.sync_directory(directory_);
  }

  // A crash in the middle of a roll leaves a last segment whose first frame never became durable.
  Status drop_unfinished_roll() {
    const std::int64_t base_offset = segments_.back();
    const std::string path = segment_path(directory_, base_offset);
    auto file = ONCE_TRY(files_.open(path, OpenMode::read));
    Found first = ONCE_TRY(read_first_frame(*file, log_id(), base_offset));
    if (first.flaw == Flaw::none) return {};
    Expected expected{log_id(), 0, base_offset};
    if (segments_.size() > 1) {
      const std::int64_t previous = segments_[segments_.size() - 2];
      const Scan scan = ONCE_TRY(scan_segment(files_, directory_, log_id(), previous));
      // All that came before was durable when the new segment was begun.
      if (scan.end.offset != base_offset)
        return corrupt_file(
            segment_path(directory_, previous), scan.tail.position,
            fmt::format("the frame is {}, and it was durable", name_of(scan.stopped.flaw)));
      expected.address = scan.end.address;
    } else if (base_offset != 0) {
      return corrupt_file(path, 0, fmt::format("the first frame is {}", name_of(first.flaw)));
    }
    if (first.headed && first.header.address != expected.address) first.flaw = Flaw::misplaced;
    ONCE_TRY(judge({*file, path, first, expected}, watermark_));
    file.reset();
    ONCE_TRY(files_.remove(path));
    ONCE_TRY(files_.sync_directory(directory_));
    segments_.pop_back();
    return {};
  }

  // Every segment but the last ends where the next begins.
  Status check_chain() {
    std::uint64_t address = 0;
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      const std::string path = segment_path(directory_, segments_[i]);
      auto file = ONCE_TRY(files_.open(path, OpenMode::read));
      const Found first = ONCE_TRY(read_first_frame(*file, log_id(), segments_[i]));
      if (first.flaw == Flaw::version)
        return fail(
            Remedy::stop, "version",
            fmt::format("{} is {}; use the program that wrote it", path, name_of(first.flaw)));
      if (first.flaw != Flaw::none)
        return corrupt_file(path, 0, fmt::format("the first frame is {}", name_of(first.flaw)));
      if (i > 0) ONCE_TRY(check_length(i - 1, address, first.header.address));
      address = first.header.address;
    }
    return {};
  }

  Status check_length(std::size_t which, std::uint64_t address, std::uint64_t next_address) {
    const std::string path = segment_path(directory_, segments_[which]);
    auto file = ONCE_TRY(files_.open(path, OpenMode::read));
    const std::int64_t bytes = ONCE_TRY(file->size());
    const auto wanted = static_cast<std::int64_t>(next_address - address);
    if (next_address <= address || bytes > wanted)
      return corrupt_file(path, wanted, "the file goes on where the next segment begins");
    if (bytes < wanted && !ONCE_TRY(has_all_messages(*file, which, bytes)))
      return corrupt_file(path, bytes, "the file ends before the next segment begins");
    return remember_sealed(*file, segments_[which], bytes);
  }

  // An older version could roll twice behind the same message, and the second segment took the
  // place of the first: its addresses are missing, but there was no message in them, and the
  // producers that entered there are in the snapshot that follows.
  Result<bool> has_all_messages(File& file, std::size_t which, std::int64_t bytes) {
    const SegmentIndex index = ONCE_TRY(make_index(file, log_id(), segments_[which]));
    return index.bytes == bytes && index.end_offset == segments_[which + 1];
  }

  // An index that is missing or bad is made again; it is only a cache.
  Status remember_sealed(File& file, std::int64_t base_offset, std::int64_t bytes) {
    auto index = load_index(files_, directory_, log_id(), base_offset, bytes);
    if (!index) {
      if (mutant(Mutant::bad_snapshot_deletes_data))
        ONCE_TRY(files_.remove(segment_path(directory_, base_offset)));
      index = ONCE_TRY(make_index(file, log_id(), base_offset));
      // A disk that is full must not keep us from opening.
      if (index->bytes == bytes) (void)save_index(files_, directory_, *index);
    }
    result_.sealed.push_back({base_offset, bytes, index->time_max_ms});
    return {};
  }

  Status recover_tail() {
    Scan scan = ONCE_TRY(scan_segment(files_, directory_, log_id(), segments_.back()));
    const Break at{*scan.tail.file, segment_path(directory_, segments_.back()), scan.stopped,
                   scan.end};
    ONCE_TRY(judge(at, watermark_));
    if (!ONCE_TRY(is_zero_from(*scan.tail.file, scan.tail.position)))
      result_.cut_bytes = scan.tail.reserved_bytes - scan.tail.position;
    // Even if nothing is behind the end: an earlier recovery may have cut it and failed to sync,
    // and then the disk still has what the kernel no longer shows.
    ONCE_TRY(scan.tail.file->resize(scan.tail.position));
    scan.tail.reserved_bytes = scan.tail.position;
    // What was found may never have been synced: make it durable before anybody is told of it.
    ONCE_TRY(write_again(scan.tail));
    ONCE_TRY(scan.tail.file->sync());
    ONCE_TRY(files_.sync_directory(directory_));
    result_.end = {scan.end.address, scan.end.offset};
    result_.tail = std::move(scan.tail);
    result_.table = std::move(scan.table);
    return {};
  }

  // After a sync that failed in an earlier process the kernel may show bytes that it never wrote
  // and takes for clean, and a sync would do nothing for them. Written again, they are dirty.
  Status write_again(const Tail& tail) {
    std::int64_t at = 0;
    if (watermark_ > tail.base_address)
      at = static_cast<std::int64_t>(watermark_ - tail.base_address);
    std::vector<char> chunk(scan_bytes);
    while (at < tail.position) {
      const auto left = static_cast<std::size_t>(tail.position - at);
      const auto part = std::span(chunk).first(std::min(chunk.size(), left));
      if (ONCE_TRY(tail.file->read_at(at, part)) != part.size())
        return fail(Remedy::stop, "io", fmt::format("{} became shorter", directory_));
      const std::string_view bytes(part.data(), part.size());
      ONCE_TRY(tail.file->write_at(at, std::span(&bytes, 1)));
      at += static_cast<std::int64_t>(part.size());
    }
    return {};
  }

  Status start_first_segment() {
    result_.tail = ONCE_TRY(create_segment(files_, directory_, log_id(), {}, {}, 0));
    result_.end = {result_.tail.address(), 0};
    return {};
  }

  Result<Recovered> finish() {
    if (result_.superblock.durable != result_.end) {
      result_.superblock.durable = result_.end;
      ++result_.superblock.generation;
      ONCE_TRY(update_superblock(files_, directory_, result_.superblock));
    }
    return std::move(result_);
  }

  std::uint64_t log_id() const { return result_.superblock.log_id; }

  Files& files_;
  const std::string& directory_;
  std::vector<std::int64_t> segments_;
  std::vector<std::int64_t> deleted_;
  std::uint64_t watermark_ = 0;
  Recovered result_;
};

}  // namespace

Result<Recovered> recover(Files& files, const std::string& directory,
                          const RecoveryOptions& options) {
  return Recovery(files, directory).run(options);
}

Result<Tail> create_segment(Files& files, const std::string& directory, std::uint64_t log_id,
                            const End& begin, const ProducerTable& table,
                            std::int64_t reserve_bytes) {
  Buffer frame;
  frame.grow(frame_header_bytes);
  table.encode(frame);
  frame.grow(frame_end_bytes);
  FrameHeader header;
  header.kind = FrameKind::snapshot;
  header.version = snapshot_version;
  header.log_id = log_id;
  header.address = begin.address;
  header.base_offset = begin.offset;
  header.synced_upto = begin.address;
  seal_frame(frame.at(0), frame.size(), 0, header);

  Tail tail;
  const std::string path = segment_path(directory, begin.offset);
  if (mutant(Mutant::roll_replaces_live_segment)) ONCE_TRY(files.remove(path));
  tail.file = ONCE_TRY(files.open(path, OpenMode::create));
  tail.reserved_bytes = static_cast<std::int64_t>(frame.size()) + reserve_bytes;
  if (auto reserved = tail.file->resize(tail.reserved_bytes); !reserved) {
    tail.file.reset();
    // The log goes on without it, so its name must not come back after a crash.
    Status removed = files.remove(path);
    if (removed) removed = files.sync_directory(directory);
    if (!removed) return fail(Remedy::recheck, removed.error().tag, removed.error().text);
    return fail(std::move(reserved).error());
  }
  const std::string_view view = frame.view();
  Status made = tail.file->write_at(0, std::span(&view, 1));
  if (made) made = tail.file->sync();
  if (made && !mutant(Mutant::no_directory_sync)) made = files.sync_directory(directory);
  // Space was there, so whatever this is, trying again is no answer to it.
  if (!made) return fail(Remedy::recheck, made.error().tag, made.error().text);
  tail.base_offset = begin.offset;
  tail.base_address = begin.address;
  tail.position = static_cast<std::int64_t>(frame.size());
  tail.snapshot_bytes = tail.position;
  tail.index.log_id = log_id;
  tail.index.base_offset = begin.offset;
  tail.index.add(header, 0);
  return tail;
}

}  // namespace once::log
