// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <once/identity.h>
#include <once/producer.h>

#include <chrono>
#include <deque>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace once {
namespace {

// A message is copied once, when it is put into its batch; a batch that grows moves what it has.
static_assert(std::is_nothrow_move_constructible_v<Message>);

class StampingProducer final : public Producer {
 public:
  StampingProducer(Sink& sink, ProducerOptions options, Clock& clock, std::vector<Stamp> stamps)
      : sink_(sink), options_(std::move(options)), clock_(clock) {
    for (const Stamp& stamp : stamps) partitions_.push_back({.next = stamp, .unsent = {}});
  }

  Result<SendReport> send(std::span<const Message> messages) override {
    const std::int64_t now_ms = clock_.now_ms();
    for (const Message& message : messages) {
      Partition& partition =
          partitions_[partition_of(message, static_cast<std::uint32_t>(partitions_.size()))];
      if (partition.unsent.empty() || partition.unsent.back().sealed ||
          partition.unsent.back().messages.size() >= options_.batch_count_max)
        partition.unsent.push_back({.stamp = partition.next, .messages = {}});
      Batched& batch = partition.unsent.back();
      batch.messages.push_back(message);
      if (batch.messages.back().timestamp_ms == 0) batch.messages.back().timestamp_ms = now_ms;
      ++partition.next.sequence;
    }
    SendReport report;
    for (std::uint32_t i = 0; i < partitions_.size(); ++i) ONCE_TRY(flush(i, report));
    return report;
  }

 private:
  // A batch with its stamp; the same bytes are sent until there is a receipt.
  struct Batched {
    Stamp stamp;
    std::vector<Message> messages;
    bool sealed = false;   // it was sent, perhaps in vain: nothing is added to it any more
    bool unknown = false;  // an answer was lost, and a resend is not recognised
  };
  struct Partition {
    Stamp next;
    std::deque<Batched> unsent;
  };

  Status flush(std::uint32_t index, SendReport& report) {
    Partition& partition = partitions_[index];
    while (!partition.unsent.empty()) {
      Batched& batch = partition.unsent.front();
      batch.sealed = true;
      const Receipt receipt = ONCE_TRY(append(index, batch));
      report.sent += batch.messages.size() - receipt.refused.size();
      report.duplicates += receipt.duplicates;
      if (batch.unknown) report.maybe_twice += batch.messages.size() - receipt.refused.size();
      partition.unsent.pop_front();
      if (!receipt.refused.empty()) return fail(receipt.refused.front().why);
    }
    return {};
  }

  // A stamp that is recognised makes a repeated append harmless; without one it may leave copies,
  // and not to repeat it might lose the messages.
  Result<Receipt> append(std::uint32_t index, Batched& batch) {
    for (std::uint32_t attempt = 1;; ++attempt) {
      auto receipt = sink_.append(index, batch.stamp, batch.messages);
      if (receipt) return receipt;
      batch.unknown = batch.unknown ||
                      (sink_.producers() == nullptr && receipt.error().remedy == Remedy::recheck);
      if (!is_transient(receipt.error().remedy) || attempt >= options_.attempts_max) return receipt;
      std::this_thread::sleep_for(std::chrono::milliseconds(options_.backoff_ms * attempt));
    }
  }

  Sink& sink_;
  ProducerOptions options_;
  Clock& clock_;
  std::vector<Partition> partitions_;
};

// A replay needs a sink that still knows what it has. One that has nothing of the producer may have
// forgotten it, and would take everything for new.
Status check_known(SinkProducers& producers, std::span<const Stamp> stamps,
                   const std::string& name) {
  for (const Stamp& stamp : stamps)
    if (stamp.sequence > 0) return {};
  for (std::uint32_t i = 0; i < stamps.size(); ++i) {
    const std::int64_t horizon_ms = ONCE_TRY(producers.producer_horizon_ms(i));
    if (horizon_ms == 0) continue;
    return fail(Remedy::stop, "too_old",
                fmt::format("nothing of the producer \"{}\" is there, and partition {} has "
                            "forgotten producers that were last seen before {} ms: what is sent "
                            "again could be taken for new. If \"{}\" never sent anything here, "
                            "send the first time without replay",
                            name, i, horizon_ms, name));
  }
  return {};
}

// Answers the stamp of the next message of each partition.
Status enter(SinkProducers& producers, ProducerOptions& options, Clock& clock,
             std::span<Stamp> stamps) {
  if (options.name.empty() && !producers.takes_unnamed())
    options.name = fmt::format("anonymous-{}", ONCE_TRY(make_uuid7(clock)->next()));
  for (std::uint32_t i = 0; i < stamps.size(); ++i)
    stamps[i] = ONCE_TRY(producers.enter(i, options.name));
  if (!options.replay) return {};
  ONCE_TRY(check_known(producers, stamps, options.name));
  for (Stamp& stamp : stamps) stamp.sequence = 0;
  return {};
}

}  // namespace

Result<std::unique_ptr<Producer>> Producer::open(Sink& sink, ProducerOptions options,
                                                 Clock& clock) {
  if (options.batch_count_max == 0 || options.attempts_max == 0)
    return fail(Remedy::stop, "config",
                "the producer's batch_count_max and attempts_max must be at least 1");
  if (options.name.empty() && options.replay)
    return fail(Remedy::stop, "config",
                "to send again what was sent before, a producer needs the name it had then");
  std::vector<Stamp> stamps(ONCE_TRY(sink.partitions()));
  if (SinkProducers* const producers = sink.producers())
    ONCE_TRY(enter(*producers, options, clock, stamps));
  else if (options.replay)
    return fail(Remedy::stop, "config",
                fmt::format("{} does not recognise resends by stamp: what is sent again would be "
                            "there twice",
                            sink.traits().name));
  return std::make_unique<StampingProducer>(sink, std::move(options), clock, std::move(stamps));
}

}  // namespace once
