// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <amqp.h>
#include <once/message.h>
#include <once/result.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "wire/rabbitmq/field.h"

namespace once::rabbitmq {

// How a message of ours looks in RabbitMQ: the id is the property `message-id`, or the header
// `once-id` where it is longer than a property can be. AMQP has whole seconds, no keys and no
// absent bodies: milliseconds are in the header `timestamp_in_ms`, as RabbitMQ's own plugin writes
// them, a key in `once-key`, and a body that is absent is marked by `once-no-body`. Headers with
// the names of properties (`content-type`, `correlation-id`, ...) travel as these.

// A message to be published. Refers to the message, which outlives it.
class Envelope {
 public:
  // `marks_key`: what goes through an exchange has a routing key, which must not be taken for a
  // key that the message does not have.
  Envelope(const Message& message, std::int64_t now_ms, bool marks_key);
  Envelope(const Envelope&) = delete;
  Envelope& operator=(const Envelope&) = delete;

  const amqp_basic_properties_t& properties() const { return properties_; }
  amqp_bytes_t body() const { return body_; }
  // Of the frame with the properties, at most.
  std::size_t properties_bytes() const { return bytes_; }
  // Why no broker could take it; unset: it can be sent.
  const std::optional<Error>& refusal() const { return refusal_; }

 private:
  void add_header(const Header& header);
  bool set_property(std::string_view name, std::string_view value);
  void set(amqp_bytes_t& property, amqp_flags_t flag, std::string_view value);

  amqp_basic_properties_t properties_{};
  amqp_bytes_t body_{};
  Table headers_;
  std::size_t bytes_ = 32;
  std::optional<Error> refusal_;
};

// A message that was delivered, returned or got.
struct Arrived {
  Message message = {};
  std::uint64_t tag = 0;
  std::uint32_t attempt = 1;
};

// Takes what is ours out of the properties and the headers of a message. A routing key is the key
// of a message that came through an exchange and has none.
void take_properties(const amqp_basic_properties_t& properties, std::string_view exchange,
                     std::string_view routing_key, Arrived& arrived);
// Last, since a body can be marked as absent.
void take_body(std::string body, Arrived& arrived);

}  // namespace once::rabbitmq
