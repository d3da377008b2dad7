// SPDX-License-Identifier: Apache-2.0
#include "log/raw_batch.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/mutant.h"
#include "log/limits.h"
#include "model/message_view.h"

namespace once::log {
namespace {

constexpr std::size_t attributes_at = batch_crc_from;
constexpr std::int64_t time_ms_max = std::int64_t{1} << 60;

tl::unexpected<Error> invalid(std::string text) {
  return fail(Remedy::park, "invalid", "record batch: " + std::move(text));
}

tl::unexpected<Error> unsupported(std::string_view what) {
  return fail(Remedy::park, "unsupported", fmt::format("record batch: {}", what));
}

Status check_attributes(std::uint16_t attributes) {
  constexpr std::uint16_t known =
      compression_bits | append_time_bit | transactional_bit | control_bit;
  if ((attributes & ~known) != 0 || compression_name(attributes).empty())
    return unsupported(fmt::format("attributes {:#x} are not known", attributes));
  if ((attributes & append_time_bit) != 0)
    return unsupported("the time of the append is set by the log, not by a client");
  if ((attributes & control_bit) != 0)
    return unsupported("control records are written by the log, not by a client");
  if ((attributes & transactional_bit) != 0)
    return unsupported("transactional batches are not stored: the log has no transactions");
  return {};
}

Status check_size(std::size_t bytes, std::uint32_t count) {
  if (bytes <= batch_bytes_max && count <= batch_count_max) return {};
  return fail(Remedy::park, "too_large",
              fmt::format("a record batch of {} bytes and {} messages; at most {} and {} are taken",
                          bytes, count, batch_bytes_max, batch_count_max));
}

// All three fields or none; our ids are never 0.
Status check_producer(const BatchHeader& header) {
  const auto epoch = static_cast<std::int16_t>(header.epoch);
  const auto sequence = static_cast<std::int32_t>(header.sequence);
  if (header.producer == -1 && epoch == -1 && sequence == -1) return {};
  if (header.producer > 0 && epoch >= 0 && sequence >= 0) return {};
  return invalid(
      fmt::format("producer {} epoch {} sequence {} cannot be", header.producer, epoch, sequence));
}

}  // namespace

Result<RawBatch> check_raw_batch(std::string_view bytes) {
  if (bytes.size() < batch_header_bytes) return invalid("shorter than its header");
  ONCE_TRY(check_size(bytes.size(), 0));
  if (!batch_crc_is_good(bytes) && !mutant(Mutant::raw_batch_unchecked))
    return fail(Remedy::retry, "checksum",
                "record batch: the checksum is wrong: it was damaged on its way; send it again");
  ONCE_TRY(check_attributes(get_u16(bytes.data() + attributes_at)));
  const auto header = decode_batch_header(bytes);
  if (!header) return invalid(header.error().text);
  RawBatch batch{.bytes = bytes, .header = *header, .time_max_ms = header->time_max_ms};
  if (batch.header.bytes != bytes.size())
    return invalid(fmt::format("{} bytes behind it", bytes.size() - batch.header.bytes));
  if (batch.header.base_offset != 0)
    return invalid(fmt::format("offset {}, but a client does not know it", header->base_offset));
  ONCE_TRY(check_size(bytes.size(), batch.header.count));
  ONCE_TRY(check_producer(batch.header));
  for (const std::int64_t time_ms : {batch.header.base_time_ms, batch.header.time_max_ms})
    if (time_ms < -time_ms_max || time_ms > time_ms_max)
      return invalid(fmt::format("time {}", time_ms));
  if (batch.header.is_compressed()) return batch;
  const auto found_max_ms = check_records(bytes, batch.header);
  if (!found_max_ms) return invalid(found_max_ms.error().text);
  batch.time_max_ms = *found_max_ms;
  return batch;
}

void put_raw_batch(Buffer& into, const RawBatch& batch, std::int64_t base_offset) {
  char* at = into.grow(batch.bytes.size());
  put_bytes(at, batch.bytes);
  if (mutant(Mutant::raw_batch_offset_not_set)) return;
  place_batch(at, batch.bytes.size(), base_offset, batch.time_max_ms);
}

Result<std::vector<Message>> messages_of(const RawBatch& batch) {
  Deliveries decoded;
  ONCE_TRY(decode_batch(batch.bytes, {}, false, decoded));
  decoded.finish();
  std::vector<Message> messages;
  messages.reserve(decoded.deliveries.size());
  for (const Delivery& delivery : decoded.deliveries) messages.push_back(message_of(delivery));
  return messages;
}

}  // namespace once::log
