// SPDX-License-Identifier: Apache-2.0
#include "wire/rabbitmq/connection.h"

#include <amqp_tcp_socket.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <chrono>

#include "wire/rabbitmq/error.h"

namespace once::rabbitmq {
namespace {

using std::chrono::steady_clock;

// For how long a broker may think about a question, and take no bytes that are sent.
constexpr std::int64_t answer_ms = 5'000;
constexpr int unsent_ms_max = 30'000;
constexpr std::int64_t farewell_ms = 2'000;
constexpr int frame_bytes = 131'072;
constexpr std::uint64_t body_bytes_max = std::uint64_t{1} << 30;

timeval timeval_of(std::int64_t ms) {
  return {.tv_sec = ms / 1000, .tv_usec = static_cast<suseconds_t>(ms % 1000 * 1000)};
}

// A broker that takes nothing any more must not hold us for ever, and an idle connection that a
// firewall has forgotten is found dead before it is used.
void limit_silence(int socket) {
  constexpr int idle_s = 60;
  constexpr int interval_s = 10;
  constexpr int probes = 3;
  const auto set = [&](int option, int value) {
    (void)::setsockopt(socket, IPPROTO_TCP, option, &value, sizeof value);
  };
  set(TCP_USER_TIMEOUT, unsent_ms_max);
  set(TCP_KEEPIDLE, idle_s);
  set(TCP_KEEPINTVL, interval_s);
  set(TCP_KEEPCNT, probes);
}

}  // namespace

Connection::Connection(const Address& address)
    : where_(address.where()), tls_(address.tls), handle_(amqp_new_connection()) {}

Connection::~Connection() {
  if (handle_ == nullptr) return;
  if (!broken_ && amqp_get_sockfd(handle_) >= 0) {
    const timeval patience = timeval_of(farewell_ms);
    amqp_set_rpc_timeout(handle_, &patience);
    (void)amqp_connection_close(handle_, AMQP_REPLY_SUCCESS);
  }
  amqp_destroy_connection(handle_);
}

Result<std::unique_ptr<Connection>> Connection::open(const Address& address,
                                                     std::string_view purpose, std::size_t first) {
  Error last;
  for (std::size_t i = 0; i < address.brokers.size(); ++i) {
    std::unique_ptr<Connection> connection(new Connection(address));
    const Status connected = connection->connect(
        address, address.brokers[(first + i) % address.brokers.size()], purpose);
    if (connected) return connection;
    last = connected.error();
    if (!is_transient(last.remedy)) break;
  }
  return fail(std::move(last));
}

Status Connection::connect(const Address& address, const Endpoint& broker,
                           std::string_view purpose) {
  if (handle_ == nullptr) return fail(lost(AMQP_STATUS_NO_MEMORY, "connect", true));
  amqp_socket_t* socket =
      address.tls ? ONCE_TRY(make_tls_socket(handle_, address, broker.host, tls_refusal_))
                  : amqp_tcp_socket_new(handle_);
  if (socket == nullptr) return fail(lost(AMQP_STATUS_NO_MEMORY, "connect", true));
  const timeval patience = timeval_of(address.connect_ms);
  const int status = amqp_socket_open_noblock(socket, broker.host.c_str(), broker.port, &patience);
  if (status != AMQP_STATUS_OK)
    return fail(lost(status, fmt::format("connect to {}", shown_endpoint(broker)), true));
  connected_ = true;
  limit_silence(amqp_get_sockfd(handle_));
  amqp_set_handshake_timeout(handle_, &patience);
  return enter(address, purpose);
}

Status Connection::enter(const Address& address, std::string_view purpose) {
  const std::string name = fmt::format("once {}", purpose);
  Table capabilities;
  for (const char* capability :
       {"basic.nack", "connection.blocked", "consumer_cancel_notify", "publisher_confirms"})
    capabilities.add_flag(capability, true);
  Table properties;
  properties.add_text("product", "once");
  properties.add_text("connection_name", name);
  properties.add_table("capabilities", capabilities);
  const amqp_table_t table = properties.get();
  ONCE_TRY(check(amqp_login_with_properties(handle_, address.vhost.c_str(), 0, frame_bytes,
                                            address.heartbeat_s, &table, AMQP_SASL_METHOD_PLAIN,
                                            address.user.c_str(), address.password.c_str()),
                 fmt::format("log in as {}", address.user), true));
  const timeval patience = timeval_of(answer_ms);
  amqp_set_rpc_timeout(handle_, &patience);
  amqp_channel_open(handle_, channel);
  return answered("open a channel");
}

Error Connection::closed(int code, amqp_bytes_t text, std::string_view what) {
  broken_ = true;
  return error_from_broker(code, view_of_bytes(text), where_, what);
}

Error Connection::lost(int status, std::string_view what, bool entering) {
  broken_ = true;
  std::string complaint;
  if (tls_) complaint = last_tls_complaint();
  if (!tls_ && entering && connected_)
    complaint = fmt::format("{} (does this port want amqps://?)", amqp_error_string2(status));
  if (!tls_refusal_.why.empty()) complaint = "certificate: " + tls_refusal_.why;
  return error_from_library(status, where_, what, entering, complaint);
}

Status Connection::check(const amqp_rpc_reply_t& reply, std::string_view what, bool entering) {
  if (reply.reply_type == AMQP_RESPONSE_NORMAL) return {};
  if (reply.reply_type != AMQP_RESPONSE_SERVER_EXCEPTION)
    return fail(lost(reply.library_error, what, entering));
  if (reply.reply.id == AMQP_CONNECTION_CLOSE_METHOD) {
    const auto* close = static_cast<const amqp_connection_close_t*>(reply.reply.decoded);
    return fail(closed(close->reply_code, close->reply_text, what));
  }
  if (reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD) {
    const auto* close = static_cast<const amqp_channel_close_t*>(reply.reply.decoded);
    return fail(closed(close->reply_code, close->reply_text, what));
  }
  return fail(lost(AMQP_STATUS_UNEXPECTED_STATE, what, entering));
}

Status Connection::answered(std::string_view what) {
  return check(amqp_get_rpc_reply(handle_), what, false);
}

Status Connection::sent(int status, std::string_view what) {
  if (status == AMQP_STATUS_OK) return {};
  return fail(lost(status, what));
}

Status Connection::send_heartbeat() {
  amqp_frame_t frame{};
  frame.frame_type = AMQP_FRAME_HEARTBEAT;
  return sent(amqp_send_frame(handle_, &frame), "send a heartbeat");
}

std::size_t Connection::frame_bytes_max() const {
  return static_cast<std::size_t>(amqp_get_frame_max(handle_));
}

void Connection::shut() {
  const int socket = amqp_get_sockfd(handle_);
  if (socket >= 0) (void)::shutdown(socket, SHUT_RDWR);
}

Result<std::optional<Event>> Connection::next(std::int64_t wait_ms) {
  const auto deadline = steady_clock::now() + std::chrono::milliseconds(wait_ms);
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now());
    const timeval patience = timeval_of(std::max<std::int64_t>(left.count(), 0));
    amqp_frame_t frame{};
    const int status = amqp_simple_wait_frame_noblock(handle_, &frame, &patience);
    if (status == AMQP_STATUS_TIMEOUT) return std::nullopt;
    if (status != AMQP_STATUS_OK) return fail(lost(status, "read"));
    auto event = take_frame(frame);
    amqp_maybe_release_buffers_on_channel(handle_, frame.channel);
    if (!event || *event) return event;
  }
}

