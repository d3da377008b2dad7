// SPDX-License-Identifier: Apache-2.0
#include "wire/pulsar/connection.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "wire/pulsar/error.h"

namespace once::pulsar {
namespace {

using std::chrono::steady_clock;

// Until the broker says what it takes. What is around a message comes on top.
constexpr std::size_t message_bytes_default = 5u << 20;
constexpr std::size_t message_bytes_limit = 256u << 20;
constexpr std::size_t around_bytes = 64u << 10;

constexpr std::chrono::seconds quiet_max(30);
constexpr std::chrono::seconds pong_max(10);

}  // namespace

Connection::Connection(std::unique_ptr<net::Stream> stream, std::string token)
    : stream_(std::move(stream)),
      token_(std::move(token)),
      cutter_(message_bytes_default + around_bytes),
      message_bytes_max_(message_bytes_default),
      heard_(steady_clock::now()) {}

Result<std::shared_ptr<Connection>> Connection::open(const Address& address, const Endpoint& server,
                                                     const std::string& behind_proxy) {
  auto stream = ONCE_TRY(net::Stream::connect(server, address.tls, net::in_ms(answer_ms)));
  std::shared_ptr<Connection> connection(new Connection(std::move(stream), address.token));
  ONCE_TRY(connection->shake_hands(behind_proxy));
  return connection;
}

Status Connection::shake_hands(const std::string& behind_proxy) {
  ONCE_TRY(send(connect_frame(token_, behind_proxy)));
  const net::Deadline deadline = net::in_ms(answer_ms);
  while (!answer_) {
    const auto received = receive(deadline);
    if (!received) {
      Error error = received.error();
      if (error.tag == "away") error.text += "; a port with TLS needs pulsar+ssl://";
      return fail(std::move(error));
    }
    if (!*received)
      return lose({Remedy::retry, "away",
                   fmt::format("{}: the broker does not answer; is it a port of Pulsar's binary "
                               "protocol?",
                               name()),
                   std::nullopt});
    ONCE_TRY(handle_all());
  }
  const Command& connected = answer_->command;
  if (connected.type == Type::error)
    return lose(error_from_pulsar(connected.error, name(), "connect", connected.text));
  if (connected.message_bytes_max > 0)
    message_bytes_max_ = std::min<std::size_t>(connected.message_bytes_max, message_bytes_limit);
  cutter_.limit(message_bytes_max_ + around_bytes);
  answer_.reset();
  return {};
}

void Connection::listen_to_producer(std::uint64_t producer, Listener listener) {
  producers_[producer] = std::move(listener);
}
void Connection::listen_to_consumer(std::uint64_t consumer, Listener listener) {
  consumers_[consumer] = std::move(listener);
}

tl::unexpected<Error> Connection::lose(Error error) {
  if (!lost_) lost_ = std::move(error);
  return fail(*lost_);
}

Status Connection::send(std::string_view frame) {
  if (lost_) return fail(*lost_);
  const Status sent = stream_->write(frame, net::in_ms(answer_ms));
  if (!sent) return lose(sent.error());
  return {};
}

Result<Answer> Connection::ask(std::string_view frame, std::uint64_t request, std::string_view what,
                               std::int64_t wait_ms) {
  awaited_ = request;
  answer_.reset();
  ONCE_TRY(send(frame));
  const net::Deadline deadline = net::in_ms(wait_ms);
  while (!answer_) {
    if (steady_clock::now() >= deadline)
      return lose({Remedy::retry, "away",
                   fmt::format("{}: no answer in {} s; cannot {}", name(), wait_ms / 1000, what),
                   std::nullopt});
    ONCE_TRY(serve(deadline));
  }
  awaited_ = 0;
  Answer answer = std::move(*answer_);
  answer_.reset();
  if (answer.command.error != no_error)
    return fail(error_from_pulsar(answer.command.error, name(), what, answer.command.text));
  return answer;
}

Status Connection::serve(net::Deadline deadline) {
  if (lost_) return fail(*lost_);
  ONCE_TRY(handle_all());
  bool received = ONCE_TRY(receive(deadline));
  // Everything that is there: what TLS has decrypted already would not wake a later wait.
  while (received) {
    ONCE_TRY(handle_all());
    received = ONCE_TRY(receive({}));
  }
  return keep_alive();
}

Result<bool> Connection::receive(net::Deadline deadline) {
  std::array<char, 65536> bytes;
  const auto count = stream_->read(bytes.data(), bytes.size(), deadline);
  if (!count) return lose(count.error());
  if (*count == 0) return false;
  cutter_.feed({bytes.data(), *count});
  heard_ = steady_clock::now();
  pinged_.reset();
  return true;
}

Error Connection::named(Error error) const {
  error.text = fmt::format("{}: {}", name(), error.text);
  return error;
}

Status Connection::handle_all() {
  while (true) {
    auto frame = cutter_.next();
    if (!frame) return lose(named(frame.error()));
    if (!*frame) return {};
    auto held = std::make_unique<std::string>(std::move(**frame));
    auto command = read_command(*held);
    if (!command) return lose(named(command.error()));
    if (!*command) continue;
    const bool is_answer =
        awaited_ != 0 && (*command)->request == awaited_ && (*command)->type != Type::message;
    const bool is_greeting =
        awaited_ == 0 && ((*command)->type == Type::connected || (*command)->type == Type::error);
    if (is_answer || is_greeting) {
      answer_ = Answer{std::move(held), std::move(**command)};
      continue;
    }
    const Status handled = handle(**command, std::move(*held));
    if (!handled) return lose(handled.error());
  }
}

Status Connection::handle(Command& command, std::string&& frame) {
  const auto tell = [&](const std::map<std::uint64_t, Listener>& listeners,
                        std::uint64_t number) -> Status {
    const auto found = listeners.find(number);
    if (found == listeners.end()) return {};
    return found->second(command, std::move(frame));
  };
  switch (command.type) {
    case Type::ping: return send(pong_frame());
    case Type::auth_challenge: return send(auth_response_frame(token_));
    case Type::send_receipt:
    case Type::send_error:
    case Type::close_producer: return tell(producers_, command.producer);
    case Type::message:
    case Type::close_consumer:
    case Type::end_of_topic:
    case Type::active_change: return tell(consumers_, command.consumer);
    default: return {};  // answers to questions that were given up
  }
}

// A broker that is gone without a word is found out.
Status Connection::keep_alive() {
  const auto now = steady_clock::now();
  if (pinged_ && now - *pinged_ > pong_max)
    return lose(
        {Remedy::retry, "away", name() + ": the broker does not answer a ping", std::nullopt});
  if (pinged_ || now - heard_ < quiet_max) return {};
  pinged_ = now;
  return send(ping_frame());
}

}  // namespace once::pulsar
