// SPDX-License-Identifier: Apache-2.0
// How a partition takes what is to be appended: checked against everything that is durable or
// staged, and put into the pending group. Nothing here touches the disk.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/assert.h"
#include "base/mutant.h"
#include "log/append_size.h"
#include "log/limits.h"
#include "log/partition.h"

namespace once::log {
Result<Ticket> Partition::stage(Append append) {
  if (poison_) return fail(poisoned(Remedy::stop));
  if (append.raw != nullptr) append.stamp = stamp_of(*append.raw);
  const Stamp& stamp = append.stamp;
  if (append.count() == 0) return Ticket{0, 0, new_ticket(append).verdict};
  const std::size_t bytes = ONCE_TRY(check_size(append));
  if (pending_.bytes.size() + bytes > group_bytes_max && !pending_.parts.empty())
    return fail(Remedy::retry, "backlog",
                fmt::format("{}: {} bytes wait to be written; sync, then send again", directory_,
                            pending_.bytes.size()));
  if (stamp.producer == 0) {
    Ticket ticket = new_ticket(append);
    stage_fresh(append, clock_.now_ms());
    return ticket;
  }
  if (stamp.sequence > std::numeric_limits<std::uint64_t>::max() - append.count())
    return fail(Remedy::stop, "limit", fmt::format("sequence {} is too large", stamp.sequence));
  auto staged = stage_checked(append);
  if (!staged && staged.error().tag == "gap" && options_.gaps == GapPolicy::hold)
    return hold(append, bytes, staged.error());
  if (staged && !held_.empty()) release_held(stamp.producer);
  return staged;
}

Stamp Partition::stamp_of(const RawBatch& batch) {
  if (!batch.has_producer()) return {};
  const auto producer = static_cast<std::uint64_t>(batch.header.producer);
  return staged_table(producer).widened(producer, batch.header.epoch, batch.header.sequence);
}

Result<std::size_t> Partition::check_size(const Append& append) const {
  // A record batch was checked when it came.
  if (append.raw != nullptr) return append.raw->bytes.size() + frame_overhead_bytes;
  if (append.count() > batch_count_max)
    return fail(Remedy::stop, "limit",
                fmt::format("{} messages in one append, at most {} are taken", append.count(),
                            batch_count_max));
  const std::size_t bytes = ONCE_TRY(weigh(append.messages));
  if (bytes > batch_bytes_max)
    return fail(Remedy::stop, "limit",
                fmt::format("{} bytes in one append, at most {} are taken; send fewer messages at "
                            "a time",
                            bytes, batch_bytes_max));
  return bytes;
}

Result<Ticket> Partition::stage_checked(const Append& append) {
  const Stamp& stamp = append.stamp;
  const Check check = staged_table(stamp.producer).check(stamp, append.count(), options_.gaps);
  switch (check.kind) {
    case Check::Kind::fresh: {
      Ticket ticket = new_ticket(append);
      stage_fresh(append, clock_.now_ms());
      return ticket;
    }
    case Check::Kind::duplicate: return stage_duplicate(stamp, append.count());
    case Check::Kind::mixed: return stage_mixed(append, check);
    case Check::Kind::gap:
    case Check::Kind::fenced:
    case Check::Kind::unknown:
    case Check::Kind::limit: break;
  }
  return refusal(stamp, check);
}

// Only the new messages are appended. For that a record batch has to be opened, so one that cannot
// be opened is refused.
Result<Ticket> Partition::stage_mixed(const Append& append, const Check& check) {
  const Stamp& stamp = append.stamp;
  std::vector<Message> opened;
  if (append.raw != nullptr) {
    if (append.raw->header.is_compressed())
      return fail(Remedy::park, "mixed",
                  fmt::format("{}: producer {:x} sent {} of the messages from {} on before, and a "
                              "compressed batch cannot be divided; send the same batches again",
                              directory_, stamp.producer, check.duplicates, stamp.sequence));
    opened = ONCE_TRY(messages_of(*append.raw));
  }
  const std::span<const Message> messages = append.raw != nullptr ? opened : append.messages;
  Ticket ticket{pending_.number, 0, {stamp, {}}};
  std::vector<Run>& runs = ticket.verdict.runs;
  const std::int64_t now_ms = clock_.now_ms();
  std::uint64_t next = stamp.sequence;
  for (const Interval& part : check.fresh) {
    if (next < part.begin) add_originals(ticket.verdict, {next, part.begin});
    const auto begin = static_cast<std::uint32_t>(part.begin - stamp.sequence);
    const auto count = static_cast<std::uint32_t>(part.end - part.begin);
    runs.push_back({begin, count, false, next_offset_});
    stage_fresh({.stamp = {stamp.producer, stamp.epoch, part.begin},
                 .messages = messages.subspan(begin, count)},
                now_ms);
    next = part.end;
  }
  const std::uint64_t end = stamp.sequence + append.count();
  if (next < end) add_originals(ticket.verdict, {next, end});
  return ticket;
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

// All messages are new.
Ticket Partition::new_ticket(const Append& append) const {
  return {pending_.number, 0, {append.stamp, {{0, append.count(), false, next_offset_}}}};
}

// The messages were appended or staged before. They are answered when that is durable.
Ticket Partition::stage_duplicate(const Stamp& stamp, std::uint32_t count) {
  Ticket ticket{last_group(), 0, {stamp, {}}};
  const ProducerTable& durable = guests_.knows(stamp.producer) ? guests_ : table_;
  if (mutant(Mutant::table_before_durable) ||
      durable.has_all(stamp.producer, stamp.sequence, count))
    ticket.group = 0;
  add_originals(ticket.verdict, {stamp.sequence, stamp.sequence + count});
  return ticket;
}

void Partition::add_originals(Verdict& verdict, Interval sequences) {
  const std::uint64_t producer = verdict.stamp.producer;
  add_duplicates(verdict.runs, verdict.stamp.sequence, sequences,
                 staged_table(producer).places_of(producer, sequences));
}

// A new frame at the end of the pending group, with room for its header.
Partition::Part& Partition::begin_part(FrameKind kind, const Stamp& sender) {
  close_part();
  Part& part = pending_.parts.emplace_back();
  part.begin = pending_.bytes.size();
  part.header.kind = kind;
  part.header.base_offset = next_offset_;
  part.sender = sender;
  part.header.stamp = staged_guests_.knows(sender.producer) ? Stamp{} : sender;
  pending_.bytes.grow(frame_header_bytes);
  return part;
}

void Partition::end_part(Part& part) {
  pending_.bytes.grow(frame_end_bytes);
  part.end = pending_.bytes.size();
}

// The frame that takes the next message: the last one, if it fits.
Partition::Part& Partition::open_part(const Stamp& stamp, std::int64_t time_ms) {
  if (pending_.open) {
    Part& last = pending_.parts.back();
    const bool continues =
        last.sender.producer == stamp.producer && last.sender.epoch == stamp.epoch &&
        (stamp.producer == 0 || last.sender.sequence + last.batch.count() == stamp.sequence);
    const std::size_t bytes = pending_.bytes.size() - last.begin;
    if (continues && bytes < frame_bytes_goal) return last;
  }
  Part& part = begin_part(FrameKind::data, stamp);
  part.batch = BatchWriter(pending_.bytes, next_offset_, part.header.stamp, time_ms);
  pending_.open = true;
  return part;
}

void Partition::close_part() {
  if (!pending_.open) return;
  Part& part = pending_.parts.back();
  part.header.record_count = part.batch.count();
  part.header.time_max_ms = part.batch.time_max_ms();
  end_part(part);
  pending_.open = false;
}

void Partition::stage_fresh(const Append& append, std::int64_t now_ms) {
  const Stamp& stamp = append.stamp;
  if (stamp.producer != 0)
    ONCE_ASSERT(staged_table(stamp.producer).apply(stamp, append.count(), next_offset_));
  if (append.raw != nullptr) return stage_raw(stamp, *append.raw);
  Stamp next = stamp;
  for (const Message& message : append.messages) {
    const std::int64_t time_ms = message.timestamp_ms != 0 ? message.timestamp_ms : now_ms;
    open_part(next, time_ms).batch.add(pending_.bytes, message, now_ms);
    if (stamp.producer != 0) ++next.sequence;
    ++next_offset_;
  }
}

// A record batch is a frame of its own.
void Partition::stage_raw(const Stamp& stamp, const RawBatch& batch) {
  Part& part = begin_part(FrameKind::data, stamp);
  part.is_raw = true;
  part.header.record_count = batch.header.count;
  part.header.time_max_ms = batch.time_max_ms;
  if (batch.header.is_compressed()) part.header.version = compressed_version;
  put_raw_batch(pending_.bytes, batch, next_offset_);
  end_part(part);
  next_offset_ += batch.header.count;
}

Result<Ticket> Partition::stage_entry(std::string_view name, const Identity& wanted) {
  if (poison_) return fail(poisoned(Remedy::stop));
  if (name.empty()) return stage_guest();
  const Stamp stamp = ONCE_TRY(staged_.next_entry(name, options_.random, wanted));
  Part& part = begin_part(FrameKind::enter, stamp);
  pending_.bytes.append(name);
  end_part(part);
  ONCE_ASSERT(staged_.apply_entry(name, stamp.producer, stamp.epoch, next_offset_));
  // Whoever was held under the old epoch is fenced now.
  if (!held_.empty()) release_held(stamp.producer);
  return Ticket{pending_.number, 0, {stamp, {}}};
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
    return Ticket{0, 0, {{id, 1, 0}, {}}};
  }
  return fail(Remedy::stop, "random", "the source of random numbers repeats itself");
}

// --- held appends

Partition::Held::Held(const Append& append, std::size_t size)
    : stamp(append.stamp),
      count(append.count()),
      messages(append.messages.begin(), append.messages.end()),
      bytes(size) {
  if (append.raw == nullptr) return;
  raw_bytes = append.raw->bytes;
  raw = *append.raw;
}

Append Partition::Held::append() {
  if (raw) raw->bytes = raw_bytes;
  return {.stamp = stamp, .messages = messages, .raw = raw ? &*raw : nullptr};
}

void Partition::Held::drop_content() {
  messages.clear();
  raw_bytes.clear();
  bytes = 0;
}

Result<Ticket> Partition::hold(const Append& append, std::size_t bytes, Error gap) {
  const Stamp& stamp = append.stamp;
  for (auto& [number, held] : held_)
    if (!held.settled && held.stamp == stamp && held.count == append.count()) {
      ++held.tickets;
      return Ticket{0, number, {stamp, {}}};
    }
  if (held_.size() >= options_.hold_count_max || held_bytes_ + bytes > options_.hold_bytes_max)
    return fail(std::move(gap));
  const std::uint64_t number = held_next_++;
  held_.emplace(number, Held(append, bytes));
  held_bytes_ += bytes;
  return Ticket{0, number, {stamp, {}}};
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
    Result<Ticket> staged = stage_checked(next->append());
    if (!staged && staged.error().tag == "gap") return;
    next->settled = std::move(staged);
    held_bytes_ -= next->bytes;
    next->drop_content();
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

}  // namespace once::log
