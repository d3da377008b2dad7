// SPDX-License-Identifier: Apache-2.0
#include "log/salvage.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>

#include "log/layout.h"
#include "log/recovery.h"
#include "model/random.h"

namespace once::log {
namespace {

constexpr std::size_t chunk_bytes = 64 << 10;

std::uint64_t random_log_id() {
  std::uint64_t id = 0;
  while (id == 0) id = random_number();
  return id;
}

bool is_missing(const Error& error) { return error.tag == "missing"; }

}  // namespace

Status Salvage::look() {
  auto names = files_.list(directory_);
  if (!names && !is_missing(names.error())) return fail(names.error());
  if (names) names_ = std::move(*names);
  ONCE_TRY(find_log());
  ONCE_TRY(examine_all());
  choose();
  make_plan();
  return {};
}

// Which log it is, and how far it was written, from whatever is left to say so.
Status Salvage::find_log() {
  auto superblock = read_superblock(files_, directory_);
  if (superblock) {
    superblock_ = *superblock;
    log_id_ = superblock->log_id;
    durable_ = superblock->durable;
  } else if (!is_missing(superblock.error()) && superblock.error().tag != "corrupt") {
    return fail(superblock.error());
  } else {
    note_damage(directory_ + "/superblock", 0,
                is_missing(superblock.error()) ? "it is missing" : "both copies are damaged");
  }
  if (names_.empty()) return {};
  ONCE_TRY(ask_segments());
  if (auto file = Watermark::open_to_read(files_, directory_, log_id_))
    if (const auto told = (*file)->read(); told && told->end.address > durable_.address)
      durable_ = told->end;
  largest_ = durable_.offset;
  return {};
}

// A superblock that no segment belongs to came from elsewhere.
Status Salvage::ask_segments() {
  std::map<std::uint64_t, int> votes;
  for (const std::int64_t base : ONCE_TRY(list_segments(files_, directory_))) {
    auto file = ONCE_TRY(files_.open(segment_path(directory_, base), OpenMode::read));
    std::array<char, frame_header_bytes> bytes{};
    if (ONCE_TRY(file->read_at(0, bytes)) < bytes.size()) continue;
    const HeaderAnswer answer = decode_frame_header({bytes.data(), bytes.size()});
    if (answer.fault == HeaderFault::none) ++votes[answer.header.log_id];
  }
  if (votes.empty() || votes.contains(log_id_)) return {};
  if (superblock_) note_damage(directory_ + "/superblock", 0, "it is that of another log");
  superblock_.reset();
  durable_ = {};
  log_id_ = std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) {
              return a.second < b.second;
            })->first;
  return {};
}

Status Salvage::examine_all() {
  if (names_.empty()) return {};
  std::vector<std::int64_t> segments = ONCE_TRY(list_segments(files_, directory_));
  if (superblock_)  // older ones were deleted on purpose
    std::erase_if(segments, [&](std::int64_t base) { return base < superblock_->first_offset; });
  for (const std::int64_t base : segments)
    examined_.push_back(ONCE_TRY(examine(base, base == segments.back())));
  return {};
}

Result<Salvage::Examined> Salvage::examine(std::int64_t base_offset, bool is_last) {
  Examined segment;
  segment.base_offset = base_offset;
  const std::string path = segment_path(directory_, base_offset);
  auto file = ONCE_TRY(files_.open(path, OpenMode::read));
  const Found first = ONCE_TRY(read_first_frame(*file, log_id_, base_offset));
  const auto foreign_version = [&] {
    return fail(Remedy::stop, "version",
                fmt::format("{} is of another version; use the program that wrote it", path));
  };
  if (first.flaw == Flaw::version) return foreign_version();
  if (first.flaw != Flaw::none) {
    note_damage(path, 0, fmt::format("the first frame is {}", name_of(first.flaw)));
    ONCE_TRY(note_largest(*file));
    return segment;
  }
  segment.begins = true;
  segment.begin = {first.header.address, base_offset};
  FrameWalker walker(*file, 0, {log_id_, first.header.address, base_offset}, Depth::bodies);
  ProducerTable table;
  for (;;) {
    const Found found = ONCE_TRY(walker.next());
    if (found.flaw == Flaw::version) return foreign_version();
    const bool contradicts =
        found.flaw == Flaw::none && !apply_frame(found.header, found.body, table);
    if (found.flaw == Flaw::none && !contradicts) {
      segment.position = walker.position();
      segment.end = {walker.expected().address, walker.expected().offset};
      continue;
    }
    // Behind the end of the last one there may be room that was reserved, or a torn tail.
    segment.is_whole = !contradicts && (found.flaw == Flaw::end ||
                                        (is_last && durable_.address <= segment.end.address &&
                                         ONCE_TRY(is_zero_from(*file, segment.position))));
    if (segment.is_whole) break;
    note_damage(path, segment.position,
                contradicts ? "the frame contradicts those before it"
                            : fmt::format("the frame is {}", name_of(found.flaw)));
    ONCE_TRY(note_largest(*file));
    break;
  }
  largest_ = std::max(largest_, segment.end.offset);
  return segment;
}

// Frames behind damage still say which numbers were given.
Status Salvage::note_largest(File& file) {
  const auto chunk = std::make_unique_for_overwrite<char[]>(chunk_bytes);
  for (std::int64_t begin = 0;;) {
    const std::size_t got = ONCE_TRY(file.read_at(begin, {chunk.get(), chunk_bytes}));
    const std::string_view bytes(chunk.get(), got);
    for (std::size_t i = bytes.find("ONCE"); i != std::string_view::npos;
         i = bytes.find("ONCE", i + 1)) {
      if (got - i < frame_header_bytes) break;
      const HeaderAnswer answer = decode_frame_header(bytes.substr(i));
      if (answer.fault == HeaderFault::none && answer.header.log_id == log_id_)
        largest_ = std::max(largest_, answer.header.end_offset());
    }
    if (got < chunk_bytes) return {};
    begin += static_cast<std::int64_t>(got - frame_header_bytes);  // a header on the edge
  }
}

