// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace once::mqtt {

// The packets of MQTT 3.1.1 and 5 that a client sends and gets, and their bytes. Nothing here reads
// or writes a connection. Texts are views of the bytes that they were decoded from.

// As CONNECT has it on the wire.
enum class Version : std::uint8_t { v3 = 4, v5 = 5 };

enum class PacketType : std::uint8_t {
  connect = 1,
  connack = 2,
  publish = 3,
  puback = 4,
  pubrec = 5,
  pubrel = 6,
  pubcomp = 7,
  subscribe = 8,
  suback = 9,
  pingreq = 12,
  pingresp = 13,
  disconnect = 14,
};

enum class PropertyId : std::uint8_t {
  payload_format = 0x01,
  message_expiry = 0x02,
  content_type = 0x03,
  response_topic = 0x08,
  correlation_data = 0x09,
  subscription_id = 0x0B,
  session_expiry = 0x11,
  assigned_client = 0x12,
  server_keep_alive = 0x13,
  authentication_method = 0x15,
  authentication_data = 0x16,
  problem_information = 0x17,
  will_delay = 0x18,
  response_information_wanted = 0x19,
  response_information = 0x1A,
  server_reference = 0x1C,
  reason = 0x1F,
  receive_maximum = 0x21,
  topic_alias_maximum = 0x22,
  topic_alias = 0x23,
  maximum_qos = 0x24,
  retain_available = 0x25,
  user = 0x26,
  maximum_packet = 0x27,
  wildcard_available = 0x28,
  subscription_id_available = 0x29,
  shared_available = 0x2A,
};

// A number, a text, or (`user`) a name in `text` and its value.
struct Property {
  PropertyId id = PropertyId::user;
  std::uint32_t number = 0;
  std::string_view text = {};
  std::string_view value = {};

  bool operator==(const Property&) const = default;
};
using Properties = std::vector<Property>;

// Unset: there is no such property. Empty: there is none, or an empty one.
std::optional<std::uint32_t> number_in(const Properties& properties, PropertyId id);
std::string_view text_in(const Properties& properties, PropertyId id);

struct Connect {
  Version version = Version::v5;
  bool clean_start = false;
  std::uint16_t keep_alive_s = 0;
  std::string_view client = {};
  std::optional<std::string_view> user = std::nullopt;
  std::optional<std::string_view> password = std::nullopt;
  Properties properties = {};
};

struct Connack {
  bool session_present = false;
  std::uint8_t reason = 0;
  Properties properties = {};

  bool operator==(const Connack&) const = default;
};

struct Publish {
  std::uint8_t qos = 0;
  bool retain = false;
  bool duplicate = false;
  std::uint16_t packet = 0;  // 0 with QoS 0
  std::string_view topic = {};
  std::string_view payload = {};
  Properties properties = {};

  bool operator==(const Publish&) const = default;
};

// PUBACK, PUBREC, PUBREL or PUBCOMP.
struct Answer {
  PacketType type = PacketType::puback;
  std::uint16_t packet = 0;
  std::uint8_t reason = 0;
  Properties properties = {};

  bool operator==(const Answer&) const = default;
};

struct Subscribe {
  std::uint16_t packet = 0;
  std::string_view filter = {};
  std::uint8_t qos = 0;
  std::uint8_t retain_handling = 0;  // 0: send what is retained; 1: if it is new; 2: never
};

struct Suback {
  std::uint16_t packet = 0;
  std::vector<std::uint8_t> reasons = {};
  Properties properties = {};

  bool operator==(const Suback&) const = default;
};

struct Pong {
  bool operator==(const Pong&) const = default;
};

struct Disconnect {
  std::uint8_t reason = 0;
  Properties properties = {};

  bool operator==(const Disconnect&) const = default;
};

// What a server sends.
using Packet = std::variant<Connack, Publish, Answer, Suback, Pong, Disconnect>;

inline constexpr std::size_t text_bytes_max = 65'535;
inline constexpr std::size_t body_bytes_max = 268'435'455;  // behind the fixed header
inline constexpr std::uint8_t failures_begin = 0x80;        // reasons from here on are failures

// Each appends a packet. Texts are at most `text_bytes_max` bytes, a whole packet at most
// `packet_bytes_max`: the caller sees to that.
void encode(const Connect& packet, std::string& into);
void encode(const Publish& packet, Version version, std::string& into);
void encode(const Answer& packet, Version version, std::string& into);
void encode(const Subscribe& packet, Version version, std::string& into);
void encode(const Disconnect& packet, Version version, std::string& into);
void encode_ping(std::string& into);

// How many bytes `encode` appends for it.
std::size_t encoded_bytes(const Publish& packet, Version version);

// A packet as it is on the wire, without its length.
struct Frame {
  std::uint8_t first = 0;  // type and flags
  std::string body = {};

  bool operator==(const Frame&) const = default;
};

// The packet refers to the frame. An error ("protocol", retry) is the server's fault.
Result<Packet> decode(const Frame& frame, Version version);

// Cuts frames out of what arrives. It grows with the bytes that arrive, not with the lengths that
// they announce.
class FrameReader {
 public:
  explicit FrameReader(std::size_t frame_bytes_max) : frame_bytes_max_(frame_bytes_max) {}

  void allow(std::size_t frame_bytes_max) { frame_bytes_max_ = frame_bytes_max; }
  void add(std::string_view bytes);
  // Nothing: more has to arrive. An error for a length that is not one or too large.
  Result<std::optional<Frame>> next();

 private:
  std::size_t frame_bytes_max_;
  std::string bytes_;
  std::size_t begin_ = 0;  // what is before it was taken
};

// Whether a text can be one of MQTT: UTF-8 without a NUL, and not too long.
bool is_text(std::string_view text);

}  // namespace once::mqtt
