// SPDX-License-Identifier: Apache-2.0
#include "log/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "log/limits.h"
#include "model/hint.h"

namespace once::log {
namespace {

// A writer may delete old segments while a reader looks; more than this often in a row is a bug.
constexpr int looks_max = 10;

// What to do about a damaged partition: DIR/TOPIC/NUMBER.
std::string what_repair_saves(const std::string& partition) {
  return fmt::format("see what {} can save",
                     hint({"topic", "repair", "file:" + parent_directory(partition)}));
}

tl::unexpected<Error> lost(const std::string& directory, const std::string& what) {
  return fail(Remedy::stop, "corrupt",
              fmt::format("{}. Nothing was changed; restore it from a copy, or {}", what,
                          what_repair_saves(directory)));
}

// The superblock; "missing" when the partition was never made, and "corrupt" when it was.
Result<Superblock> find_superblock(Files& files, const std::string& directory) {
  auto superblock = read_superblock(files, directory);
  if (superblock || superblock.error().tag != "missing") return superblock;
  const auto names = files.list(directory);
  if (!names && names.error().tag != "missing") return fail(names.error());
  // A draft of the superblock comes before everything else.
  const bool was_made =
      names && std::any_of(names->begin(), names->end(), [](const std::string& name) {
        return is_partition_file(name) && name != "superblock.new";
      });
  if (!was_made) return superblock;
  superblock = read_superblock(files, directory);  // perhaps it was just made
  if (superblock || superblock.error().tag != "missing") return superblock;
  return lost(
      directory,
      fmt::format("{}/superblock is missing, so it is not known which log this is", directory));
}

std::optional<Told> read_told(Files& files, const std::string& directory, std::uint64_t log_id) {
  auto file = Watermark::open_to_read(files, directory, log_id);
  return file ? (*file)->read() : std::nullopt;
}

// Where the frames of the last segments end.
struct FrameEnds {
  End proven;  // a later group was begun, so this was durable
  End valid;   // of all good frames
  std::uint32_t producers = 0;
};

FrameEnds ends_at(const End& begin) { return {begin, begin, 0}; }

Result<FrameEnds> walk(File& file, std::uint64_t log_id, const Found& first,
                       std::int64_t base_offset) {
  FrameEnds ends = ends_at({first.header.address, base_offset});
  ProducerTable table;
  std::uint64_t synced_upto = first.header.address;
  FrameWalker walker(file, 0, {log_id, first.header.address, base_offset}, Depth::bodies);
  std::deque<End> unproven;
  for (;;) {
    const Found found = ONCE_TRY(walker.next());
    if (found.flaw != Flaw::none) break;
    (void)apply_frame(found.header, found.body, table);
    synced_upto = std::max(synced_upto, found.header.synced_upto);
    ends.valid = {found.header.end_address(), found.header.end_offset()};
    unproven.push_back(ends.valid);
    while (!unproven.empty() && unproven.front().address <= synced_upto) {
      ends.proven = unproven.front();
      unproven.pop_front();
    }
  }
  ends.producers = static_cast<std::uint32_t>(table.size());
  return ends;
}

Result<FrameEnds> find_frame_ends(Files& files, const std::string& directory,
                                  const Layout& layout) {
  const std::uint64_t log_id = layout.superblock.log_id;
  for (std::size_t i = layout.segments.size(); i-- > 0;) {
    const std::int64_t base_offset = layout.segments[i];
    const std::string path = segment_path(directory, base_offset);
    auto file = files.open(path, OpenMode::read);
    const bool is_last = i + 1 == layout.segments.size();
    if (!file && file.error().tag == "missing" && is_last) continue;  // a roll was given up
    if (!file) return fail(file.error());
    const Found first = ONCE_TRY(read_first_frame(**file, log_id, base_offset));
    if (first.flaw == Flaw::none) return walk(**file, log_id, first, base_offset);
    if (!is_last || !may_be_unfinished(first.flaw) || (i == 0 && base_offset != 0))
      return corrupt_file(path, 0, fmt::format("the first frame is {}", name_of(first.flaw)));
  }
  return ends_at({});
}

}  // namespace

std::uint64_t Layout::durable_address() const {
  return std::max(superblock.durable.address, told ? told->end.address : 0);
}

tl::unexpected<Error> corrupt_file(const std::string& path, std::int64_t position,
                                   std::string_view what) {
  return fail(
      Remedy::stop, "corrupt",
      fmt::format("{} at byte {}: {}. Nothing was changed; restore the file from a copy, or {}",
                  path, position, what, what_repair_saves(parent_directory(path))));
}

Error lost_partition(const std::string& directory) {
  return {Remedy::stop, "corrupt",
          fmt::format("{} is gone, though its topic was written; restore it from a copy, or {}",
                      directory, what_repair_saves(directory)),
          std::nullopt};
}

bool may_be_unfinished(Flaw first_frame) {
  return first_frame == Flaw::end || first_frame == Flaw::missing || first_frame == Flaw::damaged ||
         first_frame == Flaw::body;
}

bool apply_frame(const FrameHeader& header, std::string_view body, ProducerTable& table) {
  switch (header.kind) {
    case FrameKind::data:
      return header.stamp.producer == 0 ||
             table.apply(header.stamp, header.record_count, header.base_offset);
    case FrameKind::enter:
      if (body.empty() || body.size() > producer_name_bytes_max) return false;
      return table.apply_entry(body, header.stamp.producer, header.stamp.epoch, header.base_offset);
    case FrameKind::snapshot: {
      auto snapshot = ProducerTable::decode(body, header.version, header.base_offset);
      if (!snapshot) return false;
      table = std::move(*snapshot);
      return true;
    }
  }
  return false;
}

Result<Layout> read_layout(Files& files, const std::string& directory) {
  Layout layout;
  for (int look = 0;; ++look) {
    layout.superblock = ONCE_TRY(find_superblock(files, directory));
    const std::int64_t first = layout.superblock.first_offset;
    layout.told = read_told(files, directory, layout.superblock.log_id);
    auto all = ONCE_TRY(list_segments(files, directory));
    const auto kept = std::lower_bound(all.begin(), all.end(), first);
    layout.deleted.assign(all.begin(), kept);
    layout.segments.assign(kept, all.end());
    const bool is_new = all.empty() && layout.durable_address() == 0;
    if (is_new || (!layout.segments.empty() && layout.segments.front() == first)) return layout;
    // Retention tells the superblock before it deletes.
    const Superblock now = ONCE_TRY(find_superblock(files, directory));
    if (now.first_offset != first && look < looks_max) continue;
    if (all.empty())
      return lost(directory, fmt::format("{} has no segments, but {} bytes were durable", directory,
                                         layout.durable_address()));
    return lost(directory, segment_path(directory, first) + " is missing");
  }
}

Result<ReadableEnd> find_readable_end(Files& files, const std::string& directory,
                                      const Layout& layout, bool has_writer) {
  const FrameEnds ends = ONCE_TRY(find_frame_ends(files, directory, layout));
  // Asked after the frames were read: a writer that came meanwhile has told before it wrote.
  const auto told = read_told(files, directory, layout.superblock.log_id);
  // A group was begun and nothing later is there: its writer died, and the group may only be in
  // the memory of this machine. An old watermark says the same, but then later groups follow.
  const bool is_in_doubt = told && told->is_writing && told->end.address >= ends.proven.address;
  End end = layout.superblock.durable;
  const auto count = [&](const End& more) {
    if (more.address > end.address) end = more;
  };
  if (told) count(told->end);
  if (!has_writer || !told) count(ends.proven);
  if (!has_writer && !is_in_doubt) count(ends.valid);
  return ReadableEnd{end, ends.valid, ends.producers};
}

}  // namespace once::log
