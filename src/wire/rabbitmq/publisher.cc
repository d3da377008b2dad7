// SPDX-License-Identifier: Apache-2.0
#include "wire/rabbitmq/publisher.h"

#include <fmt/format.h>
#include <once/clock.h>

#include <algorithm>
#include <chrono>

#include "model/message_view.h"

namespace once::rabbitmq {
namespace {

using std::chrono::steady_clock;

// So much is sent before its confirms are waited for.
constexpr std::size_t window_count_max = 1000;
constexpr std::size_t window_bytes_max = 4u << 20;
// A message that a broker may find too large is sent alone: the broker answers it by closing the
// channel, and nobody would know what has become of others.
constexpr std::size_t alone_bytes = 1u << 20;
// For how long a broker may be silent about what it was sent.
constexpr std::int64_t silence_ms_max = 30'000;
// The same, once it has said that it takes no messages.
constexpr std::int64_t blocked_ms_max = 5'000;
// For how long an append waits for what an earlier one has left unconfirmed.
constexpr std::int64_t earlier_ms_max = 2'000;
// Of the frame with the properties, around these.
constexpr std::size_t frame_overhead = 64;

std::size_t bytes_in(const Message& message) { return message.body ? message.body->size() : 0; }

bool is_unsent(const Fate& fate) { return fate.kind == Fate::Kind::unsent && !fate.why; }

}  // namespace

Status Publisher::connect() {
  auto connection = ONCE_TRY(Connection::open(address_, "sink " + address_.where(), attempts_++));
  const amqp_connection_state_t handle = connection->get();
  if (address_.exchange.empty()) {
    amqp_queue_declare(handle, Connection::channel, bytes_of(address_.queue), 1, 0, 0, 0,
                       amqp_empty_table);
    ONCE_TRY(connection->answered("publish to the queue " + address_.queue));
  } else {
    amqp_exchange_declare(handle, Connection::channel, bytes_of(address_.exchange),
                          amqp_cstring_bytes("direct"), 1, 0, 0, 0, amqp_empty_table);
    ONCE_TRY(connection->answered("publish to the exchange " + address_.exchange));
  }
  amqp_confirm_select(handle, Connection::channel);
  ONCE_TRY(connection->answered("ask for confirms"));
  connection_ = std::move(connection);
  published_ = 0;
  unconfirmed_.clear();
  stalled_ = false;
  return {};
}

// Nothing is sent while the broker has not said what became of earlier messages: each attempt that
// gives up would leave another copy with it.
Status Publisher::wait_for_earlier() {
  const auto deadline = steady_clock::now() + std::chrono::milliseconds(earlier_ms_max);
  while (connection_) {
    const bool is_over = steady_clock::now() >= deadline;
    const bool is_stuck = !unconfirmed_.empty() || !connection_->blocked().empty();
    const auto event = connection_->next(is_stuck && !is_over ? 50 : 0);
    if (!event) {
      connection_.reset();
    } else if (*event) {
      if (const auto* confirmed = std::get_if<Confirmed>(&**event)) take(*confirmed, {});
    } else if (!is_stuck) {
      stalled_ = false;
      return {};
    } else if (is_over) {
      return fail(Remedy::retry, "blocked",
                  fmt::format("{}: the broker takes no messages at the moment{}{}; does it lack "
                              "memory or disk space?",
                              address_.where(), connection_->blocked().empty() ? "" : ": ",
                              connection_->blocked()));
    }
  }
  return {};
}

Status Publisher::be_ready() {
  ONCE_TRY(wait_for_earlier());
  return connection_ ? Status{} : connect();
}

std::size_t Publisher::window_of(std::span<const Message> messages, std::span<const Fate> fates,
                                 std::size_t from) const {
  std::size_t bytes = 0;
  std::size_t count = 0;
  std::size_t end = from;
  for (; end < messages.size() && count < window_count_max; ++end) {
    if (!is_unsent(fates[end])) continue;
    const std::size_t size = bytes_in(messages[end]);
    if (count > 0 && (size > alone_bytes || bytes + size > window_bytes_max)) break;
    ++count;
    bytes += size;
    if (size > alone_bytes) return end + 1;
  }
  return end;
}

void Publisher::publish(std::span<const Message> messages, std::span<Fate> fates) {
  for (std::size_t from = 0; from < messages.size();) {
    const std::size_t end = window_of(messages, fates, from);
    if (!publish_window(messages.subspan(from, end - from), fates.subspan(from, end - from)))
      return;
    from = end;
  }
}

bool Publisher::publish_window(std::span<const Message> messages, std::span<Fate> fates) {
  Status done;
  for (std::size_t i = 0; i < messages.size() && done; ++i)
    if (is_unsent(fates[i])) done = send(messages[i], i, fates);
  if (done) done = wait_for_all(messages, fates);
  if (done) return true;
  const bool is_alone = unconfirmed_.size() == 1;
  for (const auto& [number, index] : unconfirmed_) {
    fates[index].why = done.error();
    // The broker has said so of this message: there is no other that it could mean.
    if (done.error().remedy == Remedy::park && is_alone) fates[index].kind = Fate::Kind::refused;
  }
  const bool was_refused = done.error().remedy == Remedy::park && is_alone;
  if (connection_->is_broken()) connection_.reset();
  if (!was_refused) return false;
  const Status connected = connect();
  return connected.has_value();
}

Status Publisher::send(const Message& message, std::size_t index, std::span<Fate> fates) {
  const bool through_exchange = !address_.exchange.empty();
  const Envelope envelope(message, system_clock().now_ms(), through_exchange);
  std::optional<Error> refusal = envelope.refusal();
  std::string_view routing_key = through_exchange ? address_.routing_key : address_.queue;
  if (through_exchange && !address_.has_routing_key) routing_key = view_of(message.key);
  if (routing_key.size() > 255)
    refusal = Error{Remedy::park, "too_large",
                    fmt::format("{}: the key of message {} has {} bytes; a routing key has at most "
                                "255",
                                address_.where(), message.id, routing_key.size()),
                    std::nullopt};
  if (envelope.properties_bytes() + frame_overhead > connection_->frame_bytes_max())
    refusal =
        Error{Remedy::park, "too_large",
              fmt::format("{}: the headers of message {} have {} bytes; a frame has at most {}",
                          address_.where(), message.id, envelope.properties_bytes(),
                          connection_->frame_bytes_max()),
              std::nullopt};
  if (refusal) {
    fates[index] = {Fate::Kind::refused, std::move(refusal)};
    return {};
  }
  unconfirmed_.emplace(++published_, index);
  fates[index].kind = Fate::Kind::unknown;
  return connection_->sent(
      amqp_basic_publish(connection_->get(), Connection::channel, bytes_of(address_.exchange),
                         bytes_of(routing_key), 1, 0, &envelope.properties(), envelope.body()),
      "publish");
}

Status Publisher::wait_for_all(std::span<const Message> messages, std::span<Fate> fates) {
  const auto patience = [this] {
    return std::chrono::milliseconds(connection_->blocked().empty() ? silence_ms_max
                                                                    : blocked_ms_max);
  };
  auto heard_at = steady_clock::now();
  while (!unconfirmed_.empty()) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(heard_at + patience() - steady_clock::now())
            .count();
    if (left <= 0) {
      stalled_ = true;
      return fail(
          Remedy::recheck, "blocked",
          fmt::format("{}: the broker does not confirm what it was sent{}{}", address_.where(),
                      connection_->blocked().empty() ? "" : ": ", connection_->blocked()));
    }
    // What the broker says about being blocked is no event.
    auto event = ONCE_TRY(connection_->next(std::min<std::int64_t>(left, 500)));
    if (!event) continue;
    heard_at = steady_clock::now();
    if (const auto* confirmed = std::get_if<Confirmed>(&*event)) take(*confirmed, fates);
    if (const auto* returned = std::get_if<Returned>(&*event)) take(*returned, messages, fates);
  }
  return {};
}

