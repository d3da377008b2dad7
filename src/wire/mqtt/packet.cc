// SPDX-License-Identifier: Apache-2.0
#include "wire/mqtt/packet.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"

namespace once::mqtt {
namespace {

tl::unexpected<Error> broken(std::string_view what) {
  return fail(Remedy::retry, "protocol",
              fmt::format("the server sent a packet that is not MQTT: {}", what));
}

enum class Kind : std::uint8_t { byte, two, four, varying, text, pair };

std::optional<Kind> kind_of(std::uint32_t id) {
  switch (static_cast<PropertyId>(id)) {
    case PropertyId::payload_format:
    case PropertyId::problem_information:
    case PropertyId::response_information_wanted:
    case PropertyId::maximum_qos:
    case PropertyId::retain_available:
    case PropertyId::wildcard_available:
    case PropertyId::subscription_id_available:
    case PropertyId::shared_available: return Kind::byte;
    case PropertyId::server_keep_alive:
    case PropertyId::receive_maximum:
    case PropertyId::topic_alias_maximum:
    case PropertyId::topic_alias: return Kind::two;
    case PropertyId::message_expiry:
    case PropertyId::session_expiry:
    case PropertyId::will_delay:
    case PropertyId::maximum_packet: return Kind::four;
    case PropertyId::subscription_id: return Kind::varying;
    case PropertyId::content_type:
    case PropertyId::response_topic:
    case PropertyId::correlation_data:
    case PropertyId::assigned_client:
    case PropertyId::authentication_method:
    case PropertyId::authentication_data:
    case PropertyId::response_information:
    case PropertyId::server_reference:
    case PropertyId::reason: return Kind::text;
    case PropertyId::user: return Kind::pair;
  }
  return std::nullopt;
}

// --- Writing

void put(std::string& into, std::uint32_t number, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
    into.push_back(static_cast<char>(number >> shift & 0xff));
}

void put_varying(std::string& into, std::size_t number) {
  ONCE_ASSERT(number <= body_bytes_max);
  do {
    const auto low = static_cast<unsigned char>(number & 0x7f);
    number >>= 7;
    into.push_back(static_cast<char>(number > 0 ? low | 0x80 : low));
  } while (number > 0);
}

std::size_t varying_bytes(std::size_t number) {
  return number < 128 ? 1 : number < 16'384 ? 2 : number < 2'097'152 ? 3 : 4;
}

void put_text(std::string& into, std::string_view text) {
  ONCE_ASSERT(text.size() <= text_bytes_max);
  put(into, static_cast<std::uint32_t>(text.size()), 2);
  into += text;
}

std::size_t property_bytes(const Property& property) {
  switch (*kind_of(static_cast<std::uint32_t>(property.id))) {
    case Kind::byte: return 2;
    case Kind::two: return 3;
    case Kind::four: return 5;
    case Kind::varying: return 1 + varying_bytes(property.number);
    case Kind::text: return 3 + property.text.size();
    case Kind::pair: return 5 + property.text.size() + property.value.size();
  }
  return 0;
}

std::size_t properties_bytes(const Properties& properties) {
  std::size_t bytes = 0;
  for (const Property& property : properties) bytes += property_bytes(property);
  return bytes;
}

void put_properties(std::string& into, const Properties& properties) {
  put_varying(into, properties_bytes(properties));
  for (const Property& property : properties) {
    into.push_back(static_cast<char>(property.id));
    switch (*kind_of(static_cast<std::uint32_t>(property.id))) {
      case Kind::byte: put(into, property.number, 1); break;
      case Kind::two: put(into, property.number, 2); break;
      case Kind::four: put(into, property.number, 4); break;
      case Kind::varying: put_varying(into, property.number); break;
      case Kind::text: put_text(into, property.text); break;
      case Kind::pair:
        put_text(into, property.text);
        put_text(into, property.value);
        break;
    }
  }
}

void put_first(std::string& into, PacketType type, int flags, std::size_t body_bytes) {
  into.push_back(static_cast<char>(static_cast<int>(type) << 4 | flags));
  put_varying(into, body_bytes);
}

std::size_t body_bytes(const Publish& packet, Version version) {
  std::size_t bytes = 2 + packet.topic.size() + (packet.qos > 0 ? 2 : 0) + packet.payload.size();
  if (version == Version::v5) {
    const std::size_t properties = properties_bytes(packet.properties);
    bytes += varying_bytes(properties) + properties;
  }
  return bytes;
}

// --- Reading

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

