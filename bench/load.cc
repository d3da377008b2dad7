// SPDX-License-Identifier: Apache-2.0
#include "load.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace once::bench {
namespace {

// All loads begin at the same time, so that a run can be repeated. A thousand messages a
// millisecond is faster than any of the sides here.
constexpr std::int64_t first_ms = 1'750'000'000'000;
constexpr std::uint64_t messages_per_ms = 1000;
constexpr std::string_view partition_name = "load/0";

std::uint64_t low_part(std::uint64_t number) { return scramble(number ^ 0x5bd1e995'5bd1e995ULL); }

std::string random_id(std::uint64_t high, std::uint64_t low) {
  return fmt::format("{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}", high >> 32, high >> 16 & 0xffff,
                     high & 0xfff, low >> 48 & 0xfff, low & 0xffff'ffff'ffffULL);
}

}  // namespace

std::int64_t born_ms(std::uint64_t number) {
  return first_ms + static_cast<std::int64_t>(number / messages_per_ms);
}

std::uint64_t scramble(std::uint64_t number) {
  std::uint64_t z = number + 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

// Both kinds are written like a UUID, so that they only differ in where their order comes from.
std::string make_id(IdKind kind, std::uint64_t number) {
  const std::uint64_t low = low_part(number);
  if (kind == IdKind::random) return random_id(scramble(number), low);
  const auto time = static_cast<std::uint64_t>(born_ms(number));
  return fmt::format("{:08x}-{:04x}-7{:03x}-a{:03x}-{:012x}", time >> 16, time & 0xffff,
                     number % messages_per_ms, low >> 48 & 0xfff, low & 0xffff'ffff'ffffULL);
}

// Random ids that come one by one leave pages that are partly full. In order they would leave them
// full, and every id afterwards would split one; so three fifths of them come first, in order, and
// the others fall in between.
void for_each_id(IdKind kind, std::uint64_t count, const std::function<void(std::string)>& use) {
  if (kind == IdKind::uuid7) {
    for (std::uint64_t i = 0; i < count; ++i) use(make_id(kind, i));
    return;
  }
  const std::uint64_t step = ~std::uint64_t{0} / count;
  const auto use_at = [&](std::uint64_t place) {
    use(random_id(place * step + scramble(place) % step, low_part(place)));
  };
  for (std::uint64_t i = 0; i < count; ++i)
    if (i % 5 < 3) use_at(i);
  for (std::uint64_t i = 0; i < count; ++i)
    if (i % 5 >= 3) use_at(i);
}

Message make_message(IdKind kind, std::uint64_t number) {
  Message message;
  message.id = make_id(kind, number);
  message.key = std::to_string(scramble(number) % account_count);
  message.body =
      fmt::format(R"({{"order":{},"account":{},"amount":1,"note":")", number, *message.key);
  message.body->resize(body_bytes - 2, 'n');
  *message.body += "\"}";
  message.timestamp_ms = born_ms(number);
  return message;
}

std::vector<Message> make_messages(IdKind kind, std::uint64_t first, std::size_t count) {
  std::vector<Message> messages;
  messages.reserve(count);
  for (std::size_t i = 0; i < count; ++i) messages.push_back(make_message(kind, first + i));
  return messages;
}

std::int64_t account_of(std::string_view key) {
  std::int64_t number = 0;
  std::from_chars(key.data(), key.data() + key.size(), number);
  return number;
}

SourceTraits LoadSource::traits() const {
  SourceTraits traits{.name = "load:", .ordered = true, .replayable = true, .redelivery_ms_max = 0};
  // What was read before is not there any more.
  for (const Partition& partition : partitions_) traits.compacted.push_back(partition.name);
  return traits;
}

LoadSource::LoadSource(const std::vector<Message>& messages, std::size_t partitions)
    : partitions_(partitions) {
  for (std::size_t i = 0; i < partitions; ++i) partitions_[i].name = fmt::format("load/{}", i);
  for (const Message& message : messages)
    partitions_[static_cast<std::size_t>(account_of(*message.key)) % partitions].messages.push_back(
        &message);
}

Status LoadSource::seek(std::string_view name, std::int64_t offset) {
  for (Partition& partition : partitions_)
    if (partition.name == name) partition.base = offset + 1;
  return {};
}

Result<Batch> LoadSource::poll(std::size_t count_max, std::int64_t) {
  Batch batch;
  if (announced_ < partitions_.size()) {
    batch.partition = partitions_[announced_++].name;
    batch.event = Batch::Event::assigned;
    return batch;
  }
  if (count_max == 0) return batch;
  for (std::size_t i = 0; i < partitions_.size(); ++i) {
    Partition& partition = partitions_[turn_++ % partitions_.size()];
    if (partition.next < partition.messages.size()) return next_of(partition, count_max);
  }
  batch.event = Batch::Event::end;
  return batch;
}

Batch LoadSource::next_of(Partition& partition, std::size_t count_max) {
  Batch batch;
  batch.partition = partition.name;
  const std::size_t end = std::min(partition.messages.size(), partition.next + count_max);
  batch.deliveries.reserve(end - partition.next);
  for (; partition.next < end; ++partition.next) {
    const Message& message = *partition.messages[partition.next];
    Delivery& delivery = batch.deliveries.emplace_back();
    delivery.partition = partition.name;
    delivery.offset = partition.base + static_cast<std::int64_t>(partition.next);
    delivery.id = message.id;
    delivery.key = *message.key;
    delivery.body = *message.body;
    delivery.timestamp_ms = message.timestamp_ms;
  }
  batch.end_offset = batch.deliveries.back().offset + 1;
  return batch;
}

}  // namespace once::bench
