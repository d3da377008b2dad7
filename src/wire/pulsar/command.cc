// SPDX-License-Identifier: Apache-2.0
#include "wire/pulsar/command.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/crc32c.h"
#include "wire/pulsar/protobuf.h"

namespace once::pulsar {
namespace {

constexpr std::string_view client_version = "once";
constexpr std::uint32_t protocol_version = 19;  // acks are answered, keys are shared
constexpr std::string_view token_method = "token";

void put_u32(std::string& text, std::size_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(number >> shift & 0xff);
}

std::uint32_t u32_at(std::string_view text, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i)
    number = number << 8 | static_cast<unsigned char>(text[at + i]);
  return number;
}

std::string base_command(Type type, const ProtoWriter& inner) {
  const auto number = static_cast<std::uint32_t>(type);
  ProtoWriter base;
  base.number(1, number).message(number, inner);
  return base.text();
}

std::string frame_of(Type type, const ProtoWriter& inner) {
  const std::string command = base_command(type, inner);
  std::string frame;
  frame.reserve(command.size() + 8);
  put_u32(frame, command.size() + 4);
  put_u32(frame, command.size());
  return frame += command;
}

ProtoWriter encoded(const Place& place) {
  ProtoWriter id;
  id.number(1, static_cast<std::uint64_t>(place.ledger));
  id.number(2, static_cast<std::uint64_t>(place.entry));
  return id;
}

}  // namespace

std::string connect_frame(std::string_view token, std::string_view behind_proxy) {
  ProtoWriter features;
  features.flag(1, true).flag(5, true);  // tokens can be renewed; topics are not made by asking
  ProtoWriter connect;
  connect.bytes(1, client_version).number(4, protocol_version).message(10, features);
  if (!token.empty()) connect.bytes(5, token_method).bytes(3, token);
  if (!behind_proxy.empty()) connect.bytes(6, behind_proxy);
  return frame_of(Type::connect, connect);
}

std::string auth_response_frame(std::string_view token) {
  ProtoWriter data;
  data.bytes(1, token_method).bytes(2, token);
  ProtoWriter answer;
  answer.bytes(1, client_version).message(2, data).number(3, protocol_version);
  return frame_of(Type::auth_response, answer);
}

std::string ping_frame() { return frame_of(Type::ping, {}); }
std::string pong_frame() { return frame_of(Type::pong, {}); }

std::string partitions_frame(std::uint64_t request, std::string_view topic) {
  return frame_of(Type::partitions,
                  ProtoWriter().bytes(1, topic).number(2, request).flag(6, false));
}

std::string lookup_frame(std::uint64_t request, std::string_view topic, bool authoritative,
                         std::string_view listener) {
  ProtoWriter lookup;
  lookup.bytes(1, topic).number(2, request).flag(3, authoritative);
  if (!listener.empty()) lookup.bytes(7, listener);
  return frame_of(Type::lookup, lookup);
}

std::string topics_frame(std::uint64_t request, std::string_view name_space) {
  return frame_of(Type::get_topics, ProtoWriter().number(1, request).bytes(2, name_space));
}

std::string producer_frame(std::uint64_t request, std::string_view topic, std::uint64_t producer,
                           std::string_view name) {
  return frame_of(
      Type::producer,
      ProtoWriter().bytes(1, topic).number(2, producer).number(3, request).bytes(4, name));
}

std::string close_producer_frame(std::uint64_t request, std::uint64_t producer) {
  return frame_of(Type::close_producer, ProtoWriter().number(1, producer).number(2, request));
}

// While it is alive the broker goes by the command, and after a crash by the metadata: both say the
// same, or duplicates would pass then.
std::string send_frame(const Send& send) {
  const std::string command = base_command(Type::send, ProtoWriter()
                                                           .number(1, send.producer)
                                                           .number(2, send.sequence)
                                                           .number(3, 1)
                                                           .number(6, send.sequence));
  std::string sized;
  put_u32(sized, send.metadata.size());
  const std::uint32_t crc = crc32c(send.payload, crc32c(send.metadata, crc32c(sized)));
  std::string frame;
  const std::size_t size =
      4 + command.size() + 2 + 4 + 4 + send.metadata.size() + send.payload.size();
  frame.reserve(size + 4);
  put_u32(frame, size);
  put_u32(frame, command.size());
  frame += command;
  frame += "\x0e\x01";
  put_u32(frame, crc);
  frame += sized;
  frame += send.metadata;
  return frame += send.payload;
}

std::string subscribe_frame(std::uint64_t request, const Subscribe& subscribe) {
  ProtoWriter text;
  text.bytes(1, subscribe.topic).bytes(2, subscribe.subscription);
  text.number(3, static_cast<std::uint32_t>(subscribe.type));
  text.number(4, subscribe.consumer).number(5, request);
  if (!subscribe.consumer_name.empty()) text.bytes(6, subscribe.consumer_name);
  text.flag(8, subscribe.durable);
  if (!subscribe.durable) text.message(9, encoded(subscribe.behind));
  text.number(13, 1);    // a new subscription begins with the oldest message
  text.flag(15, false);  // and makes no topic
  return frame_of(Type::subscribe, text);
}

