// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
#include <once/result.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "log/bytes.h"

namespace once::log {

// Kafka's record batch, version 2: the bytes that a Kafka client understands. What is encoded here
// is not compressed; what a Kafka client has compressed is kept and not opened.
// The id of a message travels in the header `once-id`, first of all headers; a header of that name
// that the user set is left out when the message has an id of its own. A decoded delivery has the
// id both as `id` and among its headers.

inline constexpr std::size_t batch_header_bytes = 61;
inline constexpr std::size_t batch_crc_from = 21;  // what is before it is not covered

// The bits of the attributes.
inline constexpr std::uint16_t compression_bits = 0x07;  // 0: none
inline constexpr std::uint16_t append_time_bit = 0x08;
inline constexpr std::uint16_t transactional_bit = 0x10;
inline constexpr std::uint16_t control_bit = 0x20;

struct BatchHeader {
  std::int64_t base_offset = 0;
  std::uint32_t bytes = 0;  // of the whole batch
  std::uint32_t crc = 0;    // CRC-32C of everything from the attributes on
  std::int64_t base_time_ms = 0;
  std::int64_t time_max_ms = 0;
  std::int64_t producer = -1;  // our producer id, -1 for none
  std::uint16_t epoch = 0;     // the low 15 bits of ours
  std::uint32_t sequence = 0;  // the low 31 bits of ours
  std::uint32_t count = 0;
  std::uint16_t attributes = 0;

  bool is_compressed() const { return (attributes & compression_bits) != 0; }
};

// "none", "gzip", "snappy", "lz4" or "zstd"; empty for what Kafka does not define.
std::string_view compression_name(std::uint16_t attributes);

// Bytes that one record takes; 0 when the message is beyond the limits.
std::size_t record_bytes(const Message& message, std::int64_t time_delta_ms, std::uint32_t index);

// Writes one batch at the end of a buffer, record by record. Nothing is valid before `finish`.
class BatchWriter {
 public:
  BatchWriter() = default;
  // `stamp` is that of the first record. The base time is that of the first record.
  BatchWriter(Buffer& into, std::int64_t base_offset, const Stamp& stamp, std::int64_t time_ms);

  // A message within the limits; `time_ms` is used where it has no timestamp.
  void add(Buffer& into, const Message& message, std::int64_t time_ms);
  // Fills in lengths, count and checksum of the batch that ends at this place of the buffer.
  void finish(Buffer& into, std::size_t end) const;

  std::uint32_t count() const { return count_; }
  std::int64_t time_max_ms() const { return time_max_ms_; }
  std::size_t begin() const { return begin_; }

 private:
  std::size_t begin_ = 0;  // position in the buffer
  std::uint32_t count_ = 0;
  std::int64_t base_time_ms_ = 0;
  std::int64_t time_max_ms_ = 0;
};

// A whole batch at once. All messages must be within the limits.
void encode_batch(Buffer& into, std::int64_t base_offset, const Stamp& stamp, std::int64_t time_ms,
                  std::span<const Message> messages);

// Deliveries whose views point into the decoded bytes. The spans of headers are valid after
// `finish` and until the next decode.
struct Deliveries {
  std::vector<Delivery> deliveries;
  std::vector<HeaderView> headers;
  std::vector<std::size_t> header_counts;  // of each delivery

  void finish();
};

// Whether the checksum of the batch that fills `bytes` is right. False for what is no batch.
bool batch_crc_is_good(std::string_view bytes);

// The header of the batch at the start of `bytes`, with its length checked against what is there.
[[nodiscard]] Result<BatchHeader> decode_batch_header(std::string_view bytes);

// Appends the records of one batch that fills `bytes` exactly. `stamp` is that of its first record
// (the batch itself only has the low bits). With `check_crc` false the caller has checked the
// bytes. One that is compressed is not damaged, but cannot be opened: "compressed".
[[nodiscard]] Status decode_batch(std::string_view bytes, const Stamp& stamp, bool check_crc,
                                  Deliveries& into);

// Checks all records of a batch that fills `bytes` and is not compressed, and answers the largest
// time of them.
[[nodiscard]] Result<std::int64_t> check_records(std::string_view bytes, const BatchHeader& header);

// Gives a batch its place: base offset and leader epoch, which its checksum does not cover. A
// `time_max_ms` other than its own is changed together with the checksum, as Kafka does.
void place_batch(char* batch, std::size_t bytes, std::int64_t base_offset,
                 std::int64_t time_max_ms);

}  // namespace once::log
