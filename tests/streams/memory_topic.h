// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/sink.h>
#include <once/source.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "model/gone.h"
#include "model/message_view.h"

namespace once::testing {

// A broker as small as can be: a topic that keeps everything and recognises nothing.
struct MemoryTopic {
  explicit MemoryTopic(std::uint32_t partition_count) : partitions(partition_count) {}

  std::mutex mutex;
  std::vector<std::deque<Message>>
      partitions;  // guarded by mutex; what is there stays in its place
};

class MemoryTopicSink final : public Sink {
 public:
  explicit MemoryTopicSink(std::shared_ptr<MemoryTopic> topic) : topic_(std::move(topic)) {}

  SinkTraits traits() const override {
    return {.name = "topic:", .recognises = Recognises::none, .ordered = true};
  }
  Result<std::uint32_t> partitions() override {
    return static_cast<std::uint32_t>(topic_->partitions.size());
  }
  Result<Receipt> append(std::uint32_t partition, const Stamp&,
                         std::span<const Message> messages) override {
    if (partition >= topic_->partitions.size())
      return fail(Remedy::stop, "partition",
                  "topic: has no partition " + std::to_string(partition));
    const std::lock_guard lock(topic_->mutex);
    auto& kept = topic_->partitions[partition];
    Receipt receipt{.offset = static_cast<std::int64_t>(kept.size())};
    kept.insert(kept.end(), messages.begin(), messages.end());
    return receipt;
  }

 private:
  const std::shared_ptr<MemoryTopic> topic_;
};

class MemoryTopicSource final : public Source, public SourceReplay {
 public:
  MemoryTopicSource(std::shared_ptr<MemoryTopic> topic, bool stop_at_end)
      : topic_(std::move(topic)), stop_at_end_(stop_at_end) {
    for (std::size_t i = 0; i < topic_->partitions.size(); ++i)
      places_.push_back({"topic/" + std::to_string(i)});
  }

  SourceReplay* replay() override { return this; }
  SourceTraits traits() const override {
    SourceTraits traits{.name = "topic:", .ordered = true, .replayable = true};
    for (const Place& place : places_) traits.partitions.push_back(place.name);
    return traits;
  }

  Result<Batch> poll(std::size_t count_max, std::int64_t) override {
    Batch batch;
    if (announced_ < places_.size()) {
      batch.event = Batch::Event::assigned;
      batch.partition = places_[announced_++].name;
      return batch;
    }
    const std::lock_guard lock(topic_->mutex);
    for (std::size_t p = 0; p < places_.size() && count_max > 0; ++p)
      if (places_[p].next < topic_->partitions[p].size()) return read(p, count_max);
    batch.drained = count_max > 0;
    if (stop_at_end_ && batch.drained) batch.event = Batch::Event::end;
    return batch;
  }

  Status ack(std::span<const Delivery>) override { return {}; }
  Status release(std::span<const Delivery> undone, std::int64_t) override {
    for (const Delivery& delivery : undone) {
      Place& place = *find(delivery.partition);
      if (delivery.offset < static_cast<std::int64_t>(place.next)) {
        place.again_until = std::max(place.again_until, place.next);
        place.next = static_cast<std::size_t>(delivery.offset);
        place.attempt = delivery.attempt + 1;
      }
    }
    return {};
  }
  Status seek(std::string_view partition, std::int64_t offset) override {
    const auto place = find(partition);
    if (place == places_.end()) return fail(Remedy::stop, "partition", "topic: has no such one");
    const std::int64_t end = end_of(place);
    if (offset > end) return fail(ends_before_error(partition, end, offset));
    *place = {place->name, static_cast<std::size_t>(std::max<std::int64_t>(offset, 0))};
    return {};
  }
  Result<std::vector<PartitionEnd>> ends() override {
    std::vector<PartitionEnd> ends;
    for (auto place = places_.begin(); place != places_.end(); ++place)
      ends.push_back({place->name, end_of(place)});
    return ends;
  }

 private:
  struct Place {
    std::string name;
    std::size_t next = 0;
    std::size_t again_until = 0;  // below it, deliveries are repetitions
    std::uint32_t attempt = 1;
  };
  using Places = std::vector<Place>;

  Places::iterator find(std::string_view name) {
    return std::find_if(places_.begin(), places_.end(),
                        [name](const Place& place) { return place.name == name; });
  }
  std::int64_t end_of(Places::iterator place) {
    const std::lock_guard lock(topic_->mutex);
    const auto index = static_cast<std::size_t>(place - places_.begin());
    return static_cast<std::int64_t>(topic_->partitions[index].size());
  }

  // The views lead into copies that the batch owns.
  Batch read(std::size_t index, std::size_t count_max) {
    struct Memory {
      std::deque<Message> messages;
      std::deque<std::vector<HeaderView>> headers;
      std::string partition;
    };
    const auto memory = std::make_shared<Memory>();
    Place& place = places_[index];
    const auto& kept = topic_->partitions[index];
    Batch batch;
    batch.partition = place.name;
    batch.available_offset = static_cast<std::int64_t>(kept.size());
    for (; place.next < kept.size() && batch.deliveries.size() < count_max; ++place.next) {
      const Message& message = memory->messages.emplace_back(kept[place.next]);
      Delivery& delivery = batch.deliveries.emplace_back();
      delivery.partition = place.name;
      delivery.offset = static_cast<std::int64_t>(place.next);
      delivery.attempt = place.next < place.again_until ? place.attempt : 1;
      delivery.id = message.id;
      delivery.key = view_of(message.key);
      delivery.body = view_of(message.body);
      delivery.headers = memory->headers.emplace_back(header_views(message));
      delivery.timestamp_ms = message.timestamp_ms;
    }
    batch.end_offset = static_cast<std::int64_t>(place.next);
    batch.memory = memory;
    return batch;
  }

  const std::shared_ptr<MemoryTopic> topic_;
  const bool stop_at_end_;
  Places places_;
  std::size_t announced_ = 0;
};

}  // namespace once::testing