std::string close_consumer_frame(std::uint64_t request, std::uint64_t consumer) {
  return frame_of(Type::close_consumer, ProtoWriter().number(1, consumer).number(2, request));
}

std::string flow_frame(std::uint64_t consumer, std::uint32_t permits) {
  return frame_of(Type::flow, ProtoWriter().number(1, consumer).number(2, permits));
}

std::string get_last_frame(std::uint64_t request, std::uint64_t consumer) {
  return frame_of(Type::get_last, ProtoWriter().number(1, consumer).number(2, request));
}

std::string ack_frame(std::uint64_t request, std::uint64_t consumer, bool cumulative,
                      std::span<const AckedEntry> entries) {
  ProtoWriter ack;
  ack.number(1, consumer).number(2, cumulative ? 1 : 0);
  for (const AckedEntry& entry : entries) {
    ProtoWriter id = encoded(entry.place);
    for (const std::uint64_t word : entry.left) id.number(5, word);
    if (!entry.left.empty()) id.number(6, static_cast<std::uint64_t>(entry.batch_size));
    ack.message(3, id);
  }
  return frame_of(Type::ack, ack.number(8, request));
}

std::string redeliver_frame(std::uint64_t consumer, std::span<const Place> places) {
  ProtoWriter text;
  text.number(1, consumer);
  for (const Place& place : places) text.message(2, encoded(place));
  return frame_of(Type::redeliver, text);
}

// --- What comes from the broker.

