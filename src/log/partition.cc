// SPDX-License-Identifier: Apache-2.0
#include "log/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/assert.h"
#include "base/failpoint.h"
#include "base/mutant.h"
#include "log/append_size.h"
#include "log/layout.h"
#include "log/limits.h"
#include "model/hint.h"
#include "model/message_view.h"
#include "model/random.h"

namespace once::log {
namespace {

constexpr std::size_t refused_groups_max = 1024;

// Once something was written, an error no longer means that nothing happened.
tl::unexpected<Error> unknown(const Status& failed) {
  return fail(Remedy::recheck, failed.error().tag, failed.error().text);
}

Status check_options(const PartitionOptions& options) {
  if (options.segment_bytes_max < segment_bytes_least ||
      options.segment_bytes_max > segment_bytes_most)
    return fail(Remedy::stop, "config",
                fmt::format("segment_bytes_max must be between {} and {}, not {}",
                            segment_bytes_least, segment_bytes_most, options.segment_bytes_max));
  if (options.retention_ms < -1 || options.retention_bytes < -1)
    return fail(Remedy::stop, "config", "a retention is -1 (for ever) or not negative");
  return {};
}

}  // namespace

Result<std::unique_ptr<Partition>> Partition::open(Files& files, Clock& clock,
                                                   const std::string& directory,
                                                   const PartitionOptions& options) {
  ONCE_TRY(check_options(options));
  PartitionOptions chosen = options;
  if (!chosen.random) chosen.random = random_number;
  Recovered recovered =
      ONCE_TRY(recover(files, directory, {chosen.random() | 1, chosen.must_exist}));
  auto watermark =
      ONCE_TRY(Watermark::open_to_write(files, directory, recovered.superblock.log_id));
  // Both slots, so that nothing older than this opening is left in them.
  ONCE_TRY(watermark->publish({recovered.end}));
  ONCE_TRY(watermark->publish({recovered.end}));
  std::unique_ptr<Partition> partition(new Partition(files, clock, directory, std::move(chosen),
                                                     std::move(recovered), std::move(watermark)));
  ONCE_TRY(partition->retain());
  return partition;
}

Partition::Partition(Files& files, Clock& clock, std::string directory, PartitionOptions options,
                     Recovered recovered, std::unique_ptr<Watermark> watermark)
    : files_(files),
      clock_(clock),
      directory_(std::move(directory)),
      options_(std::move(options)),
      staged_(recovered.table),
      next_offset_(recovered.end.offset),
      table_(std::move(recovered.table)),
      durable_(recovered.end),
      tail_(std::move(recovered.tail)),
      sealed_(std::move(recovered.sealed)),
      superblock_(recovered.superblock),
      watermark_(std::move(watermark)),
      reader_(files, directory_, superblock_.log_id) {
  pending_.number = 1;
}

// --- outcome

Error Partition::poisoned(Remedy remedy) const {
  if (poison_->tag == "gone") return *poison_;
  return {remedy, "poisoned",
          fmt::format("{}: an earlier write failed ({}), so nobody knows what is on disk; open the "
                      "log again",
                      directory_, poison_->text),
          std::nullopt};
}

std::uint64_t Partition::last_group() const {
  if (!pending_.parts.empty()) return pending_.number;
  return flying_ ? flight_.number : 0;
}

bool Partition::is_settled(const Ticket& ticket) const {
  if (ticket.held == 0) return ticket.group <= landed_group_ || poison_;
  const auto found = held_.find(ticket.held);
  if (found == held_.end() || poison_) return true;
  const auto& settled = found->second.settled;
  return settled && (!*settled || is_settled(**settled));
}

Error Partition::too_late(const Ticket& ticket) const {
  return {Remedy::retry, "gap",
          fmt::format("{}: the messages before {} did not come in time", directory_,
                      ticket.verdict.stamp.sequence),
          std::nullopt};
}

Result<Verdict> Partition::verdict(const Ticket& ticket) {
  if (ticket.held != 0) return verdict_of_held(ticket);
  if (ticket.group > landed_group_) {
    if (poison_) return fail(poisoned(Remedy::recheck));
    return fail(Remedy::retry, "pending", "not yet durable: sync first");
  }
  if (ticket.group != 0) {
    for (const auto& [group, error] : refused_groups_)
      if (group == ticket.group) return fail(error);
    if (ticket.group <= forgotten_group_)
      return fail(Remedy::recheck, "forgotten", "asked too late what became of it");
  }
  return ticket.verdict;
}

Result<Verdict> Partition::verdict_of_held(const Ticket& ticket) {
  const auto found = held_.find(ticket.held);
  if (found == held_.end()) return fail(too_late(ticket));
  if (!found->second.settled) {
    if (poison_) return fail(poisoned(Remedy::recheck));
    return fail(Remedy::retry, "pending", "waits for the messages before it");
  }
  const Result<Ticket> settled = *found->second.settled;
  Result<Verdict> answer = settled ? verdict(*settled) : fail(settled.error());
  const bool is_known = answer || answer.error().tag != "pending";
  if (is_known && --found->second.tickets == 0) held_.erase(found);
  return answer;
}

Result<Receipt> Partition::outcome(const Ticket& ticket) {
  Verdict judged = ONCE_TRY(verdict(ticket));
  if (judged.needs_lookup()) {
    ONCE_TRY(look_up(judged, reader_, durable_));
    ONCE_TRY(confirm(judged));
  }
  return judged.receipt();
}

Status Partition::confirm(const Verdict& verdict) const {
  if (!verdict.needs_lookup() || first_offset() > 0) return {};
  return fail(Remedy::stop, "corrupt",
              fmt::format("{} knows that producer {:x} sent messages from {} on, and has none of "
                          "them, though nothing was deleted; verify it",
                          directory_, verdict.stamp.producer, verdict.stamp.sequence));
}

Result<std::optional<Message>> Partition::last_message(std::string_view producer) {
  const auto place = last_place(producer);
  return place ? read_last(*place, reader_, durable_) : std::optional<Message>();
}

std::optional<LastPlace> Partition::last_place(std::string_view producer) const {
  const std::uint64_t next = table_.next_sequence(producer);
  if (next == 0) return std::nullopt;
  LastPlace last{table_.identity_of(producer).id, next - 1, std::nullopt};
  const auto places = table_.places_of(last.producer, {next - 1, next});
  if (!places.empty())
    last.offset = places.front().offset +
                  static_cast<std::int64_t>(next - 1 - places.front().sequences.begin);
  return last;
}

Result<std::optional<Message>> read_last(const LastPlace& last, Reader& reader,
                                         const End& durable) {
  std::optional<std::int64_t> offset = last.offset;
  if (!offset) {
    const Interval wanted{last.sequence, last.sequence + 1};
    const auto found = ONCE_TRY(reader.find(last.producer, wanted, durable));
    if (!found.empty()) offset = found.front().offset;
  }
  if (!offset) return std::nullopt;
  const auto found = reader.read(*offset, 1, durable);
  if (!found && found.error().tag == "gone" && *offset < ONCE_TRY(reader.first_offset()))
    return std::nullopt;
  if (!found) return fail(found.error());
  if (found->deliveries.empty()) return std::nullopt;
  return message_of(found->deliveries.front());
}

Result<Stamp> Partition::enter(std::string_view name) {
  const Ticket ticket = ONCE_TRY(stage_entry(name));
  ONCE_TRY(sync());
  ONCE_TRY(verdict(ticket));
  return ticket.verdict.stamp;
}

// --- writing

Status Partition::sync() {
  if (!take()) return {};
  Status flushed = flush();
  land(flushed);
  return flushed;
}

bool Partition::take() {
  if (flying_ || !has_pending()) return false;
  close_part();
  std::swap(flight_, pending_);
  pending_.number = flight_.number + 1;
  pending_.bytes.clear();
  pending_.parts.clear();
  pending_.refused = false;
  pending_.next_table.reset();
  flying_ = true;
  if (needs_segment()) prepare_segment();
  return true;
}

// A segment is named after its first message, so a new one needs a message in the old one. And it
// begins with the producers, so many of them make it longer: otherwise it would hold little else.
bool Partition::needs_segment() const {
  const std::int64_t bytes = tail_.position + static_cast<std::int64_t>(flight_.bytes.size());
  if (mutant(Mutant::roll_replaces_live_segment))
    return tail_.position > tail_.snapshot_bytes && bytes > options_.segment_bytes_max;
  return durable_.offset > tail_.base_offset &&
         bytes > std::max(options_.segment_bytes_max, 4 * tail_.snapshot_bytes);
}

// Decided while nothing can be staged: what is being written needs its producers.
void Partition::prepare_segment() {
  flight_.next_table = table_;
  const std::int64_t now_ms = clock_.now_ms();
  if (options_.retention_ms >= 0 || options_.retention_bytes >= 0) {
    const std::int64_t kept_ms = std::max(options_.retention_ms, producer_kept_ms_least);
    auto ids = table_.expired(superblock_.first_offset, now_ms - kept_ms);
    std::erase_if(ids, [&](std::uint64_t id) {
      return std::any_of(flight_.parts.begin(), flight_.parts.end(),
                         [&](const Part& part) { return part.sender.producer == id; });
    });
    flight_.next_table->forget(ids);
    staged_.forget(ids);
    staged_.set_horizon(flight_.next_table->horizon_ms());
  }
  flight_.next_table->begin_segment(now_ms);
}

Status Partition::flush() {
  const auto bytes = static_cast<std::int64_t>(flight_.bytes.size());
  Status prepared = flight_.next_table ? roll(bytes) : make_room(bytes);
  if (!prepared) {
    flight_.refused = flight_.refused || prepared.error().remedy == Remedy::retry;
    return prepared;
  }
  // Readers must not count what is written next before it is durable.
  if (Status told = watermark_->publish({durable_, true}); !told) return unknown(told);
  ONCE_TRY(write_group());
  return check_in_place();
}

// What is written to files that were moved away or deleted is durable and lost: nothing of it may
// be acknowledged.
Status Partition::check_in_place() {
  const auto there = tail_.file->is_in_place();
  if (!there) return unknown(fail(there.error()));
  if (*there) return {};
  return fail(
      Remedy::stop, "gone",
      fmt::format("{} was deleted, moved or replaced while it was written, and what was sent last "
                  "is not acknowledged. Put the directory back, or create the topic again "
                  "({}), then start again: senders that have a name send what is missing",
                  directory_, hint({"topic", "create", "file:" + parent_directory(directory_)})));
}

// Space is reserved before anything is written, so that a full disk refuses and harms nothing.
Status Partition::make_room(std::int64_t bytes) {
  const std::int64_t needed = tail_.position + bytes;
  if (needed <= tail_.reserved_bytes) return {};
  const std::int64_t goal = needed + std::min(options_.segment_bytes_max / 16, reserve_bytes_max);
  Status reserved = tail_.file->resize(goal);
  if (!reserved && goal > needed) reserved = tail_.file->resize(needed);
  if (!reserved) return reserved;
  tail_.reserved_bytes = ONCE_TRY(tail_.file->size());
  return {};
}

// The order matters: the old segment gets its final length, the new one its first frame and its
// name, all durable, before anything is acknowledged in the new one.
Status Partition::roll(std::int64_t bytes) {
  ONCE_POINT(log_before_roll);
  Status sealed = tail_.file->resize(tail_.position);
  if (sealed) sealed = tail_.file->sync();
  if (!sealed) return unknown(sealed);
  tail_.reserved_bytes = tail_.position;
  auto created =
      create_segment(files_, directory_, superblock_.log_id, durable_, *flight_.next_table,
                     std::max(bytes, std::min(options_.segment_bytes_max / 16, reserve_bytes_max)));
  if (!created && created.error().tag == "full")
    created = create_segment(files_, directory_, superblock_.log_id, durable_, *flight_.next_table,
                             bytes);
  if (!created) return fail(std::move(created).error());
  tail_.index.bytes = tail_.position;
  (void)save_index(files_, directory_, tail_.index);  // a cache: made again when it is missing
  sealed_.push_back({tail_.base_offset, tail_.position, tail_.index.time_max_ms});
  tail_ = std::move(*created);
  superblock_.durable = durable_;
  ++superblock_.generation;
  if (Status updated = update_superblock(files_, directory_, superblock_); !updated)
    return unknown(updated);
  ONCE_POINT(log_after_roll);
  // A failure here keeps more than was asked for; the next roll tries again.
  (void)retain();
  return {};
}

Status Partition::write_group() {
  const std::uint64_t synced_upto = durable_.address;
  std::int64_t position = tail_.position;
  for (Part& part : flight_.parts) {
    const std::size_t frame_bytes = part.end - part.begin;
    if (part.header.kind == FrameKind::data && !part.is_raw)
      part.batch.finish(flight_.bytes, part.end - frame_end_bytes);
    part.header.log_id = superblock_.log_id;
    part.header.address = tail_.base_address + static_cast<std::uint64_t>(position);
    part.header.synced_upto = synced_upto;
    seal_frame(flight_.bytes.at(part.begin), frame_bytes, position, part.header);
    position += static_cast<std::int64_t>(frame_bytes);
  }
  ONCE_POINT(log_before_write);
  const std::string_view bytes = flight_.bytes.view();
  if (Status written = tail_.file->write_at(tail_.position, std::span(&bytes, 1)); !written)
    return unknown(written);
  ONCE_POINT(log_after_write);
  if (Status synced = sync_tail(); !synced) return unknown(synced);
  ONCE_POINT(log_after_sync);
  const FrameHeader& last = flight_.parts.back().header;
  // Only readers in other processes miss this; the next group tells them again.
  (void)watermark_->publish({{last.end_address(), last.end_offset()}});
  return {};
}

Status Partition::sync_tail() {
  if (mutant(Mutant::ack_before_sync)) return {};
  Status synced = tail_.file->sync();
  if (!synced && mutant(Mutant::fsync_retried)) synced = tail_.file->sync();
  if (!synced && mutant(Mutant::sync_failure_acknowledged)) return {};
  return synced;
}

void Partition::land(const Status& flushed) {
  ONCE_ASSERT(flying_);
  flying_ = false;
  if (!flushed) {
    if (!flight_.refused) {
      poison_ = flushed.error();
      return;
    }
    take_back(flushed.error());
    return;
  }
  if (flight_.next_table) table_ = std::move(*flight_.next_table);
  std::int64_t position = tail_.position;
  for (const Part& part : flight_.parts) {
    const std::size_t body_begin = part.begin + frame_header_bytes;
    ONCE_ASSERT(
        apply_frame(part.header, flight_.bytes.view(body_begin, part.header.body_bytes), table_));
    if (guests_.knows(part.sender.producer))
      ONCE_ASSERT(guests_.apply(part.sender, part.header.record_count, part.header.base_offset));
    tail_.index.add(part.header, position);
    position += static_cast<std::int64_t>(part.header.frame_bytes());
  }
  tail_.position = position;
  const FrameHeader& last = flight_.parts.back().header;
  durable_ = {last.end_address(), last.end_offset()};
  landed_group_ = flight_.number;
}

// Nothing of the group was written. What was staged behind it was checked against it, so that goes
// as well.
void Partition::take_back(const Error& error) {
  for (const std::uint64_t group : {flight_.number, pending_.number}) {
    refused_groups_.emplace_back(group, error);
    if (refused_groups_.size() > refused_groups_max) {
      forgotten_group_ = refused_groups_.front().first;
      refused_groups_.pop_front();
    }
    landed_group_ = group;
  }
  const std::uint64_t next = pending_.number + 1;
  pending_.bytes.clear();
  pending_.parts.clear();
  pending_.open = false;
  pending_.number = next;
  next_offset_ = durable_.offset;
  if (mutant(Mutant::table_before_durable)) return;
  staged_ = table_;
  staged_guests_ = guests_;
}

// --- the rest

Result<ReadResult> Partition::read(std::int64_t offset, std::size_t bytes_max) {
  return reader_.read(offset, bytes_max, durable_);
}

Result<std::int64_t> Partition::offset_at(std::int64_t time_ms) {
  return reader_.offset_at(time_ms, durable_);
}

std::unique_ptr<Reader> Partition::make_reader() const {
  return std::make_unique<Reader>(files_, directory_, superblock_.log_id);
}

Result<StoredBatches> Partition::locate(std::int64_t offset, std::size_t bytes_max) {
  return reader_.locate(offset, bytes_max, durable_);
}

Status Partition::retain() {
  std::int64_t total = tail_.position;
  for (const SealedSegment& segment : sealed_) total += segment.bytes;
  std::size_t count = 0;
  const std::int64_t oldest_ms = clock_.now_ms() - options_.retention_ms;
  for (; count < sealed_.size(); ++count) {
    const SealedSegment& segment = sealed_[count];
    const bool too_old = options_.retention_ms >= 0 && segment.time_max_ms < oldest_ms;
    const bool too_much =
        options_.retention_bytes >= 0 && total - segment.bytes >= options_.retention_bytes;
    if (!too_old && !too_much) break;
    total -= segment.bytes;
  }
  if (count == 0) return {};
  // First it is made known that they are gone, then they go; a crash in between is finished later.
  Superblock next = superblock_;
  next.first_offset = count < sealed_.size() ? sealed_[count].base_offset : tail_.base_offset;
  ++next.generation;
  ONCE_TRY(update_superblock(files_, directory_, next));
  superblock_ = next;
  for (std::size_t i = 0; i < count; ++i) {
    ONCE_TRY(files_.remove(index_path(directory_, sealed_.front().base_offset)));
    ONCE_TRY(files_.remove(segment_path(directory_, sealed_.front().base_offset)));
    sealed_.erase(sealed_.begin());
  }
  return files_.sync_directory(directory_);
}

Status Partition::close() {
  if (poison_) return fail(poisoned(Remedy::stop));
  ONCE_ASSERT(!flying_);
  if (tail_.reserved_bytes > tail_.position) {
    ONCE_TRY(tail_.file->resize(tail_.position));
    tail_.reserved_bytes = tail_.position;
    ONCE_TRY(tail_.file->sync());
  }
  if (superblock_.durable == durable_) return {};
  superblock_.durable = durable_;
  ++superblock_.generation;
  return update_superblock(files_, directory_, superblock_);
}

PartitionInfo Partition::info() const {
  PartitionInfo info;
  info.first_offset = first_offset();
  info.end_offset = end_offset();
  info.bytes = tail_.position;
  for (const SealedSegment& segment : sealed_) info.bytes += segment.bytes;
  info.segments = static_cast<std::uint32_t>(sealed_.size() + 1);
  info.producers = static_cast<std::uint32_t>(table_.size());
  return info;
}

}  // namespace once::log
