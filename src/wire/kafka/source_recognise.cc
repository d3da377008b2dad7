// SPDX-License-Identifier: Apache-2.0
// A consumer that goes on at an offset after its connection was lost cannot tell from the offset
// that the topic was deleted and created again, or that its broker was restored from a backup, in
// the meantime. So it reads the message that it delivered last once more, compares it, and only
// then goes on behind it.
#include <utility>

#include "model/gone.h"
#include "model/witness.h"
#include "wire/kafka/source.h"

namespace once::kafka {
namespace {

using std::chrono::steady_clock;

// A process that did not look for so long may have been stopped, while its connection stayed open.
constexpr std::chrono::milliseconds stopped_min(1'000);

// For how long a poll waits for a broker that may be away, and how long the next ones do without.
constexpr int answer_wait_ms = 1'000;
constexpr std::chrono::milliseconds ask_pause(250);

}  // namespace

// Asked after messages are taken from librdkafka: what came over a new connection was queued after
// the loss of the old one was counted.
bool KafkaSource::interrupted() {
  const auto now = steady_clock::now();
  const std::uint64_t losses = client_->losses();
  const bool found = losses != losses_ || now - looked_at_ > stopped_min;
  losses_ = losses;
  looked_at_ = now;
  return found;
}

void KafkaSource::recognise_all() {
  for (auto& [name, partition] : partitions_) {
    if (!partition.queue) continue;
    if (!partition.recognising)
      partition.resume = partition.rewind ? partition.from : partition.next;
    partition.recognising = partition.last.offset >= 0;
    partition.missed_last = false;
    partition.from = partition.recognising ? partition.last.offset : partition.resume;
    partition.rewind = true;
    partition.at_end = false;
  }
}

// Before the last message is read again: whether it can be there. False while no broker answers.
Result<bool> KafkaSource::look_for_last(std::string_view name, Partition& partition) {
  if (steady_clock::now() < ask_after_) return false;
  const auto there = extent(partition, answer_wait_ms);
  if (!there) {
    looked_at_ = steady_clock::now();  // that we waited does not mean that we were stopped
    ask_after_ = looked_at_ + ask_pause;
    return false;
  }
  if (partition.resume > there->end)
    return fail(ends_before_error(name, there->end, partition.resume));
  if (partition.resume < there->begin)
    return fail(forgotten_error(name, partition.resume, there->begin));
  if (partition.last.offset < there->begin) {  // deleted for its age
    partition.recognising = false;
    partition.from = partition.resume;
  }
  return true;
}

// The first message since the interruption.
Status KafkaSource::recognise(const rd_kafka_message_t& message, std::string_view name,
                              Partition& partition) {
  if (message.err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
    return ends_without_last(message.offset, name, partition);
  if (message.err != RD_KAFKA_RESP_ERR_NO_ERROR) return judge_error(message, name);
  if (message.offset < partition.last.offset) return {};
  const bool is_missing = message.offset > partition.last.offset;
  if (is_missing ? !partition.topic->second.compacted
                 : witness_of(delivery_of(message, name)) != partition.last)
    return fail(replaced_error(name, partition.last.offset));
  partition.recognising = false;
  partition.next = partition.last.offset + 1;
  partition.from = partition.resume;
  partition.rewind = is_missing || partition.resume != partition.next;
  return {};
}

// The end was reached, and the last message was not seen. A broker that was just started may show
// an end before it: then it is shown later. An end behind it may have been queued before the
// interruption: the partition is read once more.
Status KafkaSource::ends_without_last(std::int64_t end, std::string_view name,
                                      Partition& partition) {
  if (end <= partition.last.offset) return {};
  if (!std::exchange(partition.missed_last, true)) {
    partition.rewind = true;
    return {};
  }
  if (!partition.topic->second.compacted) return fail(replaced_error(name, partition.last.offset));
  partition.recognising = false;
  partition.from = partition.resume;
  partition.rewind = true;
  return {};
}

}  // namespace once::kafka