// The last run of segments of which each begins where the one before it ends.
void Salvage::choose() {
  for (std::size_t i = 0; i < examined_.size(); ++i) {
    const Examined& segment = examined_[i];
    if (i > run_begin_ && segment.base_offset != examined_[i - 1].end.offset) {
      note_damage(segment_path(directory_, segment.base_offset), 0,
                  "segments in front of it are missing");
      run_begin_ = i;
    }
    const bool is_last = i + 1 == examined_.size();
    if (!segment.begins || (!segment.is_whole && !is_last)) run_begin_ = i + 1;
  }
  if (keeps_nothing()) return;
  const Examined& tail = examined_.back();
  is_cut_ = !tail.is_whole || tail.end.address < durable_.address;
  if (tail.is_whole && is_cut_)
    note_damage(directory_, 0,
                fmt::format("it ends {} bytes before what was durable",
                            durable_.address - tail.end.address));
}

void Salvage::make_plan() {
  const std::int64_t first_known = superblock_         ? superblock_->first_offset
                                   : examined_.empty() ? 0
                                                       : examined_.front().base_offset;
  plan_.first_offset = keeps_nothing() ? largest_ : examined_[run_begin_].base_offset;
  plan_.end_offset = keeps_nothing() ? largest_ : examined_.back().end.offset;
  plan_.forgets_producers = keeps_nothing();
  const auto lose = [&](std::int64_t first, std::int64_t end) {
    if (end <= first) return;
    plan_.lost.push_back({first, end});
    plan_.lost_count += end - first;
  };
  lose(first_known, plan_.first_offset);
  if (is_cut_) lose(plan_.end_offset, largest_);
  if (keeps_nothing() && largest_ == 0) plan_.damage += "; how many messages it had is not known";
  // Without a superblock nothing proves that no later message was acknowledged.
  gives_numbers_again_ = is_cut_ || keeps_nothing() || !superblock_;
}

void Salvage::note_damage(const std::string& path, std::int64_t position, std::string_view what) {
  if (!plan_.damage.empty()) plan_.damage += "; ";
  plan_.damage += fmt::format("{} at byte {}: {}", path, position, what);
}

Status Salvage::apply() { return keeps_nothing() ? start_again() : keep_chosen(); }

// The numbers go on behind the largest one that is known of.
Status Salvage::start_again() {
  for (const std::string& name : std::vector(names_))  // setting aside adds a name
    if (is_partition_file(name) && !is_set_aside(name)) ONCE_TRY(set_aside(name));
  ProducerTable table;
  table.set_horizon(now_ms_);
  const Superblock superblock{random_log_id(), 1, {0, largest_}, largest_};
  (void)ONCE_TRY(
      create_segment(files_, directory_, superblock.log_id, superblock.durable, table, 0));
  return create_superblock(files_, directory_, superblock);
}

Status Salvage::keep_chosen() {
  for (std::size_t i = 0; i < run_begin_; ++i) {
    const std::string digits = fmt::format("{:020}", examined_[i].base_offset);
    for (const std::string& name : std::vector(names_))  // setting aside adds a name
      if (name.starts_with(digits) && !is_set_aside(name)) ONCE_TRY(set_aside(name));
  }
  const Examined& tail = examined_.back();
  if (is_cut_) {
    if (!tail.is_whole) ONCE_TRY(cut_tail(tail));
    ONCE_TRY(set_aside("watermark"));
  }
  Superblock superblock = superblock_.value_or(Superblock{log_id_, 0, {}, 0});
  superblock.first_offset = examined_[run_begin_].base_offset;
  superblock.durable = tail.end;
  ++superblock.generation;
  return write_superblock(superblock);
}

// What is sound goes into a new file; the other one stays as it is, under another name.
Status Salvage::cut_tail(const Examined& tail) {
  const std::string path = segment_path(directory_, tail.base_offset);
  std::vector<char> sound(static_cast<std::size_t>(tail.position));
  {
    auto file = ONCE_TRY(files_.open(path, OpenMode::read));
    if (ONCE_TRY(file->read_at(0, sound)) != sound.size())
      return fail(Remedy::retry, "changed", path + " was changed while it was repaired");
  }
  ONCE_TRY(set_aside(path.substr(directory_.size() + 1)));
  auto file = ONCE_TRY(files_.open(path, OpenMode::create));
  const std::string_view bytes(sound.data(), sound.size());
  ONCE_TRY(file->write_at(0, std::span(&bytes, 1)));
  ONCE_TRY(file->sync());
  return files_.sync_directory(directory_);
}

Status Salvage::write_superblock(const Superblock& superblock) {
  if (superblock_) return update_superblock(files_, directory_, superblock);
  ONCE_TRY(set_aside("superblock"));
  return create_superblock(files_, directory_, superblock);
}

Status Salvage::set_aside(const std::string& name) {
  if (std::find(names_.begin(), names_.end(), name) == names_.end()) return {};
  std::string aside = name + std::string(damaged_suffix);
  for (int i = 2; std::find(names_.begin(), names_.end(), aside) != names_.end(); ++i)
    aside = fmt::format("{}{}{}", name, damaged_suffix, i);
  ONCE_TRY(files_.rename(directory_ + "/" + name, directory_ + "/" + aside));
  names_.push_back(aside);
  plan_.set_aside.push_back(directory_ + "/" + aside);
  return files_.sync_directory(directory_);
}

}  // namespace once::log