namespace {

// More than any broker sends; what is larger is damage.
constexpr std::size_t repeated_max = 100'000;

tl::unexpected<Error> damaged(std::string_view what) {
  return fail(Remedy::retry, "protocol",
              fmt::format("the broker's {} cannot be understood; is it a port of Pulsar's binary "
                          "protocol?",
                          what));
}

std::optional<Place> read_place(std::string_view text) {
  Place place;
  place.index = 0;
  ProtoReader reader(text);
  while (const auto field = reader.next()) {
    if (field->number == 1) place.ledger = field->signed_value();
    if (field->number == 2) place.entry = field->signed_value();
    // A message that is an entry of its own has index -1.
    if (field->number == 4)
      place.index = std::max(0, static_cast<std::int32_t>(field->signed_value()));
  }
  if (reader.is_damaged()) return std::nullopt;
  return place;
}

// What a field of a command is to us: one function for each kind of command.
using Take = bool (*)(Command&, const ProtoField&);

std::uint32_t small(const ProtoField& field) { return static_cast<std::uint32_t>(field.value); }

bool take_connected(Command& command, const ProtoField& field) {
  if (field.number == 2) command.protocol = small(field);
  if (field.number == 3) command.message_bytes_max = small(field);
  return true;
}
bool take_success(Command& command, const ProtoField& field) {
  if (field.number == 1) command.request = field.value;
  if (field.number == 3) command.last_sequence = field.signed_value();  // of producer_success
  return true;
}
bool take_error(Command& command, const ProtoField& field) {
  if (field.number == 1) command.request = field.value;
  if (field.number == 2) command.error = small(field);
  if (field.number == 3) command.text = field.bytes;
  return true;
}
bool take_partitions(Command& command, const ProtoField& field) {
  if (field.number == 1) command.partition_count = small(field);
  if (field.number == 2) command.request = field.value;
  if (field.number == 3) command.response = small(field);
  if (field.number == 4) command.error = small(field);
  if (field.number == 5) command.text = field.bytes;
  return true;
}
bool take_lookup(Command& command, const ProtoField& field) {
  if (field.number == 1) command.url = field.bytes;
  if (field.number == 2) command.url_tls = field.bytes;
  if (field.number == 3) command.response = small(field);
  if (field.number == 4) command.request = field.value;
  if (field.number == 5) command.authoritative = field.value != 0;
  if (field.number == 6) command.error = small(field);
  if (field.number == 7) command.text = field.bytes;
  if (field.number == 8) command.through_proxy = field.value != 0;
  return true;
}
bool take_receipt(Command& command, const ProtoField& field) {
  if (field.number == 1) command.producer = field.value;
  if (field.number == 2) command.sequence = field.value;
  if (field.number != 3) return true;
  command.place = read_place(field.bytes);
  return command.place.has_value();
}
bool take_send_error(Command& command, const ProtoField& field) {
  if (field.number == 1) command.producer = field.value;
  if (field.number == 2) command.sequence = field.value;
  if (field.number == 3) command.error = small(field);
  if (field.number == 4) command.text = field.bytes;
  return true;
}
bool take_message(Command& command, const ProtoField& field) {
  if (field.number == 1) command.consumer = field.value;
  if (field.number == 3) command.redeliveries = small(field);
  if (field.number == 4 && command.left.size() < repeated_max) command.left.push_back(field.value);
  if (field.number != 2) return true;
  command.place = read_place(field.bytes);
  return command.place.has_value();
}
bool take_ack_response(Command& command, const ProtoField& field) {
  if (field.number == 1) command.consumer = field.value;
  if (field.number == 4) command.error = small(field);
  if (field.number == 5) command.text = field.bytes;
  if (field.number == 6) command.request = field.value;
  return true;
}
bool take_last(Command& command, const ProtoField& field) {
  if (field.number == 2) command.request = field.value;
  if (field.number != 1 && field.number != 3) return true;
  std::optional<Place>& place = field.number == 1 ? command.place : command.mark_delete;
  place = read_place(field.bytes);
  return place.has_value();
}
bool take_topics(Command& command, const ProtoField& field) {
  if (field.number == 1) command.request = field.value;
  if (field.number == 2 && command.topics.size() < repeated_max)
    command.topics.push_back(field.bytes);
  return true;
}
bool take_consumer(Command& command, const ProtoField& field) {
  if (field.number == 1) command.consumer = field.value;
  if (field.number == 2) command.is_active = field.value != 0;  // of active_change
  return true;
}
bool take_producer(Command& command, const ProtoField& field) {
  if (field.number == 1) command.producer = field.value;
  return true;
}
bool take_nothing(Command&, const ProtoField&) { return true; }

Take taker_of(Type type) {
  switch (type) {
    case Type::connected: return take_connected;
    case Type::success:
    case Type::producer_success: return take_success;
    case Type::error: return take_error;
    case Type::partitions_response: return take_partitions;
    case Type::lookup_response: return take_lookup;
    case Type::send_receipt: return take_receipt;
    case Type::send_error: return take_send_error;
    case Type::message: return take_message;
    case Type::ack_response: return take_ack_response;
    case Type::get_last_response: return take_last;
    case Type::get_topics_response: return take_topics;
    case Type::close_consumer:
    case Type::end_of_topic:
    case Type::active_change: return take_consumer;
    case Type::close_producer: return take_producer;
    case Type::ping:
    case Type::pong:
    case Type::auth_challenge: return take_nothing;
    default: return nullptr;
  }
}

// [0e02 size broker-metadata] [0e01 crc] size metadata payload
Status read_payload(std::string_view rest, Command& command) {
  const auto marked = [&](char second) {
    return rest.size() >= 6 && rest[0] == '\x0e' && rest[1] == second;
  };
  if (marked('\x02')) {
    const std::size_t size = u32_at(rest, 2);
    if (size > rest.size() - 6) return damaged("message");
    rest.remove_prefix(6 + size);
  }
  if (marked('\x01')) {
    const std::uint32_t crc = u32_at(rest, 2);
    rest.remove_prefix(6);
    if (crc32c(rest) != crc)
      return fail(Remedy::retry, "protocol",
                  "a message was damaged on its way from the broker (its checksum is wrong)");
  }
  if (rest.size() < 4) return damaged("message");
  const std::size_t size = u32_at(rest, 0);
  if (size > rest.size() - 4) return damaged("message");
  command.metadata = rest.substr(4, size);
  command.payload = rest.substr(4 + size);
  return {};
}

}  // namespace

Result<std::optional<Command>> read_command(std::string_view frame) {
  if (frame.size() < 4 || u32_at(frame, 0) > frame.size() - 4) return damaged("frame");
  const std::string_view base = frame.substr(4, u32_at(frame, 0));
  std::uint32_t number = 0;
  std::string_view inner;
  ProtoReader reader(base);
  while (const auto field = reader.next()) {
    if (field->number == 1) number = small(*field);
    if (field->is_bytes && field->number == number) inner = field->bytes;
  }
  if (reader.is_damaged() || number == 0) return damaged("command");
  Command command;
  command.type = static_cast<Type>(number);
  const Take take = taker_of(command.type);
  if (take == nullptr) return std::nullopt;
  ProtoReader fields(inner);
  while (const auto field = fields.next())
    if (!take(command, *field)) return damaged("command");
  if (fields.is_damaged()) return damaged("command");
  if (command.type == Type::message) {
    if (!command.place) return damaged("message");
    ONCE_TRY(read_payload(frame.substr(4 + base.size()), command));
  }
  return command;
}

Result<std::optional<std::string>> FrameCutter::next() {
  const std::string_view rest = std::string_view(buffer_).substr(begin_);
  if (rest.size() < 4) return std::nullopt;
  const std::size_t size = u32_at(rest, 0);
  if (size > bytes_max_) return damaged("frame");
  if (rest.size() - 4 < size) return std::nullopt;
  std::string frame(rest.substr(4, size));
  begin_ += 4 + size;
  // Moved together now and then, not for each frame.
  if (begin_ == buffer_.size() || begin_ > 1u << 20) {
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
  return frame;
}

}  // namespace once::pulsar
