// SPDX-License-Identifier: Apache-2.0
#include "log/producer_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/mutant.h"
#include "log/frame.h"
#include "log/limits.h"

namespace once::log {
namespace {

// The number with these low bits that is nearest to another one.
std::uint64_t nearest(std::uint64_t low, unsigned bits, std::uint64_t to) {
  const std::uint64_t step = std::uint64_t{1} << bits;
  const std::uint64_t here = (to & ~(step - 1)) | low;
  if (here < to && to - here > step / 2) return here + step;
  if (here > to && here - to > step / 2 && here >= step) return here - step;
  return here;
}

}  // namespace

Check ProducerTable::check(const Stamp& stamp, std::uint32_t count, GapPolicy gaps) const {
  Check answer;
  const auto found = producers_.find(stamp.producer);
  if (found == producers_.end()) {
    if (!mutant(Mutant::unknown_producer_accepted)) answer.kind = Check::Kind::unknown;
    return answer;
  }
  const Producer& producer = found->second;
  answer.epoch = producer.epoch;
  if (stamp.epoch != producer.epoch) {
    answer.kind = stamp.epoch < producer.epoch ? Check::Kind::fenced : Check::Kind::unknown;
    return answer;
  }
  const Interval asked{stamp.sequence, stamp.sequence + count};
  if (producer.seen.contains_all(asked) ||
      (mutant(Mutant::reordered_taken_for_duplicate) && asked.begin < producer.seen.end())) {
    answer.kind = Check::Kind::duplicate;
    answer.duplicates = count;
    return answer;
  }
  std::uint64_t first_fresh = asked.begin;
  if (!producer.seen.contains_none(asked)) {
    answer.kind = Check::Kind::mixed;
    answer.fresh = producer.seen.missing(asked);
    answer.duplicates = count;
    for (const Interval& part : answer.fresh)
      answer.duplicates -= static_cast<std::uint32_t>(part.end - part.begin);
    first_fresh = answer.fresh.front().begin;
    if (mutant(Mutant::drop_batch_for_one_duplicate)) {
      answer.kind = Check::Kind::duplicate;
      answer.duplicates = count;
      return answer;
    }
  }
  answer.next_sequence = producer.seen.prefix_end();
  if (gaps != GapPolicy::accept && first_fresh > answer.next_sequence &&
      !mutant(Mutant::gap_resets_sequence))
    answer.kind = Check::Kind::gap;
  else if (producer.seen.intervals().size() + answer.fresh.size() + 1 > intervals_max ||
           interval_count_ + answer.fresh.size() + 1 > intervals_total_max)
    // Whoever fills the first hole makes the set smaller, so that is always let through.
    if (first_fresh != answer.next_sequence) answer.kind = Check::Kind::limit;
  return answer;
}

bool ProducerTable::has_all(std::uint64_t producer, std::uint64_t sequence,
                            std::uint32_t count) const {
  const auto found = producers_.find(producer);
  return found != producers_.end() && found->second.seen.contains_all({sequence, sequence + count});
}

std::vector<Placed> ProducerTable::places_of(std::uint64_t producer, Interval sequences) const {
  std::vector<Placed> places;
  const auto found = producers_.find(producer);
  if (found == producers_.end()) return places;
  for (const Placed& range : found->second.ranges)
    if (range.sequences.begin < sequences.end && sequences.begin < range.sequences.end)
      places.push_back(range);
  std::sort(places.begin(), places.end(),
            [](const Placed& a, const Placed& b) { return a.sequences.begin < b.sequences.begin; });
  return places;
}

Result<Stamp> ProducerTable::next_entry(std::string_view name,
                                        const std::function<std::uint64_t()>& random,
                                        const Identity& wanted) const {
  if (name.empty() || name.size() > producer_name_bytes_max)
    return fail(Remedy::stop, "name",
                fmt::format("a producer's name has 1 to {} bytes, this one has {}",
                            producer_name_bytes_max, name.size()));
  const auto found = ids_.find(name);
  if (found != ids_.end()) {
    const Producer& producer = producers_.at(found->second);
    if (producer.epoch == std::numeric_limits<std::uint32_t>::max())
      return fail(Remedy::stop, "limit",
                  fmt::format("producer {} has used up its epochs; give it a new name", name));
    return Stamp{found->second, std::max(producer.epoch + 1, wanted.epoch), producer.seen.end()};
  }
  if (producers_.size() >= producers_max)
    return fail(Remedy::stop, "limit",
                fmt::format("this partition already knows {} producers; use stable names, or none. "
                            "A producer is forgotten {} days after its last message when a "
                            "retention has deleted all that it sent",
                            producers_max, producer_kept_ms_least / 86'400'000));
  const std::uint32_t epoch = std::max<std::uint32_t>(1, wanted.epoch);
  if (wanted.id != 0 && producers_.contains(wanted.id))
    return fail(Remedy::stop, "conflict",
                fmt::format("producer {} is to have the id {:x}, and {} has it here", name,
                            wanted.id, producers_.at(wanted.id).name));
  if (wanted.id != 0) return Stamp{wanted.id, epoch, 0};
  // 63 bits, because the record batch keeps it as a signed number; 0 means "no stamp".
  for (int draw = 0; draw < 100; ++draw) {
    const std::uint64_t id = random() >> 1;
    if (id != 0 && producers_.count(id) == 0) return Stamp{id, epoch, 0};
  }
  return fail(Remedy::stop, "random", "the source of random numbers repeats itself");
}

Stamp ProducerTable::widened(std::uint64_t producer, std::uint16_t epoch,
                             std::uint32_t sequence) const {
  constexpr unsigned epoch_bits = 15, sequence_bits = 31;
  const auto found = producers_.find(producer);
  if (found == producers_.end()) return {producer, epoch, sequence};
  const Producer& known = found->second;
  if (mutant(Mutant::raw_sequence_not_widened)) return {producer, known.epoch, sequence};
  const std::uint64_t sent = known.seen.end() - known.epoch_begin;
  return {producer, static_cast<std::uint32_t>(nearest(epoch, epoch_bits, known.epoch)),
          known.epoch_begin + nearest(sequence, sequence_bits, sent)};
}

std::uint64_t ProducerTable::next_sequence(std::string_view name) const {
  const auto found = ids_.find(name);
  return found == ids_.end() ? 0 : producers_.at(found->second).seen.end();
}

Identity ProducerTable::identity_of(std::string_view name) const {
  const auto found = ids_.find(name);
  if (found == ids_.end()) return {};
  return {found->second, producers_.at(found->second).epoch};
}

void ProducerTable::Producer::remember(const Placed& range) {
  if (!ranges.empty()) {
    Placed& last = ranges[newest];
    const auto length = static_cast<std::int64_t>(last.sequences.end - last.sequences.begin);
    if (last.sequences.end == range.sequences.begin && last.offset + length == range.offset) {
      last.sequences.end = range.sequences.end;
      return;
    }
  }
  if (ranges.size() < ranges_remembered) {
    newest = ranges.size();
    ranges.push_back(range);
  } else {
    newest = (newest + 1) % ranges.size();
    ranges[newest] = range;
  }
}

bool ProducerTable::apply(const Stamp& stamp, std::uint32_t count, std::int64_t base_offset) {
  auto found = producers_.find(stamp.producer);
  if (found == producers_.end() && mutant(Mutant::unknown_producer_accepted)) {
    found = producers_.try_emplace(stamp.producer).first;
    found->second.epoch = stamp.epoch;
  }
  const Interval added{stamp.sequence, stamp.sequence + count};
  if (found == producers_.end() || stamp.epoch != found->second.epoch) return false;
  Producer& producer = found->second;
  if (mutant(Mutant::gap_resets_sequence) && added.begin > producer.seen.end())
    producer.seen.clear();
  else if (!producer.seen.contains_none(added))
    return false;
  interval_count_ -= producer.seen.intervals().size();
  producer.seen.insert(added);
  interval_count_ += producer.seen.intervals().size();
  producer.remember({added, base_offset});
  producer.active = true;
  producer.end_offset = base_offset + count;
  return true;
}

bool ProducerTable::apply_entry(std::string_view name, std::uint64_t producer, std::uint32_t epoch,
                                std::int64_t base_offset) {
  const auto found = ids_.find(name);
  if (found != ids_.end()) {
    Producer& known = producers_.at(found->second);
    if (found->second != producer || epoch <= known.epoch) return false;
    known.epoch = epoch;
    known.epoch_begin = known.seen.end();
    known.active = true;
    known.end_offset = base_offset;
    return true;
  }
  if (producer == 0 || epoch == 0 || producers_.count(producer) != 0) return false;
  Producer added;
  added.name = name;
  added.epoch = epoch;
  added.end_offset = base_offset;
  producers_.emplace(producer, std::move(added));
  ids_.emplace(name, producer);
  return true;
}

void ProducerTable::begin_segment(std::int64_t now_ms) {
  for (auto& [id, producer] : producers_) {
    if (!producer.active) continue;
    producer.active = false;
    producer.last_ms = now_ms;
  }
}

std::vector<std::uint64_t> ProducerTable::expired(std::int64_t first_offset,
                                                  std::int64_t before_ms) const {
  std::vector<std::uint64_t> ids;
  for (const auto& [id, producer] : producers_)
    if (!producer.active && producer.end_offset <= first_offset && producer.last_ms < before_ms)
      ids.push_back(id);
  return ids;
}

void ProducerTable::forget(std::span<const std::uint64_t> producers) {
  for (const std::uint64_t id : producers) {
    const auto found = producers_.find(id);
    if (found == producers_.end()) continue;
    horizon_ms_ = std::max(horizon_ms_, found->second.last_ms);
    interval_count_ -= found->second.seen.intervals().size();
    ids_.erase(found->second.name);
    producers_.erase(found);
  }
}

// Horizon and count, then for each producer: id, epoch, where its sequences begin, when it was last
// seen, the offset below which everything of it is, length and bytes of the name, number of
// intervals and the intervals.
void ProducerTable::encode(Buffer& into) const {
  put_i64(into.grow(8), horizon_ms_);
  put_u32(into.grow(4), static_cast<std::uint32_t>(producers_.size()));
  for (const auto& [id, producer] : producers_) {
    put_u64(into.grow(8), id);
    put_u32(into.grow(4), producer.epoch);
    put_u64(into.grow(8), producer.epoch_begin);
    put_i64(into.grow(8), producer.last_ms);
    put_i64(into.grow(8), producer.end_offset);
    put_u16(into.grow(2), static_cast<std::uint16_t>(producer.name.size()));
    into.append(producer.name);
    std::vector<Interval> intervals = producer.seen.intervals();
    if (mutant(Mutant::snapshot_without_intervals) && !intervals.empty())
      intervals = {{intervals.back().end - 1, intervals.back().end}};
    put_u32(into.grow(4), static_cast<std::uint32_t>(intervals.size()));
    for (const Interval& interval : intervals) {
      put_u64(into.grow(8), interval.begin);
      put_u64(into.grow(8), interval.end);
    }
  }
}

Result<ProducerTable> ProducerTable::decode(std::string_view bytes, std::uint8_t version,
                                            std::int64_t base_offset) {
  const auto corrupt = [](std::string text) {
    return fail(Remedy::stop, "corrupt", "producer table: " + std::move(text));
  };
  const bool is_timed = version >= 2;
  const bool has_epoch_begin = version >= 3;
  ByteReader reader(bytes);
  ProducerTable table;
  if (is_timed) table.horizon_ms_ = reader.i64();
  const std::uint32_t count = reader.u32();
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
    const std::uint64_t id = reader.u64();
    const std::uint32_t epoch = reader.u32();
    // Before version 3 no batch had sequences that begin at 0 in each epoch.
    const std::uint64_t epoch_begin = has_epoch_begin ? reader.u64() : 0;
    // Version 1 does not say when a producer was last seen: it counts as seen now.
    const auto last_ms = is_timed ? reader.i64() : 0;
    const auto end_offset = is_timed ? reader.i64() : base_offset;
    const std::string_view name = reader.bytes(reader.u16());
    const std::uint32_t interval_count = reader.u32();
    if (!reader.ok() || name.size() > producer_name_bytes_max) return corrupt("malformed name");
    if (end_offset < 0 || end_offset > base_offset)
      return corrupt(fmt::format("producer {} is ahead of the log", id));
    if (!table.apply_entry(name, id, epoch, end_offset))
      return corrupt(fmt::format("{} is twice", id));
    Producer& producer = table.producers_.at(id);
    producer.epoch_begin = epoch_begin;
    producer.active = !is_timed;
    producer.last_ms = last_ms;
    for (std::uint32_t k = 0; k < interval_count && reader.ok(); ++k) {
      const std::uint64_t begin = reader.u64();
      const std::uint64_t end = reader.u64();
      const bool apart = producer.seen.intervals().empty() || begin > producer.seen.end();
      if (begin >= end || !apart) return corrupt(fmt::format("producer {} is out of order", id));
      producer.seen.insert({begin, end});
    }
    table.interval_count_ += producer.seen.intervals().size();
    if (epoch_begin > producer.seen.end())
      return corrupt(fmt::format("producer {} has an epoch that begins ahead of it", id));
  }
  if (!reader.ok() || reader.left() != 0) return corrupt("its length is wrong");
  return table;
}

bool ProducerTable::continues(const ProducerTable& before) const {
  if (horizon_ms_ < before.horizon_ms_) return false;
  for (const auto& [id, producer] : before.producers_) {
    const auto found = producers_.find(id);
    const bool is_forgotten =
        found == producers_.end() && !producer.active && producer.last_ms <= horizon_ms_;
    if (is_forgotten) continue;
    if (found == producers_.end() || found->second.name != producer.name ||
        found->second.epoch != producer.epoch || found->second.seen != producer.seen)
      return false;
  }
  return std::all_of(producers_.begin(), producers_.end(),
                     [&](const auto& entry) { return before.knows(entry.first); });
}

}  // namespace once::log
