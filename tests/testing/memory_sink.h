// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/clock.h>
#include <once/sink.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace once::testing {

// A topic in memory that knows its producers as the contract asks for, or recognises nothing, and
// fails on demand.
class MemorySink final : public Sink, public SinkProducers {
 public:
  explicit MemorySink(std::uint32_t partition_count, Recognises recognises = Recognises::by_stamp)
      : recognises_(recognises), partitions_(partition_count) {}

  SinkTraits traits() const override { return {.name = "memory:", .recognises = recognises_}; }
  SinkProducers* producers() override {
    return recognises_ == Recognises::by_stamp ? this : nullptr;
  }

  // Asked at every append, before and after it happens; an error is given to the caller.
  using Fault = std::function<Status()>;
  void set_faults(Fault before, Fault after) {
    before_ = std::move(before);
    after_ = std::move(after);
  }

  Result<std::uint32_t> partitions() override {
    return static_cast<std::uint32_t>(partitions_.size());
  }

  // Producers that were quiet for so long are forgotten, as Kafka and a log do.
  void forget_producers_after(Clock& clock, std::int64_t kept_ms) {
    clock_ = &clock;
    kept_ms_ = kept_ms;
  }

  Result<Stamp> enter(std::uint32_t partition, std::string_view name) override {
    forget_quiet();
    Producer& producer = partitions_.at(partition).producers[std::string(name)];
    producer.seen_ms = now_ms();
    if (producer.stamp.producer == 0) producer.stamp.producer = ++last_producer_;
    ++producer.stamp.epoch;
    return producer.stamp;
  }

  Result<std::uint64_t> sent_by(std::uint32_t partition, std::string_view name) override {
    forget_quiet();
    const auto& producers = partitions_.at(partition).producers;
    const auto found = producers.find(std::string(name));
    return found == producers.end() ? 0 : found->second.stamp.sequence;
  }

  Result<std::optional<std::uint64_t>> last_digest(std::uint32_t partition,
                                                   std::string_view name) override {
    const auto& producers = partitions_.at(partition).producers;
    const auto found = producers.find(std::string(name));
    return found == producers.end() ? std::nullopt : found->second.last_digest;
  }

  Result<Receipt> append(std::uint32_t index, const Stamp& stamp,
                         std::span<const Message> messages) override {
    if (index >= partitions_.size()) return fail(Remedy::stop, "partition", "no such partition");
    if (before_) ONCE_TRY(before_());
    if (recognises_ != Recognises::by_stamp) return append_all(partitions_[index], messages);
    forget_quiet();
    if (refusal_)
      for (const Message& message : messages) ONCE_TRY(refusal_(message));
    Partition& partition = partitions_[index];
    Receipt receipt;
    for (auto& [name, producer] : partition.producers) {
      if (producer.stamp.producer != stamp.producer) continue;
      producer.seen_ms = now_ms();
      if (stamp.epoch < producer.stamp.epoch) return fail(Remedy::stop, "fenced", name);
      if (stamp.sequence > producer.stamp.sequence) return fail(Remedy::retry, "gap", name);
      receipt.offset = producer.stamp.sequence > stamp.sequence
                           ? -1
                           : static_cast<std::int64_t>(partition.messages.size());
      for (std::size_t i = 0; i < messages.size(); ++i) {
        if (stamp.sequence + i < producer.stamp.sequence) {
          ++receipt.duplicates;
          continue;
        }
        partition.messages.push_back(messages[i]);
        producer.last_digest = digest_of(messages[i]);
        ++producer.stamp.sequence;
      }
      ++appends_;
      if (after_) ONCE_TRY(after_());
      return receipt;
    }
    return fail(Remedy::stop, "unknown", "no such producer");
  }

  // A message for which it answers an error is refused, and with it the whole append.
  void refuse(std::function<Status(const Message&)> refusal) { refusal_ = std::move(refusal); }

  // Deleted and created again: nobody is known here.
  void make_anew() {
    for (Partition& partition : partitions_) partition = {};
  }
  Result<std::int64_t> producer_horizon_ms(std::uint32_t) override { return horizon_ms_; }
  void set_producer_horizon(std::int64_t time_ms) { horizon_ms_ = time_ms; }

  const std::vector<Message>& messages(std::uint32_t partition) const {
    return partitions_.at(partition).messages;
  }
  std::size_t appends() const { return appends_; }

 private:
  struct Producer {
    Stamp stamp;  // `sequence` is the next one
    std::optional<std::uint64_t> last_digest = std::nullopt;
    std::int64_t seen_ms = 0;
  };
  struct Partition {
    std::vector<Message> messages;
    std::map<std::string, Producer> producers;
  };

  // Whatever it was sent before.
  Result<Receipt> append_all(Partition& partition, std::span<const Message> messages) {
    Receipt receipt{static_cast<std::int64_t>(partition.messages.size())};
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const Status accepted = refusal_ ? refusal_(messages[i]) : Status{};
      if (accepted)
        partition.messages.push_back(messages[i]);
      else
        receipt.refused.push_back({i, accepted.error()});
    }
    ++appends_;
    if (after_) ONCE_TRY(after_());
    return receipt;
  }

  const Recognises recognises_;
  std::int64_t now_ms() const { return clock_ == nullptr ? 0 : clock_->now_ms(); }
  void forget_quiet() {
    if (clock_ == nullptr) return;
    for (Partition& partition : partitions_)
      std::erase_if(partition.producers,
                    [&](const auto& known) { return known.second.seen_ms + kept_ms_ <= now_ms(); });
  }

  Clock* clock_ = nullptr;
  std::int64_t kept_ms_ = 0;
  std::vector<Partition> partitions_;
  std::uint64_t last_producer_ = 0;
  std::size_t appends_ = 0;
  std::int64_t horizon_ms_ = 0;
  Fault before_;
  Fault after_;
  std::function<Status(const Message&)> refusal_;
};

// A sink that outlives whoever uses it.
inline Result<std::shared_ptr<Sink>> shared(Sink& sink) {
  return std::shared_ptr<Sink>(std::shared_ptr<void>(), &sink);
}

}  // namespace once::testing
