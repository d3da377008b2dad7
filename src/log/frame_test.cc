// SPDX-License-Identifier: Apache-2.0
#include "log/frame.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/crc32c.h"
#include "log/limits.h"
#include "log/record_batch.h"

namespace once::log {
namespace {

FrameHeader some_header() {
  FrameHeader header;
  header.log_id = 0x1122334455667788;
  header.address = 5000;
  header.base_offset = 42;
  header.record_count = 3;
  header.stamp = {7, 2, 40};
  header.synced_upto = 4000;
  header.time_max_ms = 1'700'000'000'000;
  return header;
}

std::string frame_with(const std::string& body, std::int64_t position, FrameHeader& header) {
  if (header.kind == FrameKind::data) header.kind = FrameKind::snapshot, header.record_count = 0;
  std::string frame(frame_overhead_bytes + body.size(), '?');
  frame.replace(frame_header_bytes, body.size(), body);
  seal_frame(frame.data(), frame.size(), position, header);
  return frame;
}

TEST(Frame, decodes_what_was_encoded) {
  FrameHeader header = some_header();
  const std::string frame = frame_with("the body", 0, header);
  const HeaderAnswer answer = decode_frame_header(frame);
  EXPECT_EQ(answer.fault, HeaderFault::none);
  EXPECT_EQ(answer.header, header);
  EXPECT_EQ(answer.header.frame_bytes(), frame.size());
  EXPECT_TRUE(frame_body_is_good(answer.header, frame));
}

TEST(Frame, every_flipped_bit_is_found) {
  FrameHeader header = some_header();
  const std::string good = frame_with("the body", 0, header);
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    const HeaderAnswer answer = decode_frame_header(bad);
    EXPECT_TRUE(answer.fault != HeaderFault::none || !frame_body_is_good(answer.header, bad))
        << bit;
  }
}

TEST(Frame, of_a_batch_each_byte_is_covered_by_one_checksum_or_the_other) {
  Buffer body;
  const std::vector<Message> messages(3, Message{"id", "key", "body", {}, 5});
  encode_batch(body, 42, {7, 2, 40}, 5, messages);
  std::string good(frame_overhead_bytes + body.size(), '?');
  good.replace(frame_header_bytes, body.size(), body.view());
  FrameHeader header = some_header();
  seal_frame(good.data(), good.size(), 0, header);
  EXPECT_TRUE(frame_body_is_good(header, good));
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    const HeaderAnswer answer = decode_frame_header(bad);
    EXPECT_TRUE(answer.fault != HeaderFault::none || !frame_body_is_good(answer.header, bad))
        << bit;
  }
}

TEST(Frame, another_version_is_told_from_damage) {
  FrameHeader header = some_header();
  std::string frame = frame_with("b", 0, header);
  frame[4] = 9;
  EXPECT_EQ(decode_frame_header(frame).fault, HeaderFault::damaged);
  put_u32(frame.data() + 84, crc32c(std::string_view(frame).substr(0, 84)));
  EXPECT_EQ(decode_frame_header(frame).fault, HeaderFault::version);
}

TEST(Frame, impossible_numbers_are_refused_though_their_checksum_is_right) {
  const auto fault_of = [](const FrameHeader& header) {
    std::string bytes(frame_header_bytes, '\0');
    encode_frame_header(bytes.data(), header);
    return decode_frame_header(bytes).fault;
  };
  FrameHeader header = some_header();
  EXPECT_EQ(fault_of(header), HeaderFault::none);
  header.body_bytes = body_bytes_max;
  EXPECT_EQ(fault_of(header), HeaderFault::none);
  header.body_bytes = body_bytes_max + 1;
  EXPECT_EQ(fault_of(header), HeaderFault::limits);
  header = some_header();
  header.synced_upto = header.address + 1;
  EXPECT_EQ(fault_of(header), HeaderFault::limits);
  header = some_header();
  header.record_count = 0;
  EXPECT_EQ(fault_of(header), HeaderFault::limits);
  header.kind = FrameKind::enter;
  EXPECT_EQ(fault_of(header), HeaderFault::none);
  header.kind = static_cast<FrameKind>(4);
  EXPECT_EQ(fault_of(header), HeaderFault::limits);
  header = some_header();
  header.stamp.sequence = UINT64_MAX - 2;
  EXPECT_EQ(fault_of(header), HeaderFault::limits);
}

TEST(Frame, zero_sectors_of_a_body_are_counted_where_they_lie_in_the_file) {
  FrameHeader header = some_header();
  (void)frame_with(std::string(2048, '\0'), 0, header);
  EXPECT_EQ(header.zero_sectors, 3u);  // of 92..2140: 512, 1024, 1536
  (void)frame_with(std::string(2048, '\0'), 420, header);
  EXPECT_EQ(header.zero_sectors, 4u);  // of 512..2560: four whole ones
  (void)frame_with(std::string(511, '\0'), 420, header);
  EXPECT_EQ(header.zero_sectors, 0u);
  (void)frame_with(std::string(2048, 'x'), 0, header);
  EXPECT_EQ(header.zero_sectors, 0u);
}

TEST(Frame, no_piece_of_a_header_is_zero_wherever_a_sector_ends_in_it) {
  FrameHeader header;
  header.kind = FrameKind::snapshot;  // as many zeros as there can be
  const std::string frame = frame_with("", 0, header);
  for (std::int64_t position = 0; position < 512; ++position)
    EXPECT_FALSE(has_zero_piece(std::string_view(frame).substr(0, frame_header_bytes), position));
  EXPECT_TRUE(has_zero_piece(std::string(92, '\0'), 0));
  EXPECT_TRUE(has_zero_piece("x" + std::string(91, '\0'), 511));
}

}  // namespace
}  // namespace once::log
