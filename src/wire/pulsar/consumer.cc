// SPDX-License-Identifier: Apache-2.0
#include "wire/pulsar/consumer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "model/random.h"

namespace once::pulsar {
namespace {

// What the messages that wait here may take together, as far as their size is known before.
constexpr std::size_t waiting_bytes = 16u << 20;
constexpr std::size_t message_bytes_first = 256u << 10;  // a guess on the large side
// A payload that grows beyond this when it is decompressed is refused.
constexpr std::size_t decompressed_max = 64u << 20;

}  // namespace

bool Received::is_left(std::size_t index) const {
  if (left.empty()) return true;
  return index / 64 < left.size() && (left[index / 64] >> (index % 64) & 1) != 0;
}

std::string private_subscription() { return fmt::format("once-reader-{:016x}", random_number()); }

Consumer::Consumer(std::shared_ptr<Connection> connection, Subscribe subscribe)
    : connection_(std::move(connection)),
      subscribe_(std::move(subscribe)),
      message_bytes_(message_bytes_first) {}

Result<std::unique_ptr<Consumer>> Consumer::open(Client& client, Subscribe subscribe) {
  const auto connection = ONCE_TRY(client.connection_for(subscribe.topic));
  subscribe.consumer = connection->next_number();
  std::unique_ptr<Consumer> consumer(new Consumer(connection, std::move(subscribe)));
  connection->listen_to_consumer(consumer->subscribe_.consumer,
                                 [raw = consumer.get()](Command& command, std::string&& frame) {
                                   return raw->hear(command, std::move(frame));
                                 });
  const std::uint64_t request = connection->next_number();
  ONCE_TRY(connection->ask(subscribe_frame(request, consumer->subscribe_), request,
                           fmt::format("subscribe to {} as {}", consumer->subscribe_.topic,
                                       consumer->subscribe_.subscription)));
  if (consumer->subscribe_.type == SubscriptionType::exclusive) consumer->is_active_ = true;
  return consumer;
}

Consumer::~Consumer() {
  connection_->forget_consumer(subscribe_.consumer);
  if (is_lost()) return;
  const std::uint64_t request = connection_->next_number();
  const std::string frame = close_consumer_frame(request, subscribe_.consumer);
  // Whoever subscribes next must not find us there.
  if (subscribe_.durable)
    (void)connection_->ask(frame, request, "close a consumer", close_ms);
  else
    (void)connection_->send(frame);
}

Status Consumer::hear(Command& command, std::string&& frame) {
  if (command.type == Type::message) return hear_message(command, std::move(frame));
  if (command.type == Type::close_consumer) is_closed_ = true;
  if (command.type == Type::active_change) is_active_ = command.is_active;
  return {};
}

Status Consumer::hear_message(Command& command, std::string&& frame) {
  if (failure_) return {};  // it is not got over
  Received received{.place = *command.place,
                    .redeliveries = command.redeliveries,
                    .left = std::move(command.left),
                    .entry = nullptr};
  received.place.index = 0;
  const std::string where = fmt::format("{} at {}", subscribe_.topic, shown(received.place));
  auto entry =
      Entry::read(std::move(frame), command.metadata, command.payload, decompressed_max, where);
  if (!entry) {
    failure_ = entry.error();
    return {};
  }
  received.entry = std::move(*entry);
  std::size_t count = received.entry->size();
  if (!received.left.empty()) {
    count = 0;
    for (std::size_t i = 0; i < received.entry->size(); ++i) count += received.is_left(i) ? 1 : 0;
  }
  permitted_ -= static_cast<std::int64_t>(count);
  queued_ += received.entry->size();
  const std::size_t bytes = received.entry->bytes() / received.entry->size() + 1;
  message_bytes_ = std::max<std::size_t>((message_bytes_ * 7 + bytes) / 8, 1);
  queue_.push_back(std::move(received));
  return {};
}

// In large steps, so that not each message costs a command.
Status Consumer::want(std::size_t messages) {
  const std::size_t fitting = std::max<std::size_t>(waiting_bytes / message_bytes_, 1);
  const auto wanted = static_cast<std::int64_t>(std::min(messages, fitting));
  const std::int64_t there =
      std::max<std::int64_t>(permitted_, 0) + static_cast<std::int64_t>(queued_);
  if (wanted == 0 || (there > wanted / 2)) return {};
  const std::int64_t more = wanted - there;
  if (more <= 0) return {};
  // What a batch took beyond its permission is still owed to the broker.
  permitted_ += more;
  return connection_->send(flow_frame(subscribe_.consumer, static_cast<std::uint32_t>(more)));
}

Result<Received> Consumer::take() {
  if (queue_.empty()) return fail(*failure_);
  Received received = std::move(queue_.front());
  queue_.pop_front();
  queued_ -= received.entry->size();
  return received;
}

Result<Consumer::Last> Consumer::last() {
  const std::uint64_t request = connection_->next_number();
  const Answer answer =
      ONCE_TRY(connection_->ask(get_last_frame(request, subscribe_.consumer), request,
                                fmt::format("ask where {} ends", subscribe_.topic)));
  return Last{answer.command.place.value_or(Place{}), answer.command.mark_delete};
}

Status Consumer::ack(std::span<const AckedEntry> entries, bool cumulative, bool confirmed) {
  const std::uint64_t request = connection_->next_number();
  const std::string frame = ack_frame(request, subscribe_.consumer, cumulative, entries);
  if (!confirmed) return connection_->send(frame);
  ONCE_TRY(connection_->ask(frame, request,
                            fmt::format("acknowledge messages of {}", subscribe_.topic)));
  return {};
}

Status Consumer::redeliver(std::span<const Place> places) {
  return connection_->send(redeliver_frame(subscribe_.consumer, places));
}

}  // namespace once::pulsar
