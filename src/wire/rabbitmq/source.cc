// SPDX-License-Identifier: Apache-2.0
#include "wire/rabbitmq/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/message_view.h"

namespace once::rabbitmq {
namespace {

// What has arrived and is not asked for yet. Beyond it nothing is read, and the broker waits.
constexpr std::size_t arrived_bytes_max = 64u << 20;
// How often the broker is asked whether the queue is empty: again soon, then seldom.
constexpr auto ask_again = std::chrono::milliseconds(20);
constexpr auto ask_seldom = std::chrono::seconds(1);
constexpr std::int64_t end_wait_ms = 20;
// A message may be on its way to us when its queue says that it is empty.
constexpr int empty_answers_needed = 2;

// What a batch refers to.
struct Memory {
  std::vector<Arrived> messages;
  std::vector<std::vector<HeaderView>> headers;
};

std::size_t bytes_in(const Arrived& arrived) {
  return arrived.message.body ? arrived.message.body->size() : 0;
}

}  // namespace

Result<std::unique_ptr<QueueSource>> QueueSource::open(Address address, Purpose purpose) {
  std::unique_ptr<QueueSource> source(new QueueSource(std::move(address), purpose));
  ONCE_TRY(source->connect());
  return source;
}

QueueSource::~QueueSource() { disconnect(); }

SourceTraits QueueSource::traits() const {
  return {.name = address_.where(),
          .ordered = false,
          .replayable = false,
          .redelivery_ms_max = address_.redelivery_ms_max,
          .lease_ms = -1,
          .delay_ms_max = 0,
          .unacknowledged_max = looks() ? std::size_t{0} : address_.prefetch};
}

Result<std::optional<Arrived>> QueueSource::consume(Connection& connection) {
  const std::string what = "consume the queue " + address_.queue;
  auto first = connection.get_one(address_.queue);
  if (!first) {
    Error error = first.error();
    // Its messages would be given from now on, and its count is not told.
    if (error.text.find("stream") != std::string::npos && error.tag == "config")
      error.text = address_.where() + " is a stream, which cannot be read like a queue";
    return fail(std::move(error));
  }
  const std::uint16_t prefetch = looks() ? 0 : address_.prefetch;  // 0: all that there is
  amqp_basic_qos(connection.get(), Connection::channel, 0, prefetch, 0);
  ONCE_TRY(connection.answered(what));
  amqp_basic_consume(connection.get(), Connection::channel, bytes_of(address_.queue),
                     amqp_empty_bytes, 0, 0, 0, amqp_empty_table);
  ONCE_TRY(connection.answered(what));
  return first;
}

Status QueueSource::connect() {
  auto connection = ONCE_TRY(Connection::open(address_, "source " + address_.queue, attempts_++));
  std::optional<Arrived> first;
  if (!looks() || address_.looks) {
    first = ONCE_TRY(consume(*connection));
  } else {
    amqp_queue_declare(connection->get(), Connection::channel, bytes_of(address_.queue), 1, 0, 0, 0,
                       amqp_empty_table);
    ONCE_TRY(connection->answered("find the queue " + address_.queue));
  }
  {
    const std::lock_guard lock(mutex_);
    if (left_) return fail(Remedy::stop, "away", address_.where() + ": the source was left");
    ++session_;
    connection_ = std::move(connection);
  }
  heartbeat_at_ = Clock::now();
  return first ? take(std::move(*first)) : Status{};
}

void QueueSource::disconnect() {
  std::unique_ptr<Connection> gone;
  {
    const std::lock_guard lock(mutex_);
    gone = std::move(connection_);
  }
  arrived_.clear();
  arrived_bytes_ = 0;
  unacknowledged_.clear();
  empty_answers_ = 0;
  asked_at_.reset();
}

void QueueSource::leave() {
  const std::lock_guard lock(mutex_);
  left_ = true;
  if (connection_) connection_->shut();
}

void QueueSource::cut() {
  if (connection_) connection_->shut();
}

Result<Batch> QueueSource::poll(std::size_t count_max, std::int64_t wait_ms) {
  Batch batch;
  if (!std::exchange(announced_, true)) {
    batch.event = Batch::Event::assigned;
    batch.partition = address_.queue;
    return batch;
  }
  if (looks() && !address_.looks)
    return fail(Remedy::stop, "config",
                fmt::format("{}: who looks into a queue takes its messages from its consumers for "
                            "as long as the look lasts, and each message counts as delivered once "
                            "more; add look=requeue to the URL to allow it",
                            address_.where()));
  if (!connection_) ONCE_TRY(connect());
  // The end is found by asking, not by waiting.
  if (address_.stop_at_end) wait_ms = std::min(wait_ms, end_wait_ms);
  if (const Status received = receive(count_max, wait_ms); !received) {
    disconnect();
    // The next poll connects again, and says what is wrong if it cannot.
    if (is_transient(received.error().remedy)) return batch;
    return fail(received.error());
  }
  if (count_max == 0) return batch;
  if (!arrived_.empty()) return batch_of(count_max);
  const auto empty = is_empty();
  if (!empty) {
    disconnect();
    if (is_transient(empty.error().remedy)) return batch;
    return fail(empty.error());
  }
  batch.drained = *empty;
  if (address_.stop_at_end && *empty && (looks() || unacknowledged_.empty()))
    batch.event = Batch::Event::end;
  return batch;
}

Status QueueSource::receive(std::size_t count_max, std::int64_t wait_ms) {
  const auto deadline = Clock::now() + std::chrono::milliseconds(wait_ms);
  while (arrived_bytes_ < arrived_bytes_max) {
    const bool waits = count_max > 0 && (arrived_.empty() || room() == 0);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    auto event = ONCE_TRY(connection_->next(waits ? std::max<std::int64_t>(left, 0) : 0));
    if (!event) break;
    ONCE_TRY(take(std::move(*event)));
  }
  const auto now = Clock::now();
  if (arrived_bytes_ < arrived_bytes_max) {
    heartbeat_at_ = now;  // reading until nothing is there has sent it
  } else if (address_.heartbeat_s > 0 &&
             now - heartbeat_at_ > std::chrono::milliseconds(address_.heartbeat_s * 400)) {
    heartbeat_at_ = now;
    ONCE_TRY(connection_->send_heartbeat());
  }
  return {};
}

Status QueueSource::take(Event event) {
  if (std::holds_alternative<Cancelled>(event))
    return fail(
        Remedy::retry, "away",
        address_.where() + ": the broker has ended the consumer; is the queue still there?");
  auto* arrived = std::get_if<Arrived>(&event);
  if (arrived == nullptr) return {};
  empty_answers_ = 0;
  arrived_bytes_ += bytes_in(*arrived);
  arrived_.push_back(std::move(*arrived));
  return {};
}

// The broker does not count the message that came before the consumer.
std::size_t QueueSource::room() const {
  if (looks()) return arrived_.size();
  return address_.prefetch - std::min<std::size_t>(address_.prefetch, unacknowledged_.size());
}

Batch QueueSource::batch_of(std::size_t count_max) {
  const auto memory = std::make_shared<Memory>();
  const std::size_t count = std::min({count_max, arrived_.size(), room()});
  memory->messages.reserve(count);
  memory->headers.reserve(count);
  Batch batch;
  if (count == 0) return batch;
  batch.partition = address_.queue;
  for (std::size_t i = 0; i < count; ++i) {
    arrived_bytes_ -= bytes_in(arrived_.front());
    const Arrived& one = memory->messages.emplace_back(std::move(arrived_.front()));
    arrived_.pop_front();
    memory->headers.push_back(header_views(one.message));
    unacknowledged_.insert(unacknowledged_.end(), one.tag);
    Delivery& delivery = batch.deliveries.emplace_back();
    delivery.partition = batch.partition;
    delivery.offset = static_cast<std::int64_t>(one.tag);
    delivery.session = session_;
    delivery.attempt = one.attempt;
    delivery.id = one.message.id;
    delivery.key = view_of(one.message.key);
    delivery.body = view_of(one.message.body);
    delivery.headers = memory->headers.back();
    delivery.timestamp_ms = one.message.timestamp_ms;
  }
  batch.memory = memory;
  return batch;
}

Result<bool> QueueSource::is_empty() {
  const auto now = Clock::now();
  const auto pause = empty_answers_ == 1 ? Clock::duration(ask_again) : Clock::duration(ask_seldom);
  if (asked_at_ && now - *asked_at_ < pause) return false;
  asked_at_ = now;
  const amqp_queue_declare_ok_t* queue =
      amqp_queue_declare(connection_->get(), Connection::channel, bytes_of(address_.queue), 1, 0, 0,
                         0, amqp_empty_table);
  ONCE_TRY(connection_->answered("ask about the queue " + address_.queue));
  empty_answers_ = queue->message_count == 0 ? empty_answers_ + 1 : 0;
  amqp_maybe_release_buffers_on_channel(connection_->get(), Connection::channel);
  return empty_answers_ >= empty_answers_needed;
}

std::vector<std::uint64_t> QueueSource::unsettled(std::span<const Delivery> deliveries) {
  std::vector<std::uint64_t> tags;
  for (const Delivery& delivery : deliveries) {
    const auto tag = static_cast<std::uint64_t>(delivery.offset);
    if (connection_ && delivery.session == session_ && unacknowledged_.contains(tag))
      tags.push_back(tag);
  }
  std::sort(tags.begin(), tags.end());
  tags.erase(std::unique(tags.begin(), tags.end()), tags.end());
  return tags;
}

// One acknowledgement covers all up to its tag, if none of them is still worked on; the others are
// acknowledged one by one.
Status QueueSource::ack(std::span<const Delivery> done) {
  if (looks()) return {};
  const std::vector<std::uint64_t> tags = unsettled(done);
  std::size_t together = 0;
  auto oldest = unacknowledged_.begin();
  while (together < tags.size() && *oldest == tags[together]) {
    ++together;
    ++oldest;
  }
  unacknowledged_.erase(unacknowledged_.begin(), oldest);
  Status sent;
  const auto send = [&](std::uint64_t tag, bool multiple) {
    sent = connection_->sent(
        amqp_basic_ack(connection_->get(), Connection::channel, tag, multiple ? 1 : 0),
        "acknowledge");
  };
  if (together > 0) send(tags[together - 1], together > 1);
  for (std::size_t i = together; i < tags.size() && sent; ++i) {
    unacknowledged_.erase(tags[i]);
    send(tags[i], false);
  }
  if (!sent) disconnect();
  return sent;
}

Status QueueSource::release(std::span<const Delivery> undone, std::int64_t) {
  if (looks()) return {};
  Status sent;
  for (const std::uint64_t tag : unsettled(undone)) {
    unacknowledged_.erase(tag);
    sent = connection_->sent(amqp_basic_nack(connection_->get(), Connection::channel, tag, 0, 1),
                             "give back");
    if (!sent) break;
  }
  if (!sent) disconnect();
  return sent;
}

}  // namespace once::rabbitmq
