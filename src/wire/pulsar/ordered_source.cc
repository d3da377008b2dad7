// SPDX-License-Identifier: Apache-2.0
#include "wire/pulsar/ordered_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/gone.h"

namespace once::pulsar {
namespace {

using std::chrono::milliseconds, std::chrono::steady_clock;

constexpr std::size_t window = 2'000;  // messages of a partition that wait here
// How often a partition that is quiet is asked where it ends, and a subscription that others have.
constexpr milliseconds ask_interval(100);
constexpr milliseconds claim_interval(500);
// For how long a message that is there is waited for.
constexpr std::int64_t first_ms = 10'000;

constexpr std::string_view retention_warning =
    "without a subscription the broker deletes messages by its retention alone, whether they are "
    "handled or not; add subscription=NAME";

Place entry_of(const Place& place) { return {place.ledger, place.entry, 0}; }

// Behind the last message. A ledger without entries ends at its beginning.
std::int64_t end_of(const Place& last) {
  if (last.entry >= 0) return offset_of(last).value_or(-2) + 1;
  return offset_of({last.ledger, 0, 0}).value_or(0);
}

}  // namespace

std::string partition_name(const Address& address, std::size_t number) {
  const std::string space = address.name_space == "public/default" ? "" : address.name_space + "/";
  return fmt::format("{}{}/{}", space, address.topic, number);
}

// The entries behind a batch.
struct OrderedSource::Memory {
  std::vector<std::shared_ptr<const Entry>> entries;
};

OrderedSource::OrderedSource(Address address, std::vector<std::string> topics)
    : client_(std::move(address)) {
  for (std::size_t i = 0; i < topics.size(); ++i) {
    names_.push_back(partition_name(client_.address(), i));
    partitions_[names_.back()].topic = topics[i];
  }
}

Result<std::unique_ptr<Source>> OrderedSource::open(const Address& address) {
  Client client(address);
  std::vector<std::string> topics = ONCE_TRY(client.topics());
  return std::unique_ptr<Source>(new OrderedSource(address, std::move(topics)));
}

SourceTraits OrderedSource::traits() const {
  SourceTraits traits{.name = client_.address().where(), .ordered = true, .replayable = true};
  traits.partitions = names_;
  if (client_.address().sharing == Sharing::none) traits.warnings.emplace_back(retention_warning);
  return traits;
}

OrderedSource::Partition* OrderedSource::find(std::string_view name) {
  const auto found = partitions_.find(name);
  return found == partitions_.end() ? nullptr : &found->second;
}

// --- Whose partitions they are

Status OrderedSource::look_after() {
  const bool has_claims = client_.address().sharing != Sharing::none;
  for (const std::string& name : names_) {
    Partition& partition = partitions_.find(name)->second;
    if (has_claims) {
      ONCE_TRY(look_after_claim(name, partition));
    } else if (!partition.is_ours) {
      partition.is_ours = true;
      events_.push_back({Batch::Event::assigned, name});
    }
    if (!partition.is_ours || !partition.is_sought) continue;
    if (partition.reader && !partition.reader->is_lost()) continue;
    if (steady_clock::now() < partition.ask_after) continue;
    partition.ask_after = steady_clock::now() + claim_interval;
    // The connection was lost: it goes on where it was, if that is still there.
    const Status opened = open_reader(name, partition, partition.next, has_claims);
    if (!opened && opened.error().remedy != Remedy::retry) return opened;
  }
  return {};
}

Status OrderedSource::look_after_claim(std::string_view name, Partition& partition) {
  const bool has_it =
      partition.claim && !partition.claim->is_lost() && partition.claim->is_active();
  if (partition.is_ours && !has_it) {
    partition.is_ours = partition.is_sought = false;
    partition.reader.reset();
    partition.front.reset();
    events_.push_back({Batch::Event::revoked, name});
  }
  if (has_it && !partition.is_ours) {
    partition.is_ours = true;
    events_.push_back({Batch::Event::assigned, name});
  }
  if (partition.claim && !partition.claim->is_lost()) return {};
  if (steady_clock::now() < partition.ask_after) return {};
  partition.ask_after = steady_clock::now() + claim_interval;
  const Address& address = client_.address();
  partition.claim.reset();
  auto claim = Consumer::open(
      client_, {.topic = partition.topic,
                .subscription = address.subscription,
                .type = address.sharing == Sharing::exclusive ? SubscriptionType::exclusive
                                                              : SubscriptionType::failover});
  if (claim) partition.claim = std::move(*claim);
  // Away, or another consumer has it: it is tried again.
  if (!claim && claim.error().remedy == Remedy::stop) return fail(claim.error());
  return {};
}

// --- Where it is read

Status OrderedSource::seek(std::string_view name, std::int64_t offset) {
  Partition* const partition = find(name);
  if (partition == nullptr || !partition->is_ours)
    return fail(Remedy::stop, "partition",
                fmt::format("{}: the partition {} is not ours", client_.address().where(), name));
  // Whoever looks for what was handled last, and then for what comes next, has a position: what is
  // handled may be deleted, as long as the subscription covers the rest.
  const bool may_be_behind = partition->refused >= 0 && offset > partition->refused;
  const Status opened = open_reader(name, *partition, offset, may_be_behind);
  if (!opened) {
    partition->reader.reset();
    if (opened.error().tag == "gone") partition->refused = offset;
    return opened;
  }
  partition->refused = -1;
  partition->is_sought = true;
  partition->next = offset;
  partition->again_until = -1;
  partition->attempt = 1;
  return {};
}

Status OrderedSource::open_reader(std::string_view name, Partition& partition, std::int64_t offset,
                                  bool may_be_behind) {
  partition.reader.reset();
  partition.front.reset();
  partition.front_index = 0;
  partition.at_end = false;
  Place behind = earliest_place;
  if (offset >= 0) {
    behind = entry_of(place_of(offset));
    --behind.entry;
  }
  partition.reader = ONCE_TRY(Consumer::open(client_, {.topic = partition.topic,
                                                       .subscription = private_subscription(),
                                                       .durable = false,
                                                       .behind = behind}));
  if (offset < 0) return {};
  return check_there(name, partition, offset, may_be_behind);
}

// The entry of the offset, or of the message before it, must be there: what is missing before the
// next one may have been deleted unread.
Status OrderedSource::check_there(std::string_view name, Partition& partition, std::int64_t offset,
                                  bool may_be_behind) {
  const Place place = entry_of(place_of(offset));
  const Place last = ONCE_TRY(partition.reader->last()).place;
  if (entry_of(last) < place) {
    if (may_be_behind && is_covered(partition, place)) return {};
    const std::int64_t end = end_of(last);
    return offset <= end ? Status() : fail(ends_before_error(name, end, offset));
  }
  std::optional<Place> first;
  const net::Deadline deadline = net::in_ms(first_ms);
  while (last.entry >= 0 && !partition.reader->has_some()) {
    if (steady_clock::now() >= deadline || partition.reader->is_lost())
      return fail(
          Remedy::retry, "away",
          fmt::format("{}: the broker does not deliver from {} on", partition.topic, shown(place)));
    ONCE_TRY(partition.reader->want(window));
    client_.serve(deadline);
  }
  if (partition.reader->has_some()) {
    Received received = ONCE_TRY(partition.reader->take());
    first = received.place;
    partition.front = std::move(received);
  }
  if (first && entry_of(*first) <= place) return {};
  if (may_be_behind && is_covered(partition, place)) return {};
  return fail(forgotten_error(name, offset, end_of(first ? *first : last) - (first ? 1 : 0)));
}

// Whether the subscription has kept everything from there on. A ledger whose messages are all
// acknowledged is deleted, and the subscription then stands before the next one (entry -1).
bool OrderedSource::is_covered(const Partition& partition, const Place& place) const {
  if (!partition.claim) return false;
  const auto last = partition.claim->last();
  if (!last || !last->mark_delete) return false;
  const Place& done = *last->mark_delete;
  return entry_of(done) <= place || done.entry < 0;
}

Result<std::vector<PartitionEnd>> OrderedSource::ends() {
  std::vector<PartitionEnd> ends;
  for (const std::string& name : names_) {
    Partition& partition = partitions_.find(name)->second;
    Place last;
    if (partition.reader && !partition.reader->is_lost()) {
      last = ONCE_TRY(partition.reader->last()).place;
    } else {
      const auto looker = ONCE_TRY(Consumer::open(
          client_,
          {.topic = partition.topic, .subscription = private_subscription(), .durable = false}));
      last = ONCE_TRY(looker->last()).place;
    }
    ends.push_back({name, end_of(last)});
  }
  return ends;
}

// --- Messages

Result<Batch> OrderedSource::poll(std::size_t count_max, std::int64_t wait_ms) {
  const net::Deadline deadline = net::in_ms(wait_ms);
  while (true) {
    ONCE_TRY(look_after());
    if (!events_.empty()) {
      Batch batch;
      batch.event = events_.front().kind;
      batch.partition = events_.front().partition;
      events_.pop_front();
      return batch;
    }
    if (count_max > 0) {
      auto batch = ONCE_TRY(next_batch(count_max));
      if (batch) return std::move(*batch);
    }
    const bool is_over = steady_clock::now() >= deadline;
    if (count_max > 0 && all_at_end()) {
      Batch batch;
      batch.drained = true;
      if (client_.address().stop_at_end) batch.event = Batch::Event::end;
      if (is_over || client_.address().stop_at_end) return batch;
    }
    if (is_over) return Batch();
    client_.serve(std::min(deadline, net::in_ms(ask_interval.count())));
  }
}

// The partitions take turns.
Result<std::optional<Batch>> OrderedSource::next_batch(std::size_t count_max) {
  client_.serve({});
  const auto after = partitions_.upper_bound(turn_);
  std::vector<std::pair<const std::string*, Partition*>> order;
  for (auto at = after; at != partitions_.end(); ++at) order.emplace_back(&at->first, &at->second);
  for (auto at = partitions_.begin(); at != after; ++at)
    order.emplace_back(&at->first, &at->second);
  for (const auto& [name, partition] : order) {
    if (!partition->is_ours || !partition->is_sought || !partition->reader) continue;
    if (!partition->reader->is_lost()) ONCE_TRY(partition->reader->want(window));
    Batch batch = ONCE_TRY(batch_of(*name, *partition, count_max));
    if (!batch.deliveries.empty()) {
      turn_ = *name;
      return batch;
    }
    ONCE_TRY(look_for_end(*partition));
  }
  return std::nullopt;
}

Result<Batch> OrderedSource::batch_of(std::string_view name, Partition& partition,
                                      std::size_t count_max) {
  Batch batch;
  auto memory = std::make_shared<Memory>();
  while (batch.deliveries.size() < count_max) {
    if (!partition.front) {
      if (!partition.reader->has_some()) break;
      auto received = partition.reader->take();
      // What came before it is delivered first.
      if (!received && !batch.deliveries.empty()) break;
      if (!received) return fail(received.error());
      partition.front = std::move(*received);
      partition.front_index = 0;
    }
    ONCE_TRY(take_entry(name, partition, count_max, batch, *memory));
  }
  if (batch.deliveries.empty()) return batch;
  batch.partition = name;
  batch.end_offset = batch.deliveries.back().offset + 1;
  batch.available_offset = partition.end >= batch.end_offset ? partition.end : -1;
  batch.memory = std::move(memory);
  partition.next = batch.end_offset;
  partition.at_end = false;
  return batch;
}

// As much as is wanted of the entry that is in front.
Status OrderedSource::take_entry(std::string_view name, Partition& partition, std::size_t count_max,
                                 Batch& batch, Memory& memory) {
  const Received& received = *partition.front;
  for (; partition.front_index < received.entry->size(); ++partition.front_index) {
    if (batch.deliveries.size() == count_max) return {};
    Place place = received.place;
    place.index = static_cast<std::int32_t>(partition.front_index);
    const auto offset = offset_of(place);
    if (!offset)
      return fail(Remedy::stop, "unsupported",
                  fmt::format("{}: the place {} does not fit into an offset: at most ledger {} and "
                              "entry {}",
                              partition.topic, shown(place), ledger_max, entry_max));
    if (*offset < partition.next || received.entry->is_removed(partition.front_index)) continue;
    if (memory.entries.empty() || memory.entries.back() != received.entry)
      memory.entries.push_back(received.entry);
    if (partition.claim && received.entry->size() > 1)
      partition.batches[received.place] = static_cast<std::int32_t>(received.entry->size());
    Delivery delivery = received.entry->delivery(partition.front_index);
    delivery.partition = name;
    delivery.offset = *offset;
    delivery.attempt = *offset < partition.again_until ? partition.attempt : 1;
    batch.deliveries.push_back(delivery);
  }
  partition.front.reset();
  return {};
}

// Nothing is here: is that all there is?
Status OrderedSource::look_for_end(Partition& partition) {
  if (partition.reader->is_lost() || steady_clock::now() < partition.ask_after) return {};
  partition.ask_after = steady_clock::now() + ask_interval;
  const auto last = partition.reader->last();
  if (!last) return {};  // the reader is lost, and opened again
  partition.end = end_of(last->place);
  partition.at_end =
      !partition.front && !partition.reader->has_some() &&
      (last->place.entry < 0 || std::max<std::int64_t>(partition.next, 0) >= partition.end);
  return {};
}

// Of those that are ours; a member of a subscription may have none.
bool OrderedSource::all_at_end() const {
  bool has_some = false;
  for (const auto& [name, partition] : partitions_) {
    if (!partition.is_ours) continue;
    if (!partition.is_sought || !partition.at_end) return false;
    has_some = true;
  }
  return has_some;
}

Status OrderedSource::ack(std::span<const Delivery> done) {
  std::map<std::string_view, std::int64_t> last;
  for (const Delivery& delivery : done) {
    std::int64_t& offset = last[delivery.partition];
    offset = std::max(offset, delivery.offset);
  }
  for (const auto& [name, offset] : last) {
    Partition* const partition = find(name);
    if (partition == nullptr || !partition->claim || partition->claim->is_lost()) continue;
    const Place place = place_of(offset);
    AckedEntry entry{.place = entry_of(place)};
    const auto batch = partition->batches.find(entry.place);
    // Of a batch only a part may be done: what is before it is.
    if (batch != partition->batches.end() && place.index + 1 < batch->second) --entry.place.entry;
    partition->batches.erase(partition->batches.begin(),
                             partition->batches.upper_bound(entry.place));
    if (entry.place.entry < 0) continue;
    // A hint: the position is in the store.
    (void)partition->claim->ack(std::span(&entry, 1), true, false);
  }
  return {};
}

Status OrderedSource::release(std::span<const Delivery> undone, std::int64_t) {
  std::map<std::string_view, std::int64_t> first;
  for (const Delivery& delivery : undone) {
    const auto known = first.try_emplace(delivery.partition, delivery.offset).first;
    known->second = std::min(known->second, delivery.offset);
  }
  for (const auto& [name, offset] : first) {
    Partition* const partition = find(name);
    if (partition == nullptr || !partition->is_ours || !partition->is_sought) continue;
    if (offset >= partition->next) continue;
    partition->again_until = std::max(partition->again_until, partition->next);
    ++partition->attempt;
    partition->next = offset;
    partition->reader.reset();
    partition->front.reset();
    partition->ask_after = {};
  }
  return {};
}

}  // namespace once::pulsar
