// SPDX-License-Identifier: Apache-2.0
#include "wire/kafka/voice.h"

#include <fmt/format.h>
#include <once/sink.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "model/message_view.h"
#include "model/random.h"
#include "wire/kafka/envelope.h"

namespace once::kafka {
namespace {

constexpr int settle_ms = 30'000;  // for how long a transaction is tried to be ended

// A topic is not deleted and created again in less. After a longer pause the state, which Kafka
// deletes with the topic, is read again before anything is sent.
constexpr std::chrono::milliseconds seen_valid(1'000);

using Deadline = std::chrono::steady_clock::time_point;
Deadline in_ms(int ms) { return std::chrono::steady_clock::now() + std::chrono::milliseconds(ms); }
bool passed(Deadline deadline) { return std::chrono::steady_clock::now() >= deadline; }

std::uint64_t random_producer() {
  std::uint64_t number = 0;
  while (number == 0) number = random_number();
  return number;
}

// Calls until it works, cannot work, or takes too long.
template <class Call>
Failure until_settled(const Call& call) {
  const Deadline deadline = in_ms(settle_ms);
  for (;;) {
    Failure failure(call());
    if (!failure || rd_kafka_error_is_retriable(failure.get()) == 0 || passed(deadline))
      return failure;
  }
}

}  // namespace

Result<Stamp> Voice::enter(std::uint32_t partition) {
  const std::lock_guard lock(mutex_);
  // The second time means: whoever has entered since must go.
  if (partitions_.contains(partition)) (void)abandon({});
  if (!client_) ONCE_TRY(make_client());
  ONCE_TRY(make_ready());
  const auto stored = ONCE_TRY(stored_state(partition, true));
  Known known;
  if (stored)
    known.state = *stored;
  else  // it begins with 0, wherever its sender believes to be
    known.state.producer = random_producer();
  ++known.state.epoch;
  ONCE_TRY(in_transaction([&] { return write_state(partition, known.state); }));
  known.seen = std::chrono::steady_clock::now();
  partitions_[partition] = known;
  return Stamp{known.state.producer, known.state.epoch, known.state.next_sequence};
}

Result<std::uint64_t> Voice::sent(std::uint32_t partition) {
  const std::lock_guard lock(mutex_);
  const auto stored = ONCE_TRY(stored_state(partition, true));
  return stored ? stored->next_sequence : 0;
}

Result<std::optional<std::uint64_t>> Voice::last_digest(std::uint32_t partition) {
  const std::lock_guard lock(mutex_);
  // Kafka does not tell the state for a moment after each transaction.
  const auto found = partitions_.find(partition);
  if (found != partitions_.end() && !found->second.stale) return found->second.state.last_digest;
  const auto stored = ONCE_TRY(stored_state(partition, true));
  return stored ? stored->last_digest : std::nullopt;
}

Result<Receipt> Voice::append(std::uint32_t partition, const Stamp& stamp,
                              std::span<const Message> messages) {
  const std::lock_guard lock(mutex_);
  const auto found = partitions_.find(partition);
  if (found == partitions_.end() || found->second.state.producer != stamp.producer)
    return fail(Remedy::stop, "unknown",
                fmt::format("{}: the producer {} has not entered partition {} with this stamp",
                            address_.where(), name_, partition));
  Known& known = found->second;
  if (stamp.epoch != known.state.epoch)
    return fail(Remedy::stop, "fenced",
                fmt::format("{}: the producer {} has entered partition {} again, with epoch {}; "
                            "this is epoch {}",
                            address_.where(), name_, partition, known.state.epoch, stamp.epoch));
  ONCE_TRY(refresh(partition, known));
  const std::uint64_t next = known.state.next_sequence;
  if (stamp.sequence > next)
    return fail(Remedy::retry, "gap",
                fmt::format("{}: the producer {} sends message {} to partition {}, but message {} "
                            "has not come yet",
                            address_.where(), name_, stamp.sequence, partition, next));
  const std::size_t duplicates = std::min<std::size_t>(messages.size(), next - stamp.sequence);
  Receipt receipt{known.state.offset_of(stamp.sequence), static_cast<std::uint32_t>(duplicates)};
  if (duplicates == messages.size()) return receipt;
  Stamp first = stamp;
  first.sequence += duplicates;
  ONCE_TRY(append_new(partition, known, first, messages.subspan(duplicates)));
  if (duplicates == 0) receipt.offset = known.state.last_offset;
  return receipt;
}

Status Voice::append_new(std::uint32_t partition, Known& known, const Stamp& first,
                         std::span<const Message> messages) {
  ProducerState next = known.state;
  next.last_sequence = first.sequence;
  next.next_sequence = first.sequence + messages.size();
  next.last_digest = digest_of(messages.back());
  ONCE_TRY(in_transaction([&]() -> Status {
    ONCE_TRY(send(partition, first, messages));
    ONCE_TRY(check_same_topic(known));
    next.last_offset = delivered_.first_offset;
    return write_state(partition, next);
  }));
  known.state = next;
  known.seen = std::chrono::steady_clock::now();
  return {};
}

// Offsets of a partition only grow. The transaction is aborted: nothing of it is to be seen.
Status Voice::check_same_topic(const Known& known) const {
  if (delivered_.first_offset > known.state.last_offset) return {};
  return fail(
      Remedy::stop, "gone",
      fmt::format("{}: the topic was deleted and created again, or restored: the producer "
                  "{} had sent up to offset {}, and its next message would be at {}",
                  address_.where(), name_, known.state.last_offset, delivered_.first_offset));
}

// After the client was lost, Kafka says what of ours is there, and whether we still are the owner.
// Only then may we become ready again: that would fence a rightful successor.
Status Voice::refresh(std::uint32_t partition, Known& known) {
  if (!client_) ONCE_TRY(make_client());
  if (std::chrono::steady_clock::now() - known.seen > seen_valid) known.stale = true;
  if (known.stale) ONCE_TRY(check_owner(known, ONCE_TRY(stored_state(partition, false))));
  ONCE_TRY(make_ready());
  if (!known.stale) return {};
  const auto stored = ONCE_TRY(stored_state(partition, true));
  ONCE_TRY(check_owner(known, stored));
  known.state = *stored;
  known.stale = false;
  known.seen = std::chrono::steady_clock::now();
  return {};
}

Status Voice::check_owner(const Known& known, const std::optional<ProducerState>& stored) const {
  if (!stored)
    return fail(Remedy::stop, "unknown",
                fmt::format("{}: the state of the producer {} is gone; the topic was deleted and "
                            "created again, or the group {} was deleted",
                            address_.where(), name_, state_group(name_)));
  if (stored->producer == known.state.producer && stored->epoch == known.state.epoch) return {};
  return fail(
      Remedy::stop, "fenced",
      fmt::format("{}: another process has entered as the producer {}", address_.where(), name_));
}

Settings Voice::settings(const std::string& name) {
  return {{"transactional.id", "once/" + name}, {"enable.idempotence", "true"}, {"acks", "all"}};
}

Status Voice::make_client() {
  client_ = ONCE_TRY(Client::make(
      RD_KAFKA_PRODUCER, address_, settings(fmt::format("{}/{}", address_.topic, name_)),
      [](rd_kafka_conf_t& conf) { rd_kafka_conf_set_dr_msg_cb(&conf, delivered); }, this));
  ready_ = false;
  return {};
}

Status Voice::make_ready() {
  if (ready_) return {};
  const Failure failure =
      until_settled([&] { return rd_kafka_init_transactions(client_->get(), answer_ms); });
  if (failure) {
    rd_kafka_poll(client_->get(), 0);
    return abandon(client_->error(failure, fmt::format("enter as the producer {}", name_)));
  }
  ready_ = true;
  return {};
}

Result<std::optional<ProducerState>> Voice::stored_state(std::uint32_t partition, bool stable) {
  // By a consumer of that group: librdkafka 2.0 crashes when a producer is told that the group's
  // coordinator is elsewhere.
  if (!reader_)
    reader_ =
        ONCE_TRY(Client::make(RD_KAFKA_CONSUMER, address_, {{"group.id", state_group(name_)}}));
  const PartitionList places(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(places.get(), address_.topic.c_str(),
                                    static_cast<std::int32_t>(partition));
  const std::string group = state_group(name_);
  rd_kafka_ListConsumerGroupOffsets_t* wanted =
      rd_kafka_ListConsumerGroupOffsets_new(group.c_str(), places.get());
  rd_kafka_AdminOptions_t* options =
      rd_kafka_AdminOptions_new(reader_->get(), RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS);
  std::array<char, 256> text{};
  rd_kafka_AdminOptions_set_request_timeout(options, answer_ms, text.data(), text.size());
  (void)Failure(rd_kafka_AdminOptions_set_require_stable_offsets(options, stable ? 1 : 0));
  const std::string what = fmt::format("read the state of the producer {}", name_);
  const auto event = reader_->ask(what, [&](rd_kafka_queue_t* answers) {
    rd_kafka_ListConsumerGroupOffsets(reader_->get(), &wanted, 1, options, answers);
  });
  rd_kafka_AdminOptions_destroy(options);
  rd_kafka_ListConsumerGroupOffsets_destroy(wanted);
  if (!event) return fail(event.error());
  const auto error = [&](rd_kafka_resp_err_t code, const char* native) {
    return reader_->error(code, what, native == nullptr ? "" : native);
  };
  std::size_t count = 0;
  const rd_kafka_group_result_t** groups = rd_kafka_ListConsumerGroupOffsets_result_groups(
      rd_kafka_event_ListConsumerGroupOffsets_result(event->get()), &count);
  if (count != 1) return fail(error(RD_KAFKA_RESP_ERR__FAIL, nullptr));
  if (const rd_kafka_error_t* refused = rd_kafka_group_result_error(groups[0]))
    return fail(error(rd_kafka_error_code(refused), rd_kafka_error_string(refused)));
  const rd_kafka_topic_partition_list_t* found = rd_kafka_group_result_partitions(groups[0]);
  if (found == nullptr || found->cnt != 1) return fail(error(RD_KAFKA_RESP_ERR__FAIL, nullptr));
  const rd_kafka_topic_partition_t& place = found->elems[0];
  if (place.err != RD_KAFKA_RESP_ERR_NO_ERROR) return fail(error(place.err, nullptr));
  return ProducerState::read(place.offset, {static_cast<const char*>(place.metadata),
                                            place.metadata == nullptr ? 0 : place.metadata_size});
}

Status Voice::in_transaction(const std::function<Status()>& work) {
  delivered_ = {};
  const Failure failure(rd_kafka_begin_transaction(client_->get()));
  if (failure) return abandon(client_->error(failure, "begin a transaction"));
  const Status done = work();
  if (!done) return abort(done.error());
  return commit();
}

Status Voice::commit() {
  const Failure failure =
      until_settled([&] { return rd_kafka_commit_transaction(client_->get(), answer_ms); });
  if (!failure) return {};
  Error error = client_->error(failure, "commit");
  if (rd_kafka_error_txn_requires_abort(failure.get()) != 0) return abort(std::move(error));
  return abandon(std::move(error));
}

// Nothing of the transaction is to be seen by anybody.
Status Voice::abort(Error reason) {
  const Failure failure =
      until_settled([&] { return rd_kafka_abort_transaction(client_->get(), answer_ms); });
  if (failure) return abandon(std::move(reason));
  if (reason.remedy == Remedy::recheck) reason.remedy = Remedy::retry;
  return fail(std::move(reason));
}

// The client is of no use any more. A new one with the same ids ends what it has left behind, and
// finds out what has become of it; whether we were fenced turns out then as well.
Status Voice::abandon(Error reason) {
  client_.reset();
  ready_ = false;
  for (auto& [partition, known] : partitions_) known.stale = true;
  if (reason.remedy != Remedy::stop || reason.tag == "fenced") {
    reason.remedy = Remedy::recheck;
    reason.tag = "lost";
  }
  return fail(std::move(reason));
}

Status Voice::send(std::uint32_t partition, const Stamp& first, std::span<const Message> messages) {
  Stamp stamp = first;
  for (const Message& message : messages) {
    ONCE_TRY(send_one(partition, stamp, message));
    ++stamp.sequence;
  }
  const rd_kafka_resp_err_t code = rd_kafka_flush(client_->get(), settle_ms);
  if (delivered_.failure != RD_KAFKA_RESP_ERR_NO_ERROR)
    return fail(client_->error(delivered_.failure, "send"));
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return fail(client_->error(code, "send"));
  return {};
}

Status Voice::send_one(std::uint32_t partition, const Stamp& stamp, const Message& message) {
  rd_kafka_headers_t* headers = headers_for(message, stamp);
  const std::string_view key = view_of(message.key);  // without data: null
  const std::string_view body = view_of(message.body);
  const Deadline deadline = in_ms(settle_ms);
  for (;;) {
    const rd_kafka_resp_err_t code = rd_kafka_producev(
        client_->get(), RD_KAFKA_V_TOPIC(address_.topic.c_str()),
        RD_KAFKA_V_PARTITION(static_cast<std::int32_t>(partition)),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
        RD_KAFKA_V_VALUE(const_cast<char*>(body.data()), body.size()),
        RD_KAFKA_V_KEY(key.data(), key.size()), RD_KAFKA_V_TIMESTAMP(message.timestamp_ms),
        RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return {};
    if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL || passed(deadline)) {
      rd_kafka_headers_destroy(headers);
      return fail(client_->error(code, "send"));
    }
    rd_kafka_poll(client_->get(), 100);
  }
}

Status Voice::write_state(std::uint32_t partition, const ProducerState& state) {
  const PartitionList places(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_t& place = *rd_kafka_topic_partition_list_add(
      places.get(), address_.topic.c_str(), static_cast<std::int32_t>(partition));
  place.offset = static_cast<std::int64_t>(state.next_sequence);
  const std::string metadata = state.metadata();
  place.metadata = rd_kafka_mem_malloc(client_->get(), metadata.size());  // freed with the list
  std::copy(metadata.begin(), metadata.end(), static_cast<char*>(place.metadata));
  place.metadata_size = metadata.size();
  const std::unique_ptr<rd_kafka_consumer_group_metadata_t,
                        Free<rd_kafka_consumer_group_metadata_destroy>>
      group(rd_kafka_consumer_group_metadata_new(state_group(name_).c_str()));
  const Failure failure = until_settled([&] {
    return rd_kafka_send_offsets_to_transaction(client_->get(), places.get(), group.get(),
                                                answer_ms);
  });
  if (failure) return fail(client_->error(failure, "write the producer's state"));
  return {};
}

// Called inside `flush` and `poll`, so by the thread that has the lock.
void Voice::delivered(rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
  Delivered& report = static_cast<Voice*>(Client::of(opaque).opaque())->delivered_;
  if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
    if (report.failure == RD_KAFKA_RESP_ERR_NO_ERROR) report.failure = message->err;
    return;
  }
  if (report.first_offset < 0 || message->offset < report.first_offset)
    report.first_offset = message->offset;
}

}  // namespace once::kafka
