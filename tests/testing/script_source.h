// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/source.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/message_view.h"

namespace once::testing {

// A source that a test writes by hand: partitions of messages, delivered in order, and on demand
// delivered again.
class ScriptSource final : public Source, public SourceReplay {
 public:
  explicit ScriptSource(SourceTraits traits = {.name = "script:",
                                               .ordered = true,
                                               .replayable = true,
                                               .redelivery_ms_max = 0})
      : traits_(std::move(traits)) {}

  void add(const std::string& partition, Message message) {
    partitions_[partition].messages.push_back(std::move(message));
  }
  // An offset of no message: the end of a transaction.
  void add_marker(const std::string& partition) {
    Partition& found = partitions_[partition];
    found.holes.insert(found.messages.size());
    found.messages.emplace_back();
  }
  // Compaction has removed a message; older ones stay.
  void remove(const std::string& partition, std::size_t offset) {
    partitions_[partition].holes.insert(offset);
  }
  void announce(const std::string& partition) {
    partitions_[partition];
    news_.push_back(partition);
  }
  // Retention has deleted what is below this offset.
  void forget_below(const std::string& partition, std::int64_t offset) {
    partitions_[partition].first = offset;
  }
  // Behind the messages of each partition: offsets of no message, as brokers have them.
  void end_with_markers(std::int64_t count) { markers_ = count; }
  // The whole partition as one batch, from an offset on, as a lane would get it.
  Batch batch(const std::string& partition, std::size_t from = 0, std::size_t count = 1000) {
    auto found = partitions_.find(partition);
    Batch batch;
    batch.partition = found->first;
    const auto& messages = found->second.messages;
    for (std::size_t i = from; i < std::min(messages.size(), from + count); ++i)
      if (!found->second.holes.contains(i))
        batch.deliveries.push_back(
            deliver(found->first, static_cast<std::int64_t>(i), messages[i]));
    batch.end_offset = static_cast<std::int64_t>(std::min(messages.size(), from + count));
    batch.available_offset = static_cast<std::int64_t>(messages.size()) + markers_;
    return batch;
  }

  SourceReplay* replay() override { return traits_.replayable ? this : nullptr; }
  SourceTraits traits() const override { return traits_; }

  Result<Batch> poll(std::size_t count_max, std::int64_t) override {
    if (!news_.empty()) {
      Batch batch;
      batch.event = Batch::Event::assigned;
      batch.partition = partitions_.find(news_.front())->first;
      news_.pop_front();
      return batch;
    }
    Batch none;
    none.drained = count_max > 0;
    if (count_max == 0) return none;
    for (auto& [name, partition] : partitions_) {
      if (partition.next >= partition.messages.size()) continue;
      Batch polled = batch(name, partition.next, count_max);
      partition.next = static_cast<std::size_t>(polled.end_offset);
      if (!polled.deliveries.empty()) return polled;
    }
    return none;
  }

  Status ack(std::span<const Delivery> done) override {
    for (const Delivery& delivery : done) {
      Partition& partition = partitions_.find(delivery.partition)->second;
      partition.acked = std::max(partition.acked, delivery.offset);
      partition.acks.push_back(delivery.offset);
    }
    return {};
  }
  Status release(std::span<const Delivery> undone, std::int64_t) override {
    released_ += undone.size();
    for (const Delivery& delivery : undone) {
      Partition& partition = partitions_.find(delivery.partition)->second;
      partition.next = std::min(partition.next, static_cast<std::size_t>(delivery.offset));
    }
    return {};
  }
  Status seek(std::string_view partition, std::int64_t offset) override {
    Partition& found = partitions_.find(partition)->second;
    if (offset >= 0 && offset < found.first)
      return fail(Remedy::stop, "gone", "the messages there were deleted");
    found.next = static_cast<std::size_t>(std::max(offset, found.first));
    return {};
  }

  std::int64_t acked(const std::string& partition) const {
    return partitions_.find(partition)->second.acked;
  }
  const std::vector<std::int64_t>& acks(const std::string& partition) const {
    return partitions_.find(partition)->second.acks;
  }
  std::size_t released() const { return released_; }

 private:
  struct Partition {
    std::vector<Message> messages;
    std::set<std::size_t> holes;  // offsets of no message
    std::size_t next = 0;
    std::int64_t first = 0;
    std::int64_t acked = -1;
    std::vector<std::int64_t> acks;
  };

  Delivery deliver(std::string_view partition, std::int64_t offset, const Message& message) {
    Delivery delivery;
    delivery.partition = partition;
    delivery.offset = offset;
    delivery.id = message.id;
    delivery.key = view_of(message.key);
    delivery.body = view_of(message.body);
    delivery.timestamp_ms = message.timestamp_ms;
    if (!message.headers.empty()) delivery.headers = headers_.emplace_back(header_views(message));
    return delivery;
  }

  SourceTraits traits_;
  std::map<std::string, Partition, std::less<>> partitions_;
  std::deque<std::string> news_;
  std::deque<std::vector<HeaderView>> headers_;  // of what was delivered
  std::size_t released_ = 0;
  std::int64_t markers_ = 0;
};

}  // namespace once::testing
