// SPDX-License-Identifier: Apache-2.0
#include "log/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/mutant.h"
#include "log/layout.h"
#include "log/limits.h"
#include "log/record_batch.h"

namespace once::log {

// What one read brings: the bytes, and the views into them.
struct Reader::Chunk {
  std::unique_ptr<char[]> bytes;
  std::size_t bytes_wanted = 0;
  Deliveries decoded;
};

// Messages of a producer that are looked for, and those that were found.
struct Reader::Search {
  std::uint64_t producer;
  Interval wanted;
  End durable;
  IntervalSet found;
  std::vector<Placed> places;

  bool is_done() const { return found.contains_all(wanted); }

  // Whether some are in the frame with this header that were not found before.
  bool add(const FrameHeader& header) {
    const std::uint64_t first = header.stamp.sequence;
    const Interval here{std::max(wanted.begin, first),
                        std::min(wanted.end, first + header.record_count)};
    if (header.stamp.producer != producer || here.begin >= here.end || found.contains_all(here))
      return false;
    places.push_back({here, header.base_offset + static_cast<std::int64_t>(here.begin - first)});
    found.insert(here);
    return true;
  }

  std::vector<Placed> sorted() {
    std::sort(places.begin(), places.end(), [](const Placed& a, const Placed& b) {
      return a.sequences.begin < b.sequences.begin;
    });
    return std::move(places);
  }
};

tl::unexpected<Error> Reader::corrupt(std::int64_t position, std::string_view what) const {
  return fail(Remedy::stop, "corrupt",
              fmt::format("{} at byte {}: {}; restore the file from a copy",
                          segment_path(directory_, base_offset_), position, what));
}

tl::unexpected<Error> Reader::gone(std::int64_t offset) const {
  return fail(Remedy::stop, "gone",
              fmt::format("{} has no message {} any more: the oldest is {}", directory_, offset,
                          first_offset_));
}

Expected Reader::expected_at(const Place& place) const {
  return {log_id_, base_address_ + static_cast<std::uint64_t>(place.position), place.offset};
}

Result<std::int64_t> Reader::first_offset() {
  Layout layout = ONCE_TRY(read_layout(files_, directory_));
  if (layout.superblock.log_id != log_id_)
    return fail(
        Remedy::stop, "gone",
        fmt::format("{} was made anew while it was read: it is another log now", directory_));
  first_offset_ = layout.superblock.first_offset;
  segments_ = std::move(layout.segments);
  return first_offset_;
}

Status Reader::open_segment(std::int64_t base_offset) {
  auto file = ONCE_TRY(files_.open(segment_path(directory_, base_offset), OpenMode::read));
  const Found first = ONCE_TRY(read_first_frame(*file, log_id_, base_offset));
  base_offset_ = base_offset;
  if (first.flaw != Flaw::none) {
    file_.reset();
    return corrupt(0, fmt::format("the first frame is {}", name_of(first.flaw)));
  }
  file_ = std::move(file);
  base_address_ = first.header.address;
  index_.reset();
  place_ = {static_cast<std::int64_t>(first.header.frame_bytes()), base_offset};
  return {};
}

// False: there is no segment that begins at this offset.
Result<bool> Reader::open_next_segment(std::int64_t offset) {
  if (offset == base_offset_) return false;
  ONCE_TRY(first_offset());
  if (!std::binary_search(segments_.begin(), segments_.end(), offset)) return false;
  ONCE_TRY(open_segment(offset));
  return true;
}

Status Reader::make_ready_to_search(const End& durable) {
  if (index_) return {};
  index_ = load_index(files_, directory_, log_id_, base_offset_, ONCE_TRY(file_->size()));
  if (!index_) index_ = ONCE_TRY(make_index(*file_, log_id_, base_offset_));
  // What is not durable may yet be cut and written anew, differently.
  while (!index_->entries.empty() &&
         base_address_ + static_cast<std::uint64_t>(index_->entries.back().position) >=
             durable.address)
    index_->entries.pop_back();
  return {};
}

// Opens the segment with this offset, at a frame that is not behind it.
Status Reader::go_to(std::int64_t offset, const End& durable) {
  if (file_ && offset >= place_.offset && offset - place_.offset < 1000) return {};
  for (int attempt = 0;; ++attempt) {
    ONCE_TRY(first_offset());
    const auto behind = std::upper_bound(segments_.begin(), segments_.end(), offset);
    if (behind == segments_.begin()) return gone(offset);
    if (file_ && base_offset_ == *std::prev(behind)) break;
    const Status opened = open_segment(*std::prev(behind));
    if (opened) break;
    // Retention may have deleted it since we looked.
    if (opened.error().tag != "missing" || attempt > 0) return fail(opened.error());
  }
  ONCE_TRY(make_ready_to_search(durable));
  const SegmentIndex::Entry entry = index_->before(offset);
  place_ = {entry.position, entry.offset};
  return {};
}

// Reads bytes at the present place and decodes the whole frames in them. The place moves on.
Status Reader::fill(Chunk& chunk, std::int64_t offset, const End& durable) {
  const std::uint64_t address = base_address_ + static_cast<std::uint64_t>(place_.position);
  if (address + frame_overhead_bytes > durable.address)
    return corrupt(place_.position, fmt::format("message {} was durable and is missing", offset));
  const std::size_t wanted = static_cast<std::size_t>(
      std::min<std::uint64_t>(chunk.bytes_wanted, durable.address - address));
  chunk.bytes = std::make_unique_for_overwrite<char[]>(wanted);
  std::string_view rest(chunk.bytes.get(),
                        ONCE_TRY(file_->read_at(place_.position, {chunk.bytes.get(), wanted})));
  chunk.bytes_wanted = 0;
  while (!rest.empty()) {
    if (rest.size() < frame_header_bytes) {
      chunk.bytes_wanted = frame_header_bytes;
      break;
    }
    const HeaderAnswer answer = decode_frame_header(rest);
    const FrameHeader& header = answer.header;
    const Expected expected = expected_at(place_);
    if (answer.fault != HeaderFault::none || header.log_id != log_id_ ||
        header.address != expected.address || header.base_offset != expected.offset ||
        header.end_address() > durable.address)
      return corrupt(place_.position, "there is no good frame");
    const auto frame_bytes = static_cast<std::size_t>(header.frame_bytes());
    if (rest.size() < frame_bytes) {
      chunk.bytes_wanted = frame_bytes;
      break;
    }
    if (header.kind == FrameKind::data && header.end_offset() > offset) {
      if (!frame_body_is_good(header, rest.substr(0, frame_bytes)))
        return corrupt(place_.position, "the frame is damaged in its body");
      // What cannot be opened is no reason to keep back what is in front of it.
      if (header.version == compressed_version && !chunk.decoded.deliveries.empty()) break;
      const std::size_t before = chunk.decoded.deliveries.size();
      ONCE_TRY(decode_batch(rest.substr(frame_header_bytes, header.body_bytes), header.stamp, false,
                            chunk.decoded));
      if (chunk.decoded.deliveries.size() - before != header.record_count ||
          chunk.decoded.deliveries[before].offset != header.base_offset)
        return corrupt(place_.position, "the batch does not match its frame");
    }
    place_ = {place_.position + static_cast<std::int64_t>(frame_bytes), header.end_offset()};
    rest.remove_prefix(frame_bytes);
  }
  return {};
}

Status Reader::check_offset(std::int64_t offset, const End& durable) const {
  if (offset >= 0 && offset <= durable.offset) return {};
  return fail(
      Remedy::stop, "gone",
      fmt::format("{} has no message {}: the log ends at {}", directory_, offset, durable.offset));
}

// The present segment ended before the durable end was reached.
Status Reader::go_on_in_next_segment() {
  if (ONCE_TRY(open_next_segment(place_.offset))) return {};
  if (first_offset_ > place_.offset) return gone(place_.offset);
  return corrupt(place_.position,
                 fmt::format("message {} was durable and is missing", place_.offset));
}

Result<StoredBatches> Reader::locate(std::int64_t offset, std::size_t bytes_max,
                                     const End& durable) {
  StoredBatches found;
  found.end_offset = offset;
  ONCE_TRY(check_offset(offset, durable));
  if (offset == durable.offset) return found;
  ONCE_TRY(go_to(offset, durable));
  for (;;) {
    ONCE_TRY(locate_here(found, offset, bytes_max, durable));
    if (!found.batches.empty()) break;
    ONCE_TRY(go_on_in_next_segment());
  }
  found.file = file_;
  found.end_offset = place_.offset;
  return found;
}

// The batches in the open segment. What is not durable is not looked at: it may be half written.
Status Reader::locate_here(StoredBatches& into, std::int64_t offset, std::size_t bytes_max,
                           const End& durable) {
  const bool all = mutant(Mutant::unsynced_batches_handed_out);
  FrameWalker walker(*file_, place_.position, expected_at(place_), Depth::heads);
  while (all || walker.expected().address < durable.address) {
    const Found found = ONCE_TRY(walker.next());
    const FrameHeader& header = found.header;
    if (found.flaw == Flaw::end || (all && found.flaw != Flaw::none)) return {};
    if (found.flaw != Flaw::none)
      return corrupt(found.position, fmt::format("the frame is {}", name_of(found.flaw)));
    if (header.kind == FrameKind::data && header.end_offset() > offset) {
      const bool is_full = !into.batches.empty() && (into.bytes + header.body_bytes > bytes_max ||
                                                     into.batches.size() >= batches_located_max);
      if (is_full) return {};
      into.batches.push_back({header.base_offset, header.record_count,
                              found.position + static_cast<std::int64_t>(frame_header_bytes),
                              header.body_bytes});
      into.bytes += header.body_bytes;
    }
    place_ = {walker.position(), walker.expected().offset};
  }
  return {};
}

Result<LoadedBatches> load(const StoredBatches& stored) {
  LoadedBatches loaded;
  if (stored.batches.empty()) return loaded;
  const std::int64_t begin = stored.batches.front().position;
  const StoredBatch& last = stored.batches.back();
  const auto bytes = static_cast<std::size_t>(last.position - begin) + last.bytes;
  std::shared_ptr<char[]> memory(new char[bytes]);
  const std::size_t got = ONCE_TRY(stored.file->read_at(begin, {memory.get(), bytes}));
  for (const StoredBatch& batch : stored.batches) {
    const auto from = static_cast<std::size_t>(batch.position - begin);
    const std::string_view view(memory.get() + from, batch.bytes);
    if (from + batch.bytes > got || !batch_crc_is_good(view))
      return fail(Remedy::stop, "corrupt",
                  fmt::format("the batch of message {} at byte {} is damaged", batch.base_offset,
                              batch.position));
    loaded.batches.push_back(view);
  }
  loaded.memory = std::move(memory);
  return loaded;
}

Result<ReadResult> Reader::read(std::int64_t offset, std::size_t bytes_max, const End& durable) {
  ReadResult result;
  result.end_offset = offset;
  ONCE_TRY(check_offset(offset, durable));
  if (offset == durable.offset) return result;
  ONCE_TRY(go_to(offset, durable));
  auto chunk = std::make_shared<Chunk>();
  while (chunk->decoded.deliveries.empty()) {
    const Place before = place_;
    chunk->bytes_wanted = std::max({chunk->bytes_wanted, bytes_max, std::size_t{4096}});
    ONCE_TRY(fill(*chunk, offset, durable));
    if (!chunk->decoded.deliveries.empty() || place_.position != before.position) continue;
    const std::int64_t size = ONCE_TRY(file_->size());
    if (place_.position + static_cast<std::int64_t>(chunk->bytes_wanted) <= size &&
        chunk->bytes_wanted > 0)
      continue;  // one frame is larger than what was asked for
    ONCE_TRY(go_on_in_next_segment());
  }
  Deliveries& decoded = chunk->decoded;
  decoded.finish();
  const auto first = std::find_if(decoded.deliveries.begin(), decoded.deliveries.end(),
                                  [&](const Delivery& one) { return one.offset >= offset; });
  decoded.deliveries.erase(decoded.deliveries.begin(), first);
  result.deliveries = std::move(decoded.deliveries);
  result.end_offset = place_.offset;
  result.memory = std::move(chunk);
  return result;
}

Result<std::int64_t> Reader::offset_at(std::int64_t time_ms, const End& durable) {
  ONCE_TRY(first_offset());
  const std::vector<std::int64_t> segments = segments_;
  for (const std::int64_t segment : segments) {
    if (segment >= durable.offset) break;
    auto opened = open_segment(segment);
    if (!opened && opened.error().tag == "missing") continue;  // deleted since we looked
    if (!opened) return fail(std::move(opened).error());
    ONCE_TRY(make_ready_to_search(durable));
    if (index_->time_max_ms < time_ms) continue;
    const SegmentIndex::Entry entry = index_->before_time(time_ms);
    FrameWalker walker(*file_, entry.position, expected_at({entry.position, entry.offset}),
                       Depth::headers);
    for (;;) {
      const Found found = ONCE_TRY(walker.next());
      if (found.flaw != Flaw::none || found.header.base_offset >= durable.offset) break;
      if (found.header.kind != FrameKind::data || found.header.time_max_ms < time_ms) continue;
      const ReadResult messages = ONCE_TRY(read(found.header.base_offset, 1, durable));
      for (const Delivery& delivery : messages.deliveries)
        if (delivery.timestamp_ms >= time_ms) return delivery.offset;
      return corrupt(found.position, "its messages are older than its header says");
    }
  }
  return durable.offset;
}

// Looks through the frames of one segment from a place on, and remembers where it found something.
Status Reader::find_in(std::int64_t segment, Place from, Search& search) {
  auto opened = open_segment(segment);
  if (!opened && opened.error().tag == "missing") return {};  // deleted
  if (!opened) return fail(std::move(opened).error());
  FrameWalker walker(*file_, from.position, expected_at(from), Depth::headers);
  while (!search.is_done()) {
    const Found found = ONCE_TRY(walker.next());
    const FrameHeader& header = found.header;
    if (found.flaw != Flaw::none || header.base_offset >= search.durable.offset) break;
    if (header.kind == FrameKind::data && search.add(header))
      last_found_ = {segment, {found.position, header.base_offset}};
  }
  return {};
}

Result<std::vector<Placed>> Reader::find(std::uint64_t producer, Interval sequences,
                                         const End& durable) {
  Search search{producer, sequences, durable, {}, {}};
  ONCE_TRY(first_offset());
  const std::vector<std::int64_t> segments = segments_;
  // A producer that sends an old message again usually goes on with the one behind it.
  if (last_found_) {
    const auto [segment, place] = *last_found_;
    const auto at = std::lower_bound(segments.begin(), segments.end(), segment);
    if (at != segments.end() && *at == segment) {
      ONCE_TRY(find_in(segment, place, search));
      if (std::next(at) != segments.end() && *std::next(at) < durable.offset)
        ONCE_TRY(find_in(*std::next(at), {0, *std::next(at)}, search));
    }
  }
  for (std::size_t i = segments.size(); i-- > 0 && !search.is_done();)
    if (segments[i] < durable.offset) ONCE_TRY(find_in(segments[i], {0, segments[i]}, search));
  return search.sorted();
}

}  // namespace once::log