Result<std::optional<Arrived>> Connection::get_one(const std::string& queue) {
  const std::string what = "read the queue " + queue;
  const amqp_rpc_reply_t reply = amqp_basic_get(handle_, channel, bytes_of(queue), 0);
  ONCE_TRY(check(reply, what, false));
  if (reply.reply.id != AMQP_BASIC_GET_OK_METHOD) return std::nullopt;
  const auto* got = static_cast<const amqp_basic_get_ok_t*>(reply.reply.decoded);
  partial_.emplace();
  partial_->arrived.tag = got->delivery_tag;
  partial_->redelivered = got->redelivered != 0;
  partial_->exchange = view_of_bytes(got->exchange);
  partial_->routing_key = view_of_bytes(got->routing_key);
  auto event = ONCE_TRY(next(answer_ms));
  auto* arrived = event ? std::get_if<Arrived>(&*event) : nullptr;
  if (arrived == nullptr) return fail(lost(AMQP_STATUS_TIMEOUT, what));
  return std::move(*arrived);
}

Result<std::optional<Event>> Connection::take_frame(const amqp_frame_t& frame) {
  if (frame.frame_type == AMQP_FRAME_METHOD) return take_method(frame.payload.method);
  if (frame.frame_type == AMQP_FRAME_HEADER && partial_) return take_header(frame);
  if (frame.frame_type == AMQP_FRAME_BODY && partial_) {
    partial_->body += view_of_bytes(frame.payload.body_fragment);
    return take_whole();
  }
  return std::nullopt;
}

