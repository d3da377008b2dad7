// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <amqp.h>
#include <once/result.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "wire/rabbitmq/address.h"
#include "wire/rabbitmq/envelope.h"
#include "wire/rabbitmq/tls.h"

namespace once::rabbitmq {

// The broker could not route a message that had to be routed.
struct Returned {
  std::string text;
  Message message;
};

// Publishes were taken (or refused) by the broker: the one with this number, or all up to it.
struct Confirmed {
  std::uint64_t number = 0;
  bool multiple = false;
  bool accepted = true;
};

// The broker has ended a consumer by itself: its queue is gone.
struct Cancelled {};

using Event = std::variant<Arrived, Returned, Confirmed, Cancelled>;

// A message of which not all frames have come.
struct Partial {
  Arrived arrived = {};
  std::string exchange = {};
  std::string routing_key = {};
  bool redelivered = false;
  std::optional<std::string> returned = std::nullopt;  // why
  std::uint64_t body_bytes = 0;
  std::string body = {};
};

// A connection to a broker with one channel. For one thread at a time, except `shut`. It is good
// until the first error of any of its functions; what was on its way then is not known.
class Connection {
 public:
  static constexpr amqp_channel_t channel = 1;

  // `purpose` is the name that the broker shows for it. Tries the brokers of the address in turn,
  // beginning with that of number `first`.
  static Result<std::unique_ptr<Connection>> open(const Address& address, std::string_view purpose,
                                                  std::size_t first = 0);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  // Takes leave of the broker in bounded time.
  ~Connection();

  amqp_connection_state_t get() const { return handle_; }
  // Of the last call of librabbitmq that waits for an answer: whether it succeeded; `what` is for
  // the error.
  Status answered(std::string_view what);
  // The same for a call that only sends.
  Status sent(int status, std::string_view what);

  // What the broker says next; unset: nothing within this time. Sends and expects heartbeats, also
  // without waiting.
  Result<std::optional<Event>> next(std::int64_t wait_ms);
  // One message of a queue, for whoever has no consumer yet; unset: it is empty.
  Result<std::optional<Arrived>> get_one(const std::string& queue);
  // Proves to the broker that we are here, for a time in which nothing is read.
  Status send_heartbeat();

  // Why the broker takes no publishes at the moment; empty: it does.
  const std::string& blocked() const { return blocked_; }
  bool is_broken() const { return broken_; }
  // How many bytes a frame can carry.
  std::size_t frame_bytes_max() const;

  // Any thread may call it: what waits for the broker ends with an error.
  void shut();

 private:
  explicit Connection(const Address& address);
  Status connect(const Address& address, const Endpoint& broker, std::string_view purpose);
  Status enter(const Address& address, std::string_view purpose);
  Status check(const amqp_rpc_reply_t& reply, std::string_view what, bool entering);
  Error lost(int status, std::string_view what, bool entering = false);
  Error closed(int code, amqp_bytes_t text, std::string_view what);
  Result<std::optional<Event>> take_frame(const amqp_frame_t& frame);
  Result<std::optional<Event>> take_method(const amqp_method_t& method);
  Result<std::optional<Event>> take_header(const amqp_frame_t& frame);
  std::optional<Event> take_whole();

  const std::string where_;
  const bool tls_;
  TlsRefusal tls_refusal_;
  amqp_connection_state_t handle_ = nullptr;
  std::optional<Partial> partial_;
  std::string blocked_;
  bool connected_ = false;  // to the broker, which need not have let us in
  bool broken_ = false;
};

}  // namespace once::rabbitmq
