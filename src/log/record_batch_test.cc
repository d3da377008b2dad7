// SPDX-License-Identifier: Apache-2.0
#include "log/record_batch.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/crc32c.h"
#include "log/limits.h"
#include "model/message_view.h"

namespace once::log {
namespace {

std::vector<Message> some_messages() {
  return {{"order-1", "k", "body one", {{"a", "1"}, {"b", ""}}, 1'700'000'000'000},
          {"", "", "", {}, 1'699'999'999'990},
          {"id with \0 byte", "key", std::string(300, 'x'), {}, 1'700'000'000'123}};
}

std::string encoded(const std::vector<Message>& messages, const Stamp& stamp = {7, 2, 40}) {
  Buffer buffer;
  encode_batch(buffer, 100, stamp, 5, messages);
  return std::string(buffer.view());
}

TEST(RecordBatch, decodes_what_was_encoded_without_copying) {
  const auto messages = some_messages();
  const std::string bytes = encoded(messages);
  Deliveries decoded;
  ASSERT_TRUE(decode_batch(bytes, {7, 2, 40}, true, decoded));
  decoded.finish();
  ASSERT_EQ(decoded.deliveries.size(), messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Delivery& delivery = decoded.deliveries[i];
    EXPECT_EQ(delivery.id, messages[i].id);
    EXPECT_EQ(delivery.key, messages[i].key);
    EXPECT_EQ(delivery.body, messages[i].body);
    EXPECT_EQ(delivery.timestamp_ms, messages[i].timestamp_ms);
    EXPECT_EQ(delivery.offset, 100 + static_cast<std::int64_t>(i));
    EXPECT_EQ(delivery.stamp, (Stamp{7, 2, 40 + i}));
    ASSERT_EQ(delivery.headers.size(), messages[i].headers.size());
    for (std::size_t h = 0; h < messages[i].headers.size(); ++h) {
      EXPECT_EQ(delivery.headers[h].name, messages[i].headers[h].name);
      EXPECT_EQ(delivery.headers[h].value, messages[i].headers[h].value);
    }
    if (!delivery.body.empty()) {
      EXPECT_GE(delivery.body.data(), bytes.data());
      EXPECT_LT(delivery.body.data(), bytes.data() + bytes.size());
    }
  }
}

TEST(RecordBatch, absent_parts_stay_absent_and_empty_ones_empty) {
  const std::vector<Message> messages{
      {.id = "tombstone", .key = "k", .body = std::nullopt},
      {.id = "empty", .key = "", .body = ""},
      {.id = "headers", .key = std::nullopt, .headers = {{"none", std::nullopt}, {"empty", ""}}}};
  Deliveries decoded;
  const std::string bytes = encoded(messages);
  ASSERT_TRUE(decode_batch(bytes, {7, 2, 40}, true, decoded));
  decoded.finish();
  ASSERT_EQ(decoded.deliveries.size(), messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    Message read = message_of(decoded.deliveries[i]);
    read.timestamp_ms = 0;
    EXPECT_EQ(read, messages[i]) << messages[i].id;
  }
}

TEST(RecordBatch, has_the_bytes_that_kafka_expects) {
  const std::string bytes = encoded({{"", "k", "v", {}, 1000}}, {0, 0, 0});
  ASSERT_EQ(bytes.size(), batch_header_bytes + 9);
  EXPECT_EQ(get_i64(bytes.data()), 100);
  EXPECT_EQ(get_u32(bytes.data() + 8), bytes.size() - 12);
  EXPECT_EQ(bytes[16], 2);
  EXPECT_EQ(get_u32(bytes.data() + 17), crc32c(std::string_view(bytes).substr(21)));
  EXPECT_EQ(get_i64(bytes.data() + 43), -1);  // no producer
  // length 8, attributes, time delta 0, offset delta 0, key length 1, k, value length 1, v, headers
  EXPECT_EQ(bytes.substr(batch_header_bytes), std::string("\x10\0\0\0\x02k\x02v\0", 9));
}

TEST(RecordBatch, the_id_travels_as_a_header_and_is_delivered_as_the_id_alone) {
  const std::string bytes = encoded({{"new", "", "", {{"once-id", "old"}, {"x", "y"}}, 1},
                                     {"", "", "", {{"once-id", "own"}}, 1}});
  Deliveries decoded;
  ASSERT_TRUE(decode_batch(bytes, {}, true, decoded));
  decoded.finish();
  EXPECT_EQ(decoded.deliveries[0].id, "new");
  ASSERT_EQ(decoded.deliveries[0].headers.size(), 1u);
  EXPECT_EQ(*decoded.deliveries[0].header("x"), "y");
  EXPECT_EQ(decoded.deliveries[1].id, "own");
  EXPECT_TRUE(decoded.deliveries[1].headers.empty());
}

TEST(RecordBatch, every_flipped_bit_behind_the_length_is_found) {
  const std::string good = encoded(some_messages());
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    const std::size_t byte = bit / 8;
    if (byte < 8 || (byte >= 12 && byte < 16)) continue;  // offset and leader epoch: not covered
    std::string bad = good;
    bad[byte] = static_cast<char>(bad[byte] ^ (1 << (bit % 8)));
    Deliveries decoded;
    EXPECT_FALSE(decode_batch(bad, {7, 2, 40}, true, decoded)) << "bit " << bit;
  }
}

TEST(RecordBatch, every_truncation_is_found_also_without_the_checksum) {
  const std::string good = encoded(some_messages());
  for (std::size_t length = 0; length < good.size(); ++length) {
    Deliveries decoded;
    EXPECT_FALSE(decode_batch(std::string_view(good).substr(0, length), {}, false, decoded));
  }
}

TEST(RecordBatch, a_message_of_the_largest_size_fits_and_one_byte_more_does_not) {
  Message message;
  message.body->assign(message_bytes_max - 100, 'x');
  const std::size_t overhead =
      record_bytes(message, 0, 0) - varint_bytes(message_bytes_max) - message.body->size();
  message.body->resize(message_bytes_max - overhead);
  EXPECT_EQ(record_bytes(message, 0, 0), message_bytes_max + varint_bytes(message_bytes_max));
  message.body->push_back('x');
  EXPECT_EQ(record_bytes(message, 0, 0), 0u);
}

TEST(RecordBatch, headers_are_limited) {
  Message message;
  message.headers.assign(headers_max, {"n", "v"});
  EXPECT_NE(record_bytes(message, 0, 0), 0u);
  message.id = "id";
  Buffer buffer;
  encode_batch(buffer, 0, {}, 1, std::span(&message, 1));
  Deliveries decoded;
  EXPECT_TRUE(decode_batch(buffer.view(), {}, true, decoded));
  message.headers.push_back({"n", "v"});
  EXPECT_EQ(record_bytes(message, 0, 0), 0u);
}

TEST(RecordBatch, numbers_of_any_size_survive_the_varint) {
  for (const std::int64_t value :
       {INT64_MIN, INT64_MIN + 1, std::int64_t{-65}, std::int64_t{-64}, std::int64_t{-1},
        std::int64_t{0}, std::int64_t{63}, std::int64_t{64}, std::int64_t{INT32_MAX}, INT64_MAX}) {
    char bytes[10];
    const char* end = put_varint(bytes, value);
    EXPECT_EQ(static_cast<std::size_t>(end - bytes), varint_bytes(value));
    ByteReader reader({bytes, static_cast<std::size_t>(end - bytes)});
    EXPECT_EQ(reader.varlong(), value);
    EXPECT_TRUE(reader.ok() && reader.left() == 0);
  }
  ByteReader endless("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
  (void)endless.varlong();
  EXPECT_FALSE(endless.ok());
}

}  // namespace
}  // namespace once::log