Result<std::optional<Event>> Connection::take_method(const amqp_method_t& method) {
  switch (method.id) {
    case AMQP_BASIC_DELIVER_METHOD: {
      const auto* deliver = static_cast<const amqp_basic_deliver_t*>(method.decoded);
      partial_.emplace();
      partial_->arrived.tag = deliver->delivery_tag;
      partial_->redelivered = deliver->redelivered != 0;
      partial_->exchange = view_of_bytes(deliver->exchange);
      partial_->routing_key = view_of_bytes(deliver->routing_key);
      return std::nullopt;
    }
    case AMQP_BASIC_RETURN_METHOD: {
      const auto* returned = static_cast<const amqp_basic_return_t*>(method.decoded);
      partial_.emplace();
      partial_->returned = std::string(view_of_bytes(returned->reply_text));
      partial_->exchange = view_of_bytes(returned->exchange);
      partial_->routing_key = view_of_bytes(returned->routing_key);
      return std::nullopt;
    }
    case AMQP_BASIC_ACK_METHOD: {
      const auto* ack = static_cast<const amqp_basic_ack_t*>(method.decoded);
      return Confirmed{ack->delivery_tag, ack->multiple != 0, true};
    }
    case AMQP_BASIC_NACK_METHOD: {
      const auto* nack = static_cast<const amqp_basic_nack_t*>(method.decoded);
      return Confirmed{nack->delivery_tag, nack->multiple != 0, false};
    }
    case AMQP_BASIC_CANCEL_METHOD: return Cancelled{};
    case AMQP_CONNECTION_BLOCKED_METHOD:
      blocked_ =
          view_of_bytes(static_cast<const amqp_connection_blocked_t*>(method.decoded)->reason);
      if (blocked_.empty()) blocked_ = "it does not say why";
      return std::nullopt;
    case AMQP_CONNECTION_UNBLOCKED_METHOD: blocked_.clear(); return std::nullopt;
    case AMQP_CONNECTION_CLOSE_METHOD: {
      const auto* close = static_cast<const amqp_connection_close_t*>(method.decoded);
      return fail(closed(close->reply_code, close->reply_text, "go on"));
    }
    case AMQP_CHANNEL_CLOSE_METHOD: {
      const auto* close = static_cast<const amqp_channel_close_t*>(method.decoded);
      return fail(closed(close->reply_code, close->reply_text, "go on"));
    }
    default: return std::nullopt;
  }
}

Result<std::optional<Event>> Connection::take_header(const amqp_frame_t& frame) {
  partial_->body_bytes = frame.payload.properties.body_size;
  if (partial_->body_bytes > body_bytes_max)
    return fail(lost(AMQP_STATUS_BAD_AMQP_DATA,
                     fmt::format("take a message of {} bytes", partial_->body_bytes)));
  take_properties(*static_cast<const amqp_basic_properties_t*>(frame.payload.properties.decoded),
                  partial_->exchange, partial_->routing_key, partial_->arrived);
  if (partial_->redelivered) partial_->arrived.attempt = std::max(partial_->arrived.attempt, 2u);
  return take_whole();
}

std::optional<Event> Connection::take_whole() {
  if (partial_->body.size() < partial_->body_bytes) return std::nullopt;
  Partial whole = std::move(*partial_);
  partial_.reset();
  take_body(std::move(whole.body), whole.arrived);
  if (whole.returned) return Returned{std::move(*whole.returned), std::move(whole.arrived.message)};
  return std::move(whole.arrived);
}

}  // namespace once::rabbitmq
