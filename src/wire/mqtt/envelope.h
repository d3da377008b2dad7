// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
#include <once/result.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wire/mqtt/packet.h"

namespace once::mqtt {

// How a message of ours looks in MQTT 5. The body is the payload; everything else travels in
// properties:
//
//   once-id, once-key, once-time    id, key and time, as user properties; the first two with
//                                   -base64 behind the name where they are not texts
//   once-body: none                 there is no body, which is not an empty one
//   content type, response topic,   headers `mqtt-content-type`, `mqtt-response-topic`,
//   correlation data, expiry        `mqtt-correlation-data`, `mqtt-expiry`
//   once-header: NAME[.VALUE]       in base64: a header that is not a text, without value, or that
//                                   has a name of this list
//   NAME: VALUE                     any other header
//
// A source also tells, as headers, how a message came: `mqtt-topic`, `mqtt-qos` and `mqtt-retain`.

// What a PUBLISH has of a message. Refers to the message and to itself.
class Outgoing {
 public:
  // An error (`park`) if MQTT cannot carry the message. Version 3 only has the body.
  static Result<Outgoing> make(const Message& message, Version version);

  Properties properties;
  std::string_view payload;

 private:
  void add(std::string_view name, std::string_view value);
  void add_part(std::string_view name, std::string_view value);
  bool add_own(const Header& header);
  void add_header(const Header& header);

  std::deque<std::string> texts_;  // behind the properties
};

// A message that came, and all that a delivery of it refers to.
class Incoming {
 public:
  Frame frame;
  Publish publish;  // of the frame
  std::string_view id;
  std::string_view key;
  std::string_view body;
  std::vector<HeaderView> headers;
  std::int64_t timestamp_ms = 0;  // 0: the message does not say
  std::deque<std::string> texts;  // decoded

  // Reads `publish`. Never fails: what is not ours is a header.
  void open(bool own_headers_only);

 private:
  bool take_user(const Property& property);
  bool take_part(std::string_view name, const Property& property, std::string_view& part);
  bool take_header(std::string_view text);
  std::optional<std::string_view> decoded(std::string_view text);
};

}  // namespace once::mqtt
