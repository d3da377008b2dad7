// SPDX-License-Identifier: Apache-2.0
#include "wire/pulsar/queue_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "wire/pulsar/ordered_source.h"

namespace once::pulsar {
namespace {

using std::chrono::milliseconds, std::chrono::steady_clock;

constexpr std::size_t window = 1'000;  // messages that wait here for a poll
constexpr milliseconds look_interval(100);
constexpr milliseconds connect_interval(500);
// Kept here, while the entry is ours.
constexpr std::int64_t delay_ms_max = 3'600'000;
constexpr std::size_t acks_max = 1'000;  // in one command
constexpr std::size_t seen_max = 50'000;

constexpr std::string_view ack_warning =
    "a message that was acknowledged can come again after a crash of the broker, unless it has "
    "managedLedgerDefaultMarkDeleteRateLimit=0";

Place entry_of(const Place& place) { return {place.ledger, place.entry, 0}; }

Place message_of(const Place& entry, std::size_t index) {
  return {entry.ledger, entry.entry, static_cast<std::int32_t>(index)};
}

}  // namespace

QueueSource::QueueSource(Address address, std::vector<std::string> topics)
    : client_(std::move(address)) {
  for (std::size_t i = 0; i < topics.size(); ++i)
    partitions_[partition_name(client_.address(), i)].topic = topics[i];
}

Result<std::unique_ptr<Source>> QueueSource::open(const Address& address) {
  Client client(address);
  std::vector<std::string> topics = ONCE_TRY(client.topics());
  return std::unique_ptr<Source>(new QueueSource(address, std::move(topics)));
}

// What is not done comes again at once, to whoever is there.
QueueSource::~QueueSource() = default;

SourceTraits QueueSource::traits() const {
  SourceTraits traits{.name = client_.address().where(), .ordered = false};
  for (const auto& [name, partition] : partitions_) traits.partitions.push_back(name);
  traits.delay_ms_max = delay_ms_max;
  traits.unacknowledged_max = client_.address().unacknowledged_max;
  traits.warnings.emplace_back(ack_warning);
  return traits;
}

// --- Connections

Status QueueSource::look_after(std::size_t count_max) {
  client_.serve({});
  for (auto& [name, partition] : partitions_) {
    if (partition.consumer && partition.consumer->is_lost()) lose(partition);
    if (!partition.consumer) ONCE_TRY(connect(partition));
    if (!partition.consumer) continue;
    ONCE_TRY(take_in(partition, count_max));
    // An error means that the consumer is lost: found out with the next look.
    (void)give_back_due(partition);
  }
  return {};
}

Status QueueSource::connect(Partition& partition) {
  if (steady_clock::now() < partition.ask_after) return {};
  partition.ask_after = steady_clock::now() + connect_interval;
  const Address& address = client_.address();
  auto consumer = Consumer::open(
      client_, {.topic = partition.topic,
                .subscription = address.subscription,
                .type = address.sharing == Sharing::shared ? SubscriptionType::shared
                                                           : SubscriptionType::key_shared});
  if (consumer) {
    partition.consumer = std::move(*consumer);
    partition.session = ++last_session_;
    return {};
  }
  if (consumer.error().remedy == Remedy::stop || consumer.error().tag == "busy")
    return fail(consumer.error());
  return {};
}

// The broker delivers everything again that it has no ack of, and does not tell that it is again.
void QueueSource::lose(Partition& partition) {
  for (const auto& [place, held] : partition.held) {
    if (partition.seen.size() >= seen_max) break;
    Seen& seen = partition.seen[place];
    seen.attempt = held.attempt;
    seen.done.assign(held.states.size(), false);
    for (std::size_t i = 0; i < held.states.size(); ++i)
      seen.done[i] = held.states[i] == State::done;
  }
  partition.held.clear();
  partition.out.clear();
  partition.ready.clear();
  partition.returning.clear();
  partition.consumer.reset();
  partition.ask_after = {};
}

// --- What comes

std::size_t QueueSource::held_messages(const Partition& partition) const {
  return partition.out.size() + partition.ready.size();
}

// No more waits here than two polls take: it could be with another consumer.
Status QueueSource::take_in(Partition& partition, std::size_t count_max) {
  while (partition.consumer->has_some()) take_in(partition, ONCE_TRY(partition.consumer->take()));
  const std::size_t limit =
      std::max<std::size_t>(client_.address().unacknowledged_max / partitions_.size(), 1);
  const std::size_t held = held_messages(partition);
  if (held < limit) (void)partition.consumer->want(std::min({window, limit - held, 2 * count_max}));
  return {};
}

void QueueSource::take_in(Partition& partition, Received received) {
  const Place place = entry_of(received.place);
  Held held{.place = place, .entry = received.entry, .states = {}};
  held.attempt = received.redeliveries + 1;
  held.states.assign(received.entry->size(), State::here);
  const auto seen = partition.seen.find(place);
  if (seen != partition.seen.end()) {
    held.attempt = std::max(held.attempt, seen->second.attempt + 1);
    for (std::size_t i = 0; i < held.states.size() && i < seen->second.done.size(); ++i)
      if (seen->second.done[i]) held.states[i] = State::done;
    partition.seen.erase(seen);
  }
  for (std::size_t i = 0; i < held.states.size(); ++i) {
    if (!received.is_left(i) || received.entry->is_removed(i)) held.states[i] = State::done;
    if (held.states[i] == State::done) continue;
    ++held.open;
    partition.ready.push_back(message_of(place, i));
  }
  if (held.open == 0) {
    const AckedEntry all{.place = place};
    (void)partition.consumer->ack(std::span(&all, 1), false, false);
    return;
  }
  partition.held[place] = std::move(held);
}

Result<Batch> QueueSource::poll(std::size_t count_max, std::int64_t wait_ms) {
  const net::Deadline deadline = net::in_ms(wait_ms);
  while (true) {
    ONCE_TRY(look_after(count_max));
    for (auto& [name, partition] : partitions_) {
      if (partition.is_announced) continue;
      partition.is_announced = true;
      Batch news;
      news.event = Batch::Event::assigned;
      news.partition = name;
      return news;
    }
    if (count_max > 0) {
      auto at = partitions_.upper_bound(turn_);
      for (std::size_t i = 0; i < partitions_.size(); ++i, ++at) {
        if (at == partitions_.end()) at = partitions_.begin();
        if (at->second.ready.empty()) continue;
        turn_ = at->first;
        return deliver(at->first, at->second, count_max);
      }
    }
    if (steady_clock::now() >= deadline) return Batch();
    client_.serve(std::min(deadline, net::in_ms(look_interval.count())));
  }
}

Batch QueueSource::deliver(const std::string& name, Partition& partition, std::size_t count_max) {
  Batch batch;
  batch.partition = name;
  auto memory = std::make_shared<std::vector<std::shared_ptr<const Entry>>>();
  while (batch.deliveries.size() < count_max && !partition.ready.empty()) {
    const Place place = partition.ready.front();
    partition.ready.pop_front();
    Held& held = partition.held.find(entry_of(place))->second;
    const auto index = static_cast<std::size_t>(place.index);
    held.states[index] = State::out;
    Delivery delivery = held.entry->delivery(index);
    delivery.partition = name;
    delivery.session = partition.session;
    delivery.offset = ++last_tag_;
    delivery.attempt = held.attempt;
    partition.out[delivery.offset] = place;
    if (memory->empty() || memory->back() != held.entry) memory->push_back(held.entry);
    batch.deliveries.push_back(delivery);
  }
  batch.memory = std::move(memory);
  return batch;
}

// --- What becomes of it

QueueSource::Held* QueueSource::settle(Partition& partition, const Delivery& delivery,
                                       State state) {
  if (delivery.session != partition.session) return nullptr;
  const auto out = partition.out.find(delivery.offset);
  if (out == partition.out.end()) return nullptr;
  const auto found = partition.held.find(entry_of(out->second));
  const auto index = static_cast<std::size_t>(out->second.index);
  partition.out.erase(out);
  if (found == partition.held.end()) return nullptr;
  found->second.states[index] = state;
  --found->second.open;
  return &found->second;
}

AckedEntry QueueSource::acked(const Held& held) {
  AckedEntry entry{.place = held.place};
  const auto is_done = [](State state) { return state == State::done; };
  if (std::all_of(held.states.begin(), held.states.end(), is_done)) return entry;
  entry.batch_size = static_cast<std::int32_t>(held.states.size());
  entry.left.assign((held.states.size() + 63) / 64, 0);
  for (std::size_t i = 0; i < held.states.size(); ++i)
    if (!is_done(held.states[i])) entry.left[i / 64] |= std::uint64_t{1} << (i % 64);
  return entry;
}

Status QueueSource::ack(std::span<const Delivery> done) {
  std::map<Partition*, std::vector<const Delivery*>> by_partition;
  for (const Delivery& delivery : done)
    if (const auto found = partitions_.find(delivery.partition); found != partitions_.end())
      by_partition[&found->second].push_back(&delivery);
  for (const auto& [partition, deliveries] : by_partition) ONCE_TRY(ack_in(*partition, deliveries));
  return {};
}

Status QueueSource::ack_in(Partition& partition, std::span<const Delivery* const> done) {
  if (partition.consumer && partition.consumer->is_lost()) lose(partition);
  std::map<Place, AckedEntry> entries;
  for (const Delivery* delivery : done)
    if (Held* const held = settle(partition, *delivery, State::done))
      entries[held->place] = acked(*held);
  std::vector<AckedEntry> batch;
  Status acknowledged;
  const auto flush = [&] {
    if (batch.empty() || !acknowledged || !partition.consumer) return;
    acknowledged = partition.consumer->ack(batch, false, true);
    batch.clear();
  };
  std::vector<Place> to_return;
  for (const auto& [place, entry] : entries) {
    const auto held = partition.held.find(place);
    if (entry.left.empty())
      partition.held.erase(held);
    else if (held->second.open == 0)
      to_return.push_back(place);
    batch.push_back(entry);
    if (batch.size() == acks_max) flush();
  }
  flush();
  for (const Place& place : to_return)
    partition.returning.emplace(partition.held.find(place)->second.due, place);
  // Whether it arrived is not known: what did not is delivered again.
  if (!acknowledged && acknowledged.error().remedy == Remedy::retry)
    return fail(Remedy::recheck, "lost", acknowledged.error().text);
  return acknowledged;
}

Status QueueSource::release(std::span<const Delivery> undone, std::int64_t delay_ms) {
  const auto due =
      steady_clock::now() + milliseconds(std::clamp<std::int64_t>(delay_ms, 0, delay_ms_max));
  for (const Delivery& delivery : undone) {
    const auto found = partitions_.find(delivery.partition);
    if (found == partitions_.end()) continue;
    Partition& partition = found->second;
    Held* const held = settle(partition, delivery, State::returned);
    if (held == nullptr) continue;
    held->due = std::max(held->due, due);
    if (held->open == 0) partition.returning.emplace(held->due, held->place);
  }
  for (auto& [name, partition] : partitions_) {
    if (!partition.consumer || partition.consumer->is_lost()) continue;
    (void)give_back_due(partition);
  }
  return {};
}

Status QueueSource::give_back_due(Partition& partition) {
  const auto now = steady_clock::now();
  while (!partition.returning.empty() && partition.returning.begin()->first <= now) {
    const Place place = partition.returning.begin()->second;
    partition.returning.erase(partition.returning.begin());
    ONCE_TRY(give_back(partition, place));
  }
  return {};
}

Status QueueSource::give_back(Partition& partition, const Place& place) {
  const auto found = partition.held.find(place);
  if (found == partition.held.end()) return {};
  const Held& held = found->second;
  if (partition.seen.size() < seen_max) {
    Seen& seen = partition.seen[place];
    seen.attempt = held.attempt;
    for (const State state : held.states) seen.done.push_back(state == State::done);
  }
  partition.held.erase(found);
  return partition.consumer->redeliver(std::span(&place, 1));
}

}  // namespace once::pulsar
