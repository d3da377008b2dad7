// SPDX-License-Identifier: Apache-2.0
#include "log/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/assert.h"
#include "base/failpoint.h"
#include "base/mutant.h"
#include "log/layout.h"
#include "log/limits.h"
#include "model/hint.h"
#include "model/message_view.h"
#include "model/random.h"

namespace once::log {
namespace {

constexpr std::size_t refused_groups_max = 1024;

// No fewer bytes than the message takes as a record.
std::size_t weight_of(const Message& message) {
  std::size_t bytes =
      64 + message.id.size() + view_of(message.key).size() + view_of(message.body).size();
  for (const Header& header : message.headers)
    bytes += 10 + header.name.size() + view_of(header.value).size();
  return bytes;
}

Error poisoned(Remedy remedy, const std::string& directory, const Error& cause) {
  if (cause.tag == "gone") return cause;
  return {remedy, "poisoned",
          fmt::format("{}: an earlier write failed ({}), so nobody knows what is on disk; open the "
                      "log again",
                      directory, cause.text),
          std::nullopt};
}

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

// --- staging

Result<Ticket> Partition::stage(const Stamp& stamp, std::span<const Message> messages) {
  if (poison_) return fail(poisoned(Remedy::stop, directory_, *poison_));
  Ticket ticket{0, 0, stamp, {next_offset_, 0}};
  if (messages.empty()) return ticket;
  std::size_t bytes = 0;
  ONCE_TRY(check_size(messages, bytes));
  if (pending_.bytes.size() + bytes > group_bytes_max && !pending_.parts.empty())
    return fail(Remedy::retry, "backlog",
                fmt::format("{}: {} bytes wait to be written; sync, then send again", directory_,
                            pending_.bytes.size()));
  if (stamp.producer == 0) {
    ticket.group = pending_.number;
    stage_fresh(stamp, messages, clock_.now_ms());
    return ticket;
  }
  if (stamp.sequence > std::numeric_limits<std::uint64_t>::max() - messages.size())
    return fail(Remedy::stop, "limit", fmt::format("sequence {} is too large", stamp.sequence));
  auto staged = stage_checked(stamp, messages);
  if (!staged && staged.error().tag == "gap" && options_.gaps == GapPolicy::hold)
    return hold(stamp, messages, bytes, staged.error());
  if (staged && !held_.empty()) release_held(stamp.producer);
  return staged;
}

Status Partition::check_size(std::span<const Message> messages, std::size_t& bytes) const {
  if (messages.size() > batch_count_max)
    return fail(Remedy::stop, "limit",
                fmt::format("{} messages in one append, at most {} are taken", messages.size(),
                            batch_count_max));
  for (const Message& message : messages) {
    const std::size_t weight = weight_of(message);
    bytes += weight;
    // The exact size is only worth the work when it is close.
    if ((weight > message_bytes_max || message.headers.size() > headers_max) &&
        record_bytes(message, 0, static_cast<std::uint32_t>(messages.size())) == 0)
      return fail(Remedy::park, "too_large",
                  fmt::format("a message of {} bytes and {} headers; at most {} and {} are taken",
                              weight, message.headers.size(), message_bytes_max, headers_max));
  }
  if (bytes > batch_bytes_max)
    return fail(Remedy::stop, "limit",
                fmt::format("{} bytes in one append, at most {} are taken; send fewer messages at "
                            "a time",
                            bytes, batch_bytes_max));
  return {};
}

Result<Ticket> Partition::stage_checked(const Stamp& stamp, std::span<const Message> messages) {
  const auto count = static_cast<std::uint32_t>(messages.size());
  const Check check = staged_table(stamp.producer).check(stamp, count, options_.gaps);
  switch (check.kind) {
    case Check::Kind::fresh: {
      const Ticket ticket{pending_.number, 0, stamp, {next_offset_, 0}};
      stage_fresh(stamp, messages, clock_.now_ms());
      return ticket;
    }
    case Check::Kind::duplicate: return stage_duplicate(stamp, check, count);
    case Check::Kind::mixed: {
      Ticket ticket = stage_duplicate(stamp, check, count);
      const bool first_is_fresh = check.fresh.front().begin == stamp.sequence;
      if (first_is_fresh) ticket.receipt.offset = next_offset_;
      ticket.group = pending_.number;
      const std::int64_t now_ms = clock_.now_ms();
      for (const Interval& part : check.fresh)
        stage_fresh({stamp.producer, stamp.epoch, part.begin},
                    messages.subspan(part.begin - stamp.sequence, part.end - part.begin), now_ms);
      return ticket;
    }
    case Check::Kind::gap:
    case Check::Kind::fenced:
    case Check::Kind::unknown:
    case Check::Kind::limit: break;
  }
  return refusal(stamp, check);
}

tl::unexpected<Error> Partition::refusal(const Stamp& stamp, const Check& check) const {
  const std::string who =
      fmt::format("{}: producer {:x} epoch {}", directory_, stamp.producer, stamp.epoch);
  if (check.kind == Check::Kind::fenced)
    return fail(Remedy::stop, "fenced",
                fmt::format("{} is over: epoch {} has entered", who, check.epoch));
  if (check.kind == Check::Kind::limit)
    return fail(Remedy::retry, "gap",
                fmt::format("{} has {} holes in its sequence; send what is missing from {} on", who,
                            intervals_max, check.next_sequence));
  if (check.kind == Check::Kind::gap && check.next_sequence == 0)
    return fail(Remedy::retry, "gap",
                fmt::format("{} begins with sequence {}, but nothing of it is here: this log was "
                            "made anew, or the messages before went elsewhere; send from 0 on, or "
                            "restore the log",
                            who, stamp.sequence));
  if (check.kind == Check::Kind::gap)
    return fail(Remedy::retry, "gap",
                fmt::format("{} sent {} before {}; send what is missing first", who, stamp.sequence,
                            check.next_sequence));
  if (staged_.horizon_ms() > 0)
    return fail(
        Remedy::stop, "too_old",
        fmt::format("{} is not known: producers last seen before {} ms were forgotten after "
                    "retention had deleted their messages. Whether these messages are new "
                    "cannot be told; enter again, and send only what was never sent",
                    who, staged_.horizon_ms()));
  return fail(Remedy::stop, "unknown", fmt::format("{} has never entered here; enter first", who));
}

ProducerTable& Partition::staged_table(std::uint64_t producer) {
  return staged_guests_.knows(producer) ? staged_guests_ : staged_;
}

// The messages were appended or staged before. They are answered when that is durable.
Ticket Partition::stage_duplicate(const Stamp& stamp, const Check& check, std::uint32_t count) {
  Ticket ticket{last_group(), 0, stamp, {-1, check.duplicates}};
  const ProducerTable& durable = guests_.knows(stamp.producer) ? guests_ : table_;
  if (mutant(Mutant::table_before_durable) ||
      durable.has_all(stamp.producer, stamp.sequence, count))
    ticket.group = 0;
  if (const auto offset = staged_table(stamp.producer).offset_of(stamp.producer, stamp.sequence))
    ticket.receipt.offset = *offset;
  return ticket;
}

Partition::Part& Partition::open_part(const Stamp& stamp, std::int64_t time_ms) {
  if (pending_.open) {
    Part& last = pending_.parts.back();
    const bool continues =
        last.sender.producer == stamp.producer && last.sender.epoch == stamp.epoch &&
        (stamp.producer == 0 || last.sender.sequence + last.batch.count() == stamp.sequence);
    const std::size_t bytes = pending_.bytes.size() - last.begin;
    if (continues && bytes < frame_bytes_goal) return last;
    close_part();
  }
  Part& part = pending_.parts.emplace_back();
  part.begin = pending_.bytes.size();
  part.header.base_offset = next_offset_;
  part.sender = stamp;
  part.header.stamp = staged_guests_.knows(stamp.producer) ? Stamp{} : stamp;
  pending_.bytes.grow(frame_header_bytes);
  part.batch = BatchWriter(pending_.bytes, next_offset_, part.header.stamp, time_ms);
  pending_.open = true;
  return part;
}

void Partition::close_part() {
  if (!pending_.open) return;
  Part& part = pending_.parts.back();
  part.header.record_count = part.batch.count();
  part.header.time_max_ms = part.batch.time_max_ms();
  pending_.bytes.grow(frame_end_bytes);
  part.end = pending_.bytes.size();
  pending_.open = false;
}

void Partition::stage_fresh(const Stamp& stamp, std::span<const Message> messages,
                            std::int64_t now_ms) {
  if (stamp.producer != 0)
    ONCE_ASSERT(staged_table(stamp.producer)
                    .apply(stamp, static_cast<std::uint32_t>(messages.size()), next_offset_));
  Stamp next = stamp;
  for (const Message& message : messages) {
    const std::int64_t time_ms = message.timestamp_ms != 0 ? message.timestamp_ms : now_ms;
    open_part(next, time_ms).batch.add(pending_.bytes, message, now_ms);
    if (stamp.producer != 0) ++next.sequence;
    ++next_offset_;
  }
}

Result<Ticket> Partition::stage_entry(std::string_view name) {
  if (poison_) return fail(poisoned(Remedy::stop, directory_, *poison_));
  if (name.empty()) return stage_guest();
  const Stamp stamp = ONCE_TRY(staged_.next_entry(name, options_.random));
  close_part();
  Part& part = pending_.parts.emplace_back();
  part.begin = pending_.bytes.size();
  part.header.kind = FrameKind::enter;
  part.header.base_offset = next_offset_;
  part.header.stamp = part.sender = stamp;
  pending_.bytes.grow(frame_header_bytes);
  pending_.bytes.append(name);
  pending_.bytes.grow(frame_end_bytes);
  part.end = pending_.bytes.size();
  ONCE_ASSERT(staged_.apply_entry(name, stamp.producer, stamp.epoch, next_offset_));
  // Whoever was held under the old epoch is fenced now.
  if (!held_.empty()) release_held(stamp.producer);
  return Ticket{pending_.number, 0, stamp, {next_offset_, 0}};
}

// Nothing is written: whoever comes without a name does not come again after this process.
Result<Ticket> Partition::stage_guest() {
  if (guest_ids_.size() >= guests_max) {
    const std::uint64_t oldest = guest_ids_.front();
    guest_ids_.pop_front();
    staged_guests_.forget(std::span(&oldest, 1));
    guests_.forget(std::span(&oldest, 1));
  }
  for (int draw = 0; draw < 100; ++draw) {
    const std::uint64_t id = options_.random() >> 1;
    const std::string name = fmt::format("{:x}", id);
    if (id == 0 || staged_.knows(id) || staged_guests_.knows(id)) continue;
    ONCE_ASSERT(staged_guests_.apply_entry(name, id, 1, next_offset_));
    ONCE_ASSERT(guests_.apply_entry(name, id, 1, next_offset_));
    guest_ids_.push_back(id);
    return Ticket{0, 0, {id, 1, 0}, {next_offset_, 0}};
  }
  return fail(Remedy::stop, "random", "the source of random numbers repeats itself");
}

// --- held batches

Result<Ticket> Partition::hold(const Stamp& stamp, std::span<const Message> messages,
                               std::size_t bytes, Error gap) {
  for (auto& [number, held] : held_)
    if (!held.settled && held.stamp == stamp && held.messages.size() == messages.size()) {
      ++held.tickets;
      return Ticket{0, number, stamp, {}};
    }
  if (held_.size() >= options_.hold_count_max || held_bytes_ + bytes > options_.hold_bytes_max)
    return fail(std::move(gap));
  const std::uint64_t number = held_next_++;
  held_.emplace(number, Held{stamp, {messages.begin(), messages.end()}, bytes, 1, std::nullopt});
  held_bytes_ += bytes;
  return Ticket{0, number, stamp, {}};
}

// Stages what was only waiting for its predecessors, in the order of its sequences.
void Partition::release_held(std::uint64_t producer) {
  for (;;) {
    Held* next = nullptr;
    for (auto& [number, held] : held_)
      if (!held.settled && held.stamp.producer == producer &&
          (next == nullptr || held.stamp.sequence < next->stamp.sequence))
        next = &held;
    if (next == nullptr) return;
    Result<Ticket> staged = stage_checked(next->stamp, next->messages);
    if (!staged && staged.error().tag == "gap") return;
    next->settled = std::move(staged);
    held_bytes_ -= next->bytes;
    next->messages.clear();
    next->bytes = 0;
  }
}

bool Partition::give_up(const Ticket& ticket) {
  const auto found = held_.find(ticket.held);
  if (found == held_.end() || found->second.settled) return false;
  if (--found->second.tickets > 0) return true;
  held_bytes_ -= found->second.bytes;
  held_.erase(found);
  return true;
}

// --- outcome

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

Result<Receipt> Partition::outcome(const Ticket& ticket) {
  if (ticket.held != 0) {
    const auto found = held_.find(ticket.held);
    if (found == held_.end())
      return fail(Remedy::retry, "gap",
                  fmt::format("{}: the messages before {} did not come in time", directory_,
                              ticket.stamp.sequence));
    if (!found->second.settled) {
      if (poison_) return fail(poisoned(Remedy::recheck, directory_, *poison_));
      return fail(Remedy::retry, "pending", "waits for the messages before it");
    }
    const Result<Ticket> settled = *found->second.settled;
    Result<Receipt> answer = settled ? outcome(*settled) : fail(settled.error());
    const bool is_known = answer || answer.error().tag != "pending";
    if (is_known && --found->second.tickets == 0) held_.erase(found);
    return answer;
  }
  if (ticket.group > landed_group_) {
    if (poison_) return fail(poisoned(Remedy::recheck, directory_, *poison_));
    return fail(Remedy::retry, "pending", "not yet durable: sync first");
  }
  if (ticket.group != 0) {
    for (const auto& [group, error] : refused_groups_)
      if (group == ticket.group) return fail(error);
    if (ticket.group <= forgotten_group_)
      return fail(Remedy::recheck, "forgotten", "asked too late what became of it");
  }
  Receipt receipt = ticket.receipt;
  if (receipt.offset < 0) {
    // Long ago: look it up in the log. What retention deleted stays -1.
    const auto found =
        ONCE_TRY(reader_.find(ticket.stamp.producer, ticket.stamp.sequence, durable_));
    receipt.offset = found.value_or(-1);
  }
  return receipt;
}

Result<std::optional<Message>> Partition::last_message(std::string_view producer) {
  const std::uint64_t next = table_.next_sequence(producer);
  if (next == 0) return std::nullopt;
  const std::uint64_t id = table_.id_of(producer);
  auto offset = table_.offset_of(id, next - 1);
  if (!offset) offset = ONCE_TRY(reader_.find(id, next - 1, durable_));
  if (!offset || *offset < first_offset()) return std::nullopt;
  const ReadResult found = ONCE_TRY(reader_.read(*offset, 1, durable_));
  if (found.deliveries.empty()) return std::nullopt;
  return message_of(found.deliveries.front());
}

Result<Stamp> Partition::enter(std::string_view name) {
  const Ticket ticket = ONCE_TRY(stage_entry(name));
  ONCE_TRY(sync());
  ONCE_TRY(outcome(ticket));
  return ticket.stamp;
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
    if (part.header.kind == FrameKind::data)
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
  if (poison_) return fail(poisoned(Remedy::stop, directory_, *poison_));
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
