// SPDX-License-Identifier: Apache-2.0
#include "log/record_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>

#include "base/assert.h"
#include "base/crc32c.h"
#include "log/limits.h"

namespace once::log {
namespace {

// Where the fields of a batch are.
constexpr std::size_t length_at = 8;  // counts what follows it
constexpr std::size_t leader_epoch_at = 12;
constexpr std::size_t magic_at = 16;
constexpr std::size_t crc_at = 17;
constexpr std::size_t attributes_at = batch_crc_from;
constexpr std::size_t last_delta_at = 23;
constexpr std::size_t base_time_at = 27;
constexpr std::size_t max_time_at = 35;
constexpr std::size_t producer_at = 43;
constexpr std::size_t epoch_at = 51;
constexpr std::size_t sequence_at = 53;
constexpr std::size_t count_at = 57;
constexpr std::uint8_t magic = 2;
constexpr std::size_t record_bytes_least = 7;  // length, attributes, two deltas, three counts

tl::unexpected<Error> corrupt(std::string text) {
  return fail(Remedy::stop, "corrupt", "record batch: " + std::move(text));
}

std::size_t blob_bytes(std::string_view blob) {
  return varint_bytes(static_cast<std::int64_t>(blob.size())) + blob.size();
}

char* put_blob(char* at, std::string_view blob) {
  return put_bytes(put_varint(at, static_cast<std::int64_t>(blob.size())), blob);
}

// What is absent has the length -1.
std::size_t part_bytes(const std::optional<std::string>& part) {
  return part ? blob_bytes(*part) : varint_bytes(-1);
}

char* put_part(char* at, const std::optional<std::string>& part) {
  return part ? put_blob(at, *part) : put_varint(at, -1);
}

bool is_kept(const Header& header, const Message& message) {
  return message.id.empty() || header.name != id_header;
}

// The bytes of a record without its length prefix, and how many headers it has.
struct RecordPlan {
  std::size_t bytes = 0;
  std::size_t headers = 0;
};

RecordPlan plan_record(const Message& message, std::int64_t time_delta_ms, std::uint32_t index) {
  RecordPlan plan;
  plan.bytes = 1 + varint_bytes(time_delta_ms) + varint_bytes(index) + part_bytes(message.body) +
               part_bytes(message.key);
  if (!message.id.empty()) {
    plan.bytes += blob_bytes(id_header) + blob_bytes(message.id);
    ++plan.headers;
  }
  for (const Header& header : message.headers) {
    if (!is_kept(header, message)) continue;
    plan.bytes += blob_bytes(header.name) + part_bytes(header.value);
    ++plan.headers;
  }
  plan.bytes += varint_bytes(static_cast<std::int64_t>(plan.headers));
  return plan;
}

// Times are far from the ends of their range in any real message; the rest is capped, so that a
// difference of two of them cannot overflow.
std::int64_t sane_time(std::int64_t time_ms) {
  constexpr std::int64_t far = std::int64_t{1} << 60;
  return std::clamp(time_ms, -far, far);
}

// A length that may be -1 for "none".
std::string_view read_blob(ByteReader& reader, bool may_be_none) {
  const std::int32_t length = reader.varint();
  if (length >= 0) return reader.bytes(static_cast<std::size_t>(length));
  if (length != -1 || !may_be_none) (void)reader.bytes(std::numeric_limits<std::size_t>::max());
  return {};
}

// A record without its headers, which are given to `on_header` one by one.
struct RecordFields {
  std::int64_t time_ms = 0;
  std::string_view key;
  std::string_view body;
};

template <class OnHeader>
Result<RecordFields> parse_record(ByteReader& reader, const BatchHeader& batch, std::uint32_t index,
                                  OnHeader&& on_header) {
  const std::int32_t length = reader.varint();
  if (length < 0) return corrupt(fmt::format("record {} has a negative length", index));
  ByteReader record(reader.bytes(static_cast<std::size_t>(length)));
  if (!reader.ok()) return corrupt(fmt::format("record {} is longer than its batch", index));
  if (static_cast<std::size_t>(length) > message_bytes_max)
    return corrupt(fmt::format("record {} is larger than {} bytes", index, message_bytes_max));

  RecordFields fields;
  (void)record.u8();  // attributes: none are defined for a record
  fields.time_ms = sane_time(sane_time(record.varlong()) + sane_time(batch.base_time_ms));
  const std::int32_t delta = record.varint();
  fields.key = read_blob(record, true);
  fields.body = read_blob(record, true);
  const std::int32_t header_count = record.varint();
  if (!record.ok() || delta != static_cast<std::int32_t>(index))
    return corrupt(fmt::format("record {} is malformed", index));
  if (header_count < 0 || static_cast<std::size_t>(header_count) > headers_max + 1)
    return corrupt(fmt::format("record {} has {} headers", index, header_count));
  for (std::int32_t i = 0; i < header_count; ++i) {
    const std::string_view name = read_blob(record, false);
    const std::string_view value = read_blob(record, true);
    if (!record.ok()) return corrupt(fmt::format("record {} has a malformed header", index));
    on_header(HeaderView{name, value});
  }
  if (record.left() != 0) return corrupt(fmt::format("record {} has bytes behind it", index));
  return fields;
}

Status decode_record(ByteReader& reader, const BatchHeader& batch, const Stamp& stamp,
                     std::uint32_t index, Deliveries& into) {
  Delivery delivery;
  std::size_t headers_kept = 0;
  const RecordFields fields =
      ONCE_TRY(parse_record(reader, batch, index, [&](const HeaderView& header) {
        if (delivery.id.empty() && header.name == id_header) {
          delivery.id = header.value;
          return;
        }
        into.headers.push_back(header);
        ++headers_kept;
      }));
  delivery.timestamp_ms = fields.time_ms;
  delivery.key = fields.key;
  delivery.body = fields.body;
  delivery.offset = batch.base_offset + index;
  delivery.stamp = stamp;
  if (stamp.producer != 0) delivery.stamp.sequence += index;
  into.header_counts.push_back(headers_kept);
  into.deliveries.push_back(delivery);
  return {};
}

}  // namespace

std::string_view compression_name(std::uint16_t attributes) {
  constexpr std::array<std::string_view, 5> names{"none", "gzip", "snappy", "lz4", "zstd"};
  const std::size_t codec = attributes & compression_bits;
  return codec < names.size() ? names[codec] : std::string_view();
}

std::size_t record_bytes(const Message& message, std::int64_t time_delta_ms, std::uint32_t index) {
  if (message.headers.size() > headers_max) return 0;
  const RecordPlan plan = plan_record(message, time_delta_ms, index);
  if (plan.bytes > message_bytes_max) return 0;
  return varint_bytes(static_cast<std::int64_t>(plan.bytes)) + plan.bytes;
}

BatchWriter::BatchWriter(Buffer& into, std::int64_t base_offset, const Stamp& stamp,
                         std::int64_t time_ms)
    : begin_(into.size()), base_time_ms_(sane_time(time_ms)), time_max_ms_(sane_time(time_ms)) {
  char* at = into.grow(batch_header_bytes);
  put_i64(at, base_offset);
  put_u32(at + length_at, 0);
  put_u32(at + leader_epoch_at, 0);
  put_u8(at + magic_at, magic);
  put_u32(at + crc_at, 0);
  put_u16(at + attributes_at, 0);
  put_u32(at + last_delta_at, 0);
  put_i64(at + base_time_at, base_time_ms_);
  put_i64(at + max_time_at, time_max_ms_);
  const bool stamped = stamp.producer != 0;
  put_i64(at + producer_at, stamped ? static_cast<std::int64_t>(stamp.producer) : -1);
  put_u16(at + epoch_at, stamped ? static_cast<std::uint16_t>(stamp.epoch & 0x7fff) : 0xffff);
  put_u32(at + sequence_at,
          stamped ? static_cast<std::uint32_t>(stamp.sequence & 0x7fffffff) : 0xffffffff);
  put_u32(at + count_at, 0);
}

void BatchWriter::add(Buffer& into, const Message& message, std::int64_t time_ms) {
  const std::int64_t own = sane_time(message.timestamp_ms != 0 ? message.timestamp_ms : time_ms);
  const std::int64_t delta = own - base_time_ms_;
  const RecordPlan plan = plan_record(message, delta, count_);
  const auto length = static_cast<std::int64_t>(plan.bytes);
  char* const begin = into.grow(varint_bytes(length) + plan.bytes);
  char* at = put_varint(begin, length);
  *at++ = 0;
  at = put_varint(at, delta);
  at = put_varint(at, count_);
  at = put_part(at, message.key);
  at = put_part(at, message.body);
  at = put_varint(at, static_cast<std::int64_t>(plan.headers));
  if (!message.id.empty()) at = put_blob(put_blob(at, id_header), message.id);
  for (const Header& header : message.headers)
    if (is_kept(header, message)) at = put_part(put_blob(at, header.name), header.value);
  ONCE_ASSERT(at == begin + varint_bytes(length) + plan.bytes);
  time_max_ms_ = count_ == 0 ? own : std::max(time_max_ms_, own);
  ++count_;
}

void BatchWriter::finish(Buffer& into, std::size_t end) const {
  const std::size_t bytes = end - begin_;
  char* at = into.at(begin_);
  put_u32(at + length_at, static_cast<std::uint32_t>(bytes - leader_epoch_at));
  put_u32(at + last_delta_at, count_ - 1);
  put_i64(at + max_time_at, time_max_ms_);
  put_u32(at + count_at, count_);
  put_u32(at + crc_at, crc32c({at + attributes_at, bytes - attributes_at}));
}

void encode_batch(Buffer& into, std::int64_t base_offset, const Stamp& stamp, std::int64_t time_ms,
                  std::span<const Message> messages) {
  const std::int64_t first = messages.empty() || messages.front().timestamp_ms == 0
                                 ? time_ms
                                 : messages.front().timestamp_ms;
  BatchWriter writer(into, base_offset, stamp, first);
  for (const Message& message : messages) writer.add(into, message, time_ms);
  writer.finish(into, into.size());
}

void Deliveries::finish() {
  const HeaderView* at = headers.data();
  for (std::size_t i = 0; i < deliveries.size(); ++i) {
    deliveries[i].headers = {at, header_counts[i]};
    at += header_counts[i];
  }
}

bool batch_crc_is_good(std::string_view bytes) {
  return bytes.size() >= batch_header_bytes &&
         get_u32(bytes.data() + crc_at) == crc32c(bytes.substr(attributes_at));
}

Result<BatchHeader> decode_batch_header(std::string_view bytes) {
  if (bytes.size() < batch_header_bytes) return corrupt("shorter than its header");
  const char* at = bytes.data();
  if (get_u8(at + magic_at) != magic)
    return corrupt(fmt::format("magic {} is not 2", get_u8(at + magic_at)));
  BatchHeader header;
  header.base_offset = get_i64(at);
  const std::uint32_t length = get_u32(at + length_at);
  if (length < batch_header_bytes - leader_epoch_at || length > bytes.size() - leader_epoch_at)
    return corrupt(fmt::format("length {} does not fit into {} bytes", length, bytes.size()));
  header.bytes = length + leader_epoch_at;
  header.crc = get_u32(at + crc_at);
  header.base_time_ms = get_i64(at + base_time_at);
  header.time_max_ms = get_i64(at + max_time_at);
  header.producer = get_i64(at + producer_at);
  header.epoch = get_u16(at + epoch_at);
  header.sequence = get_u32(at + sequence_at);
  header.count = get_u32(at + count_at);
  header.attributes = get_u16(at + attributes_at);
  if ((header.attributes & ~compression_bits) != 0 || compression_name(header.attributes).empty())
    return corrupt(
        fmt::format("attributes {:#x}: this log keeps plain and compressed batches, but "
                    "none that are transactional or control",
                    header.attributes));
  const std::size_t room = header.bytes - batch_header_bytes;
  // How many records compressed bytes hold is not known before they are opened.
  const std::size_t count_max =
      header.is_compressed() ? batch_count_max : room / record_bytes_least;
  if (header.count == 0 || header.count > count_max || room == 0 ||
      get_u32(at + last_delta_at) != header.count - 1)
    return corrupt(fmt::format("{} records cannot be in {} bytes", header.count, room));
  if (header.base_offset < 0 ||
      header.base_offset > std::numeric_limits<std::int64_t>::max() - header.count)
    return corrupt(fmt::format("offset {}", header.base_offset));
  return header;
}

Status decode_batch(std::string_view bytes, const Stamp& stamp, bool check_crc, Deliveries& into) {
  const BatchHeader header = ONCE_TRY(decode_batch_header(bytes));
  if (header.bytes != bytes.size()) return corrupt("bytes behind the batch");
  if (check_crc && !batch_crc_is_good(bytes)) return corrupt("the checksum is wrong");
  if (header.is_compressed())
    return fail(Remedy::stop, "compressed",
                fmt::format("messages {} to {} were compressed with {} by a Kafka client, and this "
                            "program cannot open them; read them with a Kafka client, or set "
                            "compression.type=none at the sender",
                            header.base_offset, header.base_offset + header.count - 1,
                            compression_name(header.attributes)));
  ByteReader reader(bytes.substr(batch_header_bytes));
  into.deliveries.reserve(into.deliveries.size() + header.count);
  for (std::uint32_t index = 0; index < header.count; ++index)
    ONCE_TRY(decode_record(reader, header, stamp, index, into));
  if (reader.left() != 0) return corrupt("bytes behind the last record");
  return {};
}

Result<std::int64_t> check_records(std::string_view bytes, const BatchHeader& header) {
  ByteReader reader(bytes.substr(batch_header_bytes));
  std::int64_t time_max_ms = std::numeric_limits<std::int64_t>::min();
  for (std::uint32_t index = 0; index < header.count; ++index) {
    const RecordFields fields =
        ONCE_TRY(parse_record(reader, header, index, [](const HeaderView&) {}));
    time_max_ms = std::max(time_max_ms, fields.time_ms);
  }
  if (reader.left() != 0) return corrupt("bytes behind the last record");
  return time_max_ms;
}

void place_batch(char* batch, std::size_t bytes, std::int64_t base_offset,
                 std::int64_t time_max_ms) {
  put_i64(batch, base_offset);
  put_u32(batch + leader_epoch_at, 0);
  if (get_i64(batch + max_time_at) == time_max_ms) return;
  put_i64(batch + max_time_at, time_max_ms);
  put_u32(batch + crc_at, crc32c({batch + attributes_at, bytes - attributes_at}));
}

}  // namespace once::log
