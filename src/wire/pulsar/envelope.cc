// SPDX-License-Identifier: Apache-2.0
#include "wire/pulsar/envelope.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "base/base64.h"
#include "model/message_view.h"
#include "wire/pulsar/compression.h"
#include "wire/pulsar/protobuf.h"

namespace once::pulsar {
namespace {

// The most messages that an entry can have here: each needs an offset.
constexpr std::int32_t batch_max = index_max + 1;

bool is_text(std::string_view bytes) {
  for (std::size_t i = 0; i < bytes.size();) {
    const auto lead = static_cast<unsigned char>(bytes[i]);
    const std::size_t size = lead < 0x80   ? 1
                             : lead < 0xc2 ? 0
                             : lead < 0xe0 ? 2
                             : lead < 0xf0 ? 3
                                           : 4;
    if (size == 0 || lead > 0xf4 || i + size > bytes.size()) return false;
    for (std::size_t k = 1; k < size; ++k)
      if ((static_cast<unsigned char>(bytes[i + k]) & 0xc0) != 0x80) return false;
    const auto second = size > 1 ? static_cast<unsigned char>(bytes[i + 1]) : 0u;
    // Too long for what they say, halves of pairs, and what is beyond Unicode.
    if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
        (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f))
      return false;
    i += size;
  }
  return true;
}

void add_property(ProtoWriter& metadata, std::string_view name, std::string_view value) {
  ProtoWriter pair;
  if (value.data() == nullptr) {
    pair.bytes(1, fmt::format("{}{}", absent_prefix, name)).bytes(2, "");
  } else if (is_text(value) && !name.starts_with(base64_prefix) &&
             !name.starts_with(absent_prefix)) {
    pair.bytes(1, name).bytes(2, value);
  } else {
    pair.bytes(1, fmt::format("{}{}", base64_prefix, name)).bytes(2, encode_base64(value));
  }
  metadata.message(4, pair);
}

template <class Number>
bool read_number(std::string_view& text, int base, Number& number) {
  const std::string_view digits = text.substr(0, text.find('/'));
  const char* end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, number, base);
  if (digits.empty() || read.ec != std::errc() || read.ptr != end) return false;
  text.remove_prefix(std::min(text.size(), digits.size() + 1));
  return true;
}

// An empty view with data: present, if only empty.
std::string_view present(std::string_view text) { return text.data() == nullptr ? "" : text; }

tl::unexpected<Error> unsupported(std::string_view what) {
  return fail(Remedy::stop, "unsupported", std::string(what));
}
tl::unexpected<Error> damaged() {
  return fail(Remedy::stop, "corrupt", "its metadata are damaged");
}

std::uint32_t u32_at(std::string_view text) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) number = number << 8 | static_cast<unsigned char>(text[i]);
  return number;
}

}  // namespace

std::string encode_stamp(const Stamp& stamp) {
  return fmt::format("{:x}/{}/{}", stamp.producer, stamp.epoch, stamp.sequence);
}

std::optional<Stamp> decode_stamp(std::string_view text) {
  if (std::count(text.begin(), text.end(), '/') != 2 || text.ends_with('/')) return std::nullopt;
  Stamp stamp;
  const bool read = read_number(text, 16, stamp.producer) && read_number(text, 10, stamp.epoch) &&
                    read_number(text, 10, stamp.sequence) && text.empty();
  return read ? std::optional(stamp) : std::nullopt;
}

bool has_text_names(const Message& message) {
  return std::all_of(message.headers.begin(), message.headers.end(),
                     [](const Header& header) { return is_text(header.name); });
}

std::string encode_metadata(const Message& message, const Stamp& stamp, std::string_view producer,
                            std::uint64_t sequence, std::int64_t now_ms) {
  ProtoWriter metadata;
  metadata.bytes(1, producer).number(2, sequence);
  metadata.number(3, static_cast<std::uint64_t>(now_ms));
  if (!message.id.empty()) add_property(metadata, id_header, message.id);
  if (stamp.producer != 0) add_property(metadata, stamp_property, encode_stamp(stamp));
  for (const Header& header : message.headers)
    add_property(metadata, header.name, view_of(header.value));
  if (message.key) {
    const bool plain = is_text(*message.key);
    metadata.bytes(6, plain ? *message.key : encode_base64(*message.key));
    if (!plain) metadata.flag(17, true);
  }
  if (message.timestamp_ms > 0)
    metadata.number(12, static_cast<std::uint64_t>(message.timestamp_ms));
  metadata.number(24, sequence);
  if (!message.body) metadata.flag(25, true);
  return metadata.text();
}