void Publisher::take(const Confirmed& confirmed, std::span<Fate> fates) {
  const auto end = unconfirmed_.upper_bound(confirmed.number);
  auto one = confirmed.multiple ? unconfirmed_.begin() : unconfirmed_.find(confirmed.number);
  if (one == unconfirmed_.end()) return;
  while (one != end) {
    if (one->second < fates.size() && !stalled_) {
      Fate& fate = fates[one->second];
      // A message that was returned is confirmed, too: nobody will get it.
      if (fate.kind == Fate::Kind::unknown)
        fate.kind = confirmed.accepted ? Fate::Kind::accepted : Fate::Kind::unsent;
    }
    one = unconfirmed_.erase(one);
  }
}

// A returned message has no number: it is the first one that looks like it. Which of several that
// say the same is all the same.
void Publisher::take(const Returned& returned, std::span<const Message> messages,
                     std::span<Fate> fates) {
  for (const auto& [number, index] : unconfirmed_) {
    const Message& message = messages[index];
    if (fates[index].kind != Fate::Kind::unknown || message.id != returned.message.id ||
        message.body != returned.message.body)
      continue;
    fates[index] = {
        Fate::Kind::refused,
        Error{Remedy::park, "unroutable",
              fmt::format("{}: the broker has no queue for message {} ({}); {}", address_.where(),
                          message.id, returned.text,
                          address_.exchange.empty() ? "create the queue"
                                                    : "bind a queue to the exchange for its key"),
              std::nullopt}};
    return;
  }
}

}  // namespace once::rabbitmq