  Result<std::uint32_t> number(std::size_t bytes) {
    std::uint32_t value = 0;
    for (const char c : ONCE_TRY(take(bytes))) value = value << 8 | static_cast<unsigned char>(c);
    return value;
  }
  Result<std::uint32_t> varying() {
    std::uint32_t value = 0;
    for (int shift = 0; shift < 28; shift += 7) {
      const std::uint32_t byte = ONCE_TRY(number(1));
      value |= (byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    return broken("a number has more than four bytes");
  }
  Result<std::string_view> text() { return take(ONCE_TRY(number(2))); }
  Result<std::string_view> take(std::size_t bytes) {
    if (bytes > rest_.size()) return broken("it ends too early");
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }

 private:
  std::string_view rest_;
};

Result<Property> read_property(Reader& reader) {
  const std::uint32_t id = ONCE_TRY(reader.varying());
  const auto kind = kind_of(id);
  if (!kind) return broken(fmt::format("it has a property {:#x}", id));
  Property property{static_cast<PropertyId>(id)};
  switch (*kind) {
    case Kind::byte: property.number = ONCE_TRY(reader.number(1)); break;
    case Kind::two: property.number = ONCE_TRY(reader.number(2)); break;
    case Kind::four: property.number = ONCE_TRY(reader.number(4)); break;
    case Kind::varying: property.number = ONCE_TRY(reader.varying()); break;
    case Kind::text: property.text = ONCE_TRY(reader.text()); break;
    case Kind::pair:
      property.text = ONCE_TRY(reader.text());
      property.value = ONCE_TRY(reader.text());
      break;
  }
  return property;
}

bool may_repeat(PropertyId id) {
  return id == PropertyId::user || id == PropertyId::subscription_id;
}

Result<Properties> read_properties(Reader& reader, Version version) {
  Properties properties;
  if (version == Version::v3) return properties;
  Reader list(ONCE_TRY(reader.take(ONCE_TRY(reader.varying()))));
  std::uint64_t seen = 0;
  while (!list.empty()) {
    const Property property = ONCE_TRY(read_property(list));
    const std::uint64_t bit = std::uint64_t{1} << static_cast<int>(property.id);
    if ((seen & bit) != 0 && !may_repeat(property.id))
      return broken(fmt::format("it has the property {:#x} twice", static_cast<int>(property.id)));
    seen |= bit;
    properties.push_back(property);
  }
  return properties;
}

Result<Packet> read_connack(Reader reader, Version version) {
  Connack packet;
  packet.session_present = (ONCE_TRY(reader.number(1)) & 1) != 0;
  packet.reason = static_cast<std::uint8_t>(ONCE_TRY(reader.number(1)));
  // A server that knows no MQTT 5 refuses in its own words, without properties.
  if (!reader.empty()) packet.properties = ONCE_TRY(read_properties(reader, version));
  return packet;
}

Result<Packet> read_publish(Reader reader, int flags, Version version) {
  Publish packet;
  packet.qos = static_cast<std::uint8_t>(flags >> 1 & 3);
  packet.retain = (flags & 1) != 0;
  packet.duplicate = (flags & 8) != 0;
  if (packet.qos > 2) return broken("a message has QoS 3");
  packet.topic = ONCE_TRY(reader.text());
  if (packet.qos > 0) {
    packet.packet = static_cast<std::uint16_t>(ONCE_TRY(reader.number(2)));
    if (packet.packet == 0) return broken("a message has the packet identifier 0");
  }
  packet.properties = ONCE_TRY(read_properties(reader, version));
  // We do not offer topic aliases: each message names its topic.
  if (packet.topic.empty() || number_in(packet.properties, PropertyId::topic_alias))
    return broken("a message has an alias instead of its topic");
  packet.payload = reader.rest();
  return packet;
}

Result<Packet> read_answer(Reader reader, PacketType type, Version version) {
  Answer packet{.type = type};
  packet.packet = static_cast<std::uint16_t>(ONCE_TRY(reader.number(2)));
  if (packet.packet == 0) return broken("an answer has the packet identifier 0");
  if (version == Version::v3 || reader.empty()) return packet;
  packet.reason = static_cast<std::uint8_t>(ONCE_TRY(reader.number(1)));
  if (!reader.empty()) packet.properties = ONCE_TRY(read_properties(reader, version));
  return packet;
}

Result<Packet> read_suback(Reader reader, Version version) {
  Suback packet;
  packet.packet = static_cast<std::uint16_t>(ONCE_TRY(reader.number(2)));
  packet.properties = ONCE_TRY(read_properties(reader, version));
  for (const char c : reader.rest()) packet.reasons.push_back(static_cast<std::uint8_t>(c));
  if (packet.reasons.empty()) return broken("a SUBACK says nothing");
  return packet;
}

Result<Packet> read_disconnect(Reader reader, Version version) {
  Disconnect packet;
  if (reader.empty()) return packet;
  packet.reason = static_cast<std::uint8_t>(ONCE_TRY(reader.number(1)));
  if (!reader.empty()) packet.properties = ONCE_TRY(read_properties(reader, version));
  return packet;
}

}  // namespace

std::optional<std::uint32_t> number_in(const Properties& properties, PropertyId id) {
  for (const Property& property : properties)
    if (property.id == id) return property.number;
  return std::nullopt;
}

std::string_view text_in(const Properties& properties, PropertyId id) {
  for (const Property& property : properties)
    if (property.id == id) return property.text;
  return {};
}

void encode(const Connect& packet, std::string& into) {
  std::string body;
  put_text(body, "MQTT");
  put(body, static_cast<std::uint32_t>(packet.version), 1);
  std::uint32_t flags = packet.clean_start ? 2 : 0;
  if (packet.user) flags |= 0x80;
  if (packet.password) flags |= 0x40;
  put(body, flags, 1);
  put(body, packet.keep_alive_s, 2);
  if (packet.version == Version::v5) put_properties(body, packet.properties);
  put_text(body, packet.client);
  if (packet.user) put_text(body, *packet.user);
  if (packet.password) put_text(body, *packet.password);
  put_first(into, PacketType::connect, 0, body.size());
  into += body;
}

void encode(const Publish& packet, Version version, std::string& into) {
  const int flags = (packet.duplicate ? 8 : 0) | packet.qos << 1 | (packet.retain ? 1 : 0);
  put_first(into, PacketType::publish, flags, body_bytes(packet, version));
  put_text(into, packet.topic);
  if (packet.qos > 0) put(into, packet.packet, 2);
  if (version == Version::v5) put_properties(into, packet.properties);
  into += packet.payload;
}

std::size_t encoded_bytes(const Publish& packet, Version version) {
  const std::size_t body = body_bytes(packet, version);
  return 1 + varying_bytes(body) + body;
}

void encode(const Answer& packet, Version version, std::string& into) {
  const bool tells = version == Version::v5 && packet.reason != 0;
  put_first(into, packet.type, packet.type == PacketType::pubrel ? 2 : 0, tells ? 3 : 2);
  put(into, packet.packet, 2);
  if (tells) put(into, packet.reason, 1);
}

void encode(const Subscribe& packet, Version version, std::string& into) {
  std::string body;
  put(body, packet.packet, 2);
  if (version == Version::v5) put_properties(body, {});
  put_text(body, packet.filter);
  const int handling = version == Version::v5 ? packet.retain_handling << 4 : 0;
  put(body, static_cast<std::uint32_t>(packet.qos | handling), 1);
  put_first(into, PacketType::subscribe, 2, body.size());
  into += body;
}

void encode(const Disconnect& packet, Version version, std::string& into) {
  std::string body;
  if (version == Version::v5 && (packet.reason != 0 || !packet.properties.empty())) {
    put(body, packet.reason, 1);
    put_properties(body, packet.properties);
  }
  put_first(into, PacketType::disconnect, 0, body.size());
  into += body;
}

void encode_ping(std::string& into) { put_first(into, PacketType::pingreq, 0, 0); }

Result<Packet> decode(const Frame& frame, Version version) {
  const Reader reader(frame.body);
  const auto type = static_cast<PacketType>(frame.first >> 4);
  const int flags = frame.first & 0x0f;
  const int wanted = type == PacketType::pubrel ? 2 : 0;
  if (type != PacketType::publish && flags != wanted)
    return broken(fmt::format("it begins with {:#x}", frame.first));
  switch (type) {
    case PacketType::connack: return read_connack(reader, version);
    case PacketType::publish: return read_publish(reader, flags, version);
    case PacketType::puback:
    case PacketType::pubrec:
    case PacketType::pubrel:
    case PacketType::pubcomp: return read_answer(reader, type, version);
    case PacketType::suback: return read_suback(reader, version);
    case PacketType::pingresp: return Packet(Pong());
    case PacketType::disconnect: return read_disconnect(reader, version);
    default: break;  // what only a client sends, and what we did not ask for
  }
  return broken(fmt::format("it begins with {:#x}", frame.first));
}

void FrameReader::add(std::string_view bytes) {
  // What was taken goes away when it is most of the buffer: each byte is moved once on average.
  if (begin_ > 0 && begin_ >= bytes_.size() / 2) {
    bytes_.erase(0, begin_);
    begin_ = 0;
  }
  bytes_ += bytes;
}

Result<std::optional<Frame>> FrameReader::next() {
  const std::string_view rest = std::string_view(bytes_).substr(begin_);
  std::size_t length = 0;
  std::size_t header = 1;
  for (int shift = 0;; shift += 7, ++header) {
    if (header >= rest.size()) return std::optional<Frame>();
    const auto byte = static_cast<unsigned char>(rest[header]);
    length |= static_cast<std::size_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) break;
    if (shift == 21) return broken("its length has more than four bytes");
  }
  ++header;
  if (length > frame_bytes_max_)
    return broken(fmt::format("it has {} bytes, at most {} are allowed", length, frame_bytes_max_));
  if (rest.size() - header < length) return std::optional<Frame>();
  std::optional<Frame> frame(
      Frame{static_cast<std::uint8_t>(rest[0]), std::string(rest.substr(header, length))});
  begin_ += header + length;
  if (begin_ == bytes_.size()) {
    bytes_.clear();
    begin_ = 0;
  }
  return frame;
}

bool is_text(std::string_view text) {
  if (text.size() > text_bytes_max) return false;
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    if (first == 0) return false;
    const std::size_t more = first < 0x80    ? 0
                             : first < 0xc2  ? 4
                             : first < 0xe0  ? 1
                             : first < 0xf0  ? 2
                             : first <= 0xf4 ? 3
                                             : 4;
    if (more == 4 || text.size() - i <= more) return false;
    std::uint32_t point = more == 0 ? first : first & (0x3fu >> more);
    for (std::size_t k = 1; k <= more; ++k) {
      const auto byte = static_cast<unsigned char>(text[i + k]);
      if ((byte & 0xc0) != 0x80) return false;
      point = point << 6 | (byte & 0x3f);
    }
    const bool overlong = (more == 2 && point < 0x800) || (more == 3 && point < 0x10000);
    if (overlong || (point >= 0xd800 && point < 0xe000) || point > 0x10ffff) return false;
    i += more + 1;
  }
  return true;
}

}  // namespace once::mqtt