// --- Reading

// What concerns the whole entry.
struct Entry::Metadata {
  std::uint64_t compression = 0;
  std::uint64_t uncompressed_size = 0;
  std::int64_t count = 1;
  bool is_batch = false;
  bool is_encrypted = false;
  bool is_chunk = false;
  bool is_null = false;
  bool key_is_base64 = false;
  bool key_is_null = false;
  std::string_view key;
};

Result<std::shared_ptr<const Entry>> Entry::read(std::string&& frame, std::string_view metadata,
                                                 std::string_view payload, std::size_t bytes_max,
                                                 std::string_view where) {
  const std::size_t metadata_at = static_cast<std::size_t>(metadata.data() - frame.data());
  const std::size_t payload_at = static_cast<std::size_t>(payload.data() - frame.data());
  std::shared_ptr<Entry> entry(new Entry);
  entry->frame_ = std::move(frame);
  const std::string_view whole = entry->frame_;
  const Status read = entry->read_all(whole.substr(metadata_at, metadata.size()),
                                      whole.substr(payload_at, payload.size()), bytes_max);
  if (read) return entry;
  Error error = read.error();
  error.text = fmt::format("{}: the message cannot be read: {}", where, error.text);
  return fail(std::move(error));
}

std::string_view Entry::decoded(std::string_view base64) {
  auto bytes = decode_base64(base64);
  if (!bytes) return present(base64);
  return *decoded_.emplace_back(std::make_unique<std::string>(std::move(*bytes)));
}

std::string_view Entry::key_of(std::string_view key, bool is_base64) {
  return is_base64 ? decoded(key) : present(key);
}

bool Entry::add_property(std::string_view pair, Content& content) {
  std::string_view name;
  std::string_view value = "";
  ProtoReader reader(pair);
  while (const auto field = reader.next()) {
    if (field->number == 1) name = field->bytes;
    if (field->number == 2) value = present(field->bytes);
  }
  if (reader.is_damaged()) return false;
  if (name.starts_with(base64_prefix)) {
    name.remove_prefix(base64_prefix.size());
    value = decoded(value);
  } else if (name.starts_with(absent_prefix)) {
    name.remove_prefix(absent_prefix.size());
    value = {};
  }
  if (name == id_header && content.id.empty()) {
    content.id = value;
    return true;
  }
  if (name == stamp_property) {
    if (const auto stamp = decode_stamp(value)) {
      content.stamp = *stamp;
      return true;
    }
  }
  headers_.push_back({name, value});
  content.headers_end = headers_.size();
  return true;
}

Status Entry::read_all(std::string_view text, std::string_view payload, std::size_t bytes_max) {
  Metadata metadata;
  Content content;
  ProtoReader reader(text);
  while (const auto field = reader.next()) {
    switch (field->number) {
      case 1: producer_ = field->bytes; break;
      case 2: sequence_ = std::max(sequence_, field->value); break;
      case 3: published_ms_ = field->signed_value(); break;
      case 4:
        if (!add_property(field->bytes, content)) return damaged();
        break;
      case 6: metadata.key = present(field->bytes); break;
      case 8: metadata.compression = field->value; break;
      case 9: metadata.uncompressed_size = field->value; break;
      case 11:
        metadata.count = field->signed_value();
        metadata.is_batch = true;
        break;
      case 12: content.timestamp_ms = field->signed_value(); break;
      case 13: metadata.is_encrypted = true; break;
      case 17: metadata.key_is_base64 = field->value != 0; break;
      case 24: sequence_ = std::max(sequence_, field->value); break;
      case 25: metadata.is_null = field->value != 0; break;
      case 27: metadata.is_chunk = field->signed_value() > 1; break;
      case 30: metadata.key_is_null = field->value != 0; break;
      default: break;
    }
  }
  if (reader.is_damaged()) return damaged();
  if (metadata.is_encrypted) return unsupported("it is encrypted, and Once has no keys");
  if (metadata.is_chunk)
    return unsupported(
        "it is a part of a message that was sent in chunks; send it in one piece, or raise "
        "maxMessageSize of the broker");
  if (metadata.compression != 0) {
    if (metadata.uncompressed_size > bytes_max)
      return fail(Remedy::stop, "too_large",
                  fmt::format("it has {} bytes when it is decompressed; at most {} are taken",
                              metadata.uncompressed_size, bytes_max));
    decompressed_ = ONCE_TRY(decompress(static_cast<Compression>(metadata.compression), payload,
                                        metadata.uncompressed_size));
    payload = decompressed_;
  }
  if (metadata.is_batch) {
    headers_.clear();  // those of the batch belong to no message
    if (metadata.count < 1 || metadata.count > batch_max)
      return unsupported(
          fmt::format("it is one of a batch of {}; at most {} are taken (lower "
                      "batchingMaxMessages of the producer)",
                      metadata.count, batch_max));
    return read_batch(payload, static_cast<std::int32_t>(metadata.count));
  }
  if (metadata.key.data() != nullptr && !metadata.key_is_null)
    content.key = key_of(metadata.key, metadata.key_is_base64);
  if (!metadata.is_null) content.body = present(payload);
  messages_.push_back(content);
  return {};
}

// Each message: [size of its metadata][metadata][payload].
Status Entry::read_batch(std::string_view payload, std::int32_t count) {
  is_batch_ = true;
  for (std::int32_t i = 0; i < count; ++i) {
    if (payload.size() < 4) return damaged();
    const std::size_t size = u32_at(payload);
    payload.remove_prefix(4);
    if (size > payload.size()) return damaged();
    Content content;
    content.headers_begin = content.headers_end = headers_.size();
    std::size_t payload_size = 0;
    if (!read_single(payload.substr(0, size), payload_size, content)) return damaged();
    payload.remove_prefix(size);
    if (payload_size > payload.size()) return damaged();
    if (content.body.data() != nullptr) content.body = present(payload.substr(0, payload_size));
    payload.remove_prefix(payload_size);
    messages_.push_back(content);
  }
  return {};
}

bool Entry::read_single(std::string_view metadata, std::size_t& payload_size, Content& content) {
  std::string_view key;
  bool is_base64 = false;
  bool is_null_key = false;
  bool is_null = false;
  std::int64_t size = 0;
  ProtoReader reader(metadata);
  while (const auto field = reader.next()) {
    switch (field->number) {
      case 1:
        if (!add_property(field->bytes, content)) return false;
        break;
      case 2: key = present(field->bytes); break;
      case 3: size = field->signed_value(); break;
      case 4: content.is_removed = field->value != 0; break;
      case 5: content.timestamp_ms = field->signed_value(); break;
      case 6: is_base64 = field->value != 0; break;
      case 9: is_null = field->value != 0; break;
      case 10: is_null_key = field->value != 0; break;
      default: break;
    }
  }
  if (reader.is_damaged() || size < 0 || size > std::numeric_limits<std::int32_t>::max())
    return false;
  payload_size = static_cast<std::size_t>(size);
  if (key.data() != nullptr && !is_null_key) content.key = key_of(key, is_base64);
  if (!is_null) content.body = "";  // the payload follows
  return true;
}

Delivery Entry::delivery(std::size_t index) const {
  const Content& content = messages_[index];
  Delivery delivery;
  delivery.id = content.id;
  delivery.key = content.key;
  delivery.body = content.body;
  delivery.headers = std::span(headers_).subspan(content.headers_begin,
                                                 content.headers_end - content.headers_begin);
  delivery.timestamp_ms = content.timestamp_ms > 0 ? content.timestamp_ms : published_ms_;
  delivery.stamp = content.stamp;
  return delivery;
}

}  // namespace once::pulsar
