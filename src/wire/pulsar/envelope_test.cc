// SPDX-License-Identifier: Apache-2.0
#include "wire/pulsar/envelope.h"

#include <gtest/gtest.h>
#include <lz4.h>
#include <snappy.h>
#include <zlib.h>
#include <zstd.h>

#include <functional>

#include "model/message_view.h"
#include "wire/pulsar/compression.h"
#include "wire/pulsar/protobuf.h"

namespace once::pulsar {
namespace {

constexpr std::size_t bytes_max = 1u << 20;

// A frame has both one after another.
Result<std::shared_ptr<const Entry>> read(const std::string& metadata, const std::string& payload,
                                          std::size_t most = bytes_max) {
  std::string frame = std::string(64, '.') + metadata + payload;
  const std::string_view whole = frame;
  const auto of_metadata = whole.substr(64, metadata.size());
  const auto of_payload = whole.substr(64 + metadata.size());
  return Entry::read(std::move(frame), of_metadata, of_payload, most, "orders at 1:2");
}

Message whole_message() {
  Message message;
  message.id = "order \xf0\x9f\x90\x98";
  message.key = std::string("\0\x01", 2);
  message.body = std::string("\0\xff\n", 3);
  message.headers = {{"region", "eu"},
                     {"region", "us"},
                     {"none", std::nullopt},
                     {"empty", ""},
                     {"bytes", "\xff\xfe"},
                     {"once-base64:region", "ours"},
                     {"once-absent:region", "ours"}};
  message.timestamp_ms = 1'700'000'000'000;
  return message;
}

TEST(PulsarEnvelope, a_message_comes_back_whole) {
  const Stamp stamp{0xabcdef, 7, 41};
  std::vector<Message> messages(4, whole_message());
  messages[1].key.reset();
  messages[1].body.reset();
  messages[1].id.clear();
  messages[2].key = "";
  messages[2].body = "";
  messages[3].key = "\xc3\x28 is not UTF-8";
  messages[3].id = "\xed\xa0\x80 is half of a pair";
  for (const Message& message : messages) {
    const auto entry = read(encode_metadata(message, stamp, "once/shop", 42, 1'800'000'000'000),
                            message.body.value_or(""));
    ASSERT_TRUE(entry) << entry.error().text;
    ASSERT_EQ((*entry)->size(), 1u);
    EXPECT_FALSE((*entry)->is_batch());
    EXPECT_EQ((*entry)->producer(), "once/shop");
    EXPECT_EQ((*entry)->sequence(), 42u);
    EXPECT_EQ(message_of((*entry)->delivery(0)), message);
    EXPECT_EQ((*entry)->delivery(0).stamp, stamp);
  }
}

TEST(PulsarEnvelope, without_a_time_of_its_own_a_message_has_that_of_its_publication) {
  const auto entry = read(encode_metadata({.id = "x"}, {}, "p", 1, 1'800'000'000'000), "");
  EXPECT_EQ((*entry)->delivery(0).timestamp_ms, 1'800'000'000'000);
}

TEST(PulsarEnvelope, a_stamp_of_somebody_else_is_a_header) {
  Message message;
  message.headers = {{std::string(stamp_property), "1/2"}, {"once-stamp", "x/1/1"}};
  const auto entry = read(encode_metadata(message, {}, "p", 1, 1), "");
  EXPECT_EQ((*entry)->delivery(0).stamp, Stamp());
  EXPECT_EQ((*entry)->delivery(0).headers.size(), 2u);
  for (const char* text : {"", "1", "1/2", "1/2/", "1/2/3/", "1/2/3/4", "/2/3", "1//3", "z/1/1"})
    EXPECT_FALSE(decode_stamp(text)) << text;
  EXPECT_EQ(decode_stamp("a/2/3"), (Stamp{10, 2, 3}));
}

TEST(PulsarEnvelope, names_of_headers_must_be_text) {
  EXPECT_TRUE(has_text_names(whole_message()));
  EXPECT_FALSE(has_text_names({.headers = {{"\xff", "x"}}}));
}

// [size][metadata][payload] of each.
std::string batch_of(int count) {
  std::string payload;
  for (int i = 0; i < count; ++i) {
    const std::string body = "body " + std::to_string(i);
    ProtoWriter pair;
    pair.bytes(1, "once-id").bytes(2, "order " + std::to_string(i));
    ProtoWriter metadata;
    metadata.message(1, pair).bytes(2, "key").number(3, body.size());
    payload += std::string(3, '\0') + static_cast<char>(metadata.text().size());
    payload += metadata.text() + body;
  }
  return payload;
}

ProtoWriter batch_metadata(int count) {
  ProtoWriter metadata;
  metadata.bytes(1, "java").number(2, 10).number(3, 1'800'000'000'000);
  metadata.number(11, static_cast<std::uint64_t>(count)).number(24, 12);
  return metadata;
}

TEST(PulsarEnvelope, a_batch_has_several_messages) {
  const auto entry = read(batch_metadata(3).text(), batch_of(3));
  ASSERT_TRUE(entry) << entry.error().text;
  ASSERT_EQ((*entry)->size(), 3u);
  EXPECT_TRUE((*entry)->is_batch());
  EXPECT_EQ((*entry)->sequence(), 12u) << "the highest";
  for (std::size_t i = 0; i < 3; ++i) {
    const Delivery delivery = (*entry)->delivery(i);
    EXPECT_EQ(delivery.id, "order " + std::to_string(i));
    EXPECT_EQ(delivery.body, "body " + std::to_string(i));
    EXPECT_EQ(delivery.key, "key");
  }
}

TEST(PulsarEnvelope, every_compression_is_taken_back) {
  const std::string text = batch_of(3);
  const std::vector<std::pair<Compression, std::function<std::string()>>> methods{
      {Compression::lz4,
       [&] {
         std::string out(static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(text.size()))),
                         '\0');
         out.resize(static_cast<std::size_t>(LZ4_compress_default(text.data(), out.data(),
                                                                  static_cast<int>(text.size()),
                                                                  static_cast<int>(out.size()))));
         return out;
       }},
      {Compression::zlib,
       [&] {
         uLongf size = ::compressBound(text.size());
         std::string out(size, '\0');
         ::compress(reinterpret_cast<Bytef*>(out.data()), &size,
                    reinterpret_cast<const Bytef*>(text.data()), text.size());
         return out.substr(0, size);
       }},
      {Compression::zstd,
       [&] {
         std::string out(ZSTD_compressBound(text.size()), '\0');
         out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
         return out;
       }},
      {Compression::snappy,
       [&] {
         std::string out;
         snappy::Compress(text.data(), text.size(), &out);
         return out;
       }},
  };
  for (const auto& [method, compress] : methods) {
    ProtoWriter metadata = batch_metadata(3);
    metadata.number(8, static_cast<std::uint32_t>(method)).number(9, text.size());
    const auto entry = read(metadata.text(), compress());
    ASSERT_TRUE(entry) << entry.error().text;
    EXPECT_EQ((*entry)->delivery(2).body, "body 2");
    std::string damaged = compress();
    damaged.resize(damaged.size() / 2);
    const auto broken = read(metadata.text(), damaged);
    ASSERT_FALSE(broken) << static_cast<int>(method);
    EXPECT_EQ(broken.error().tag, "corrupt");
    const auto large = read(metadata.text(), compress(), text.size() - 1);
    ASSERT_FALSE(large);
    EXPECT_EQ(large.error().tag, "too_large");
  }
}

TEST(PulsarEnvelope, what_cannot_be_read_is_named_and_stops) {
  const auto refused = [](const ProtoWriter& metadata, const std::string& payload) {
    const auto entry = read(metadata.text(), payload);
    EXPECT_FALSE(entry);
    if (entry) return std::string();
    EXPECT_EQ(entry.error().remedy, Remedy::stop);
    EXPECT_TRUE(entry.error().text.starts_with("orders at 1:2: ")) << entry.error().text;
    return entry.error().text;
  };
  EXPECT_NE(refused(ProtoWriter().number(8, 9).number(9, 1), "x").find("not known here (9)"),
            std::string::npos);
  EXPECT_NE(refused(ProtoWriter().bytes(13, "key"), "x").find("encrypted"), std::string::npos);
  EXPECT_NE(refused(ProtoWriter().number(27, 2), "x").find("chunks"), std::string::npos);
  EXPECT_NE(refused(batch_metadata(5000), "x").find("batch of 5000"), std::string::npos);
  EXPECT_NE(refused(batch_metadata(3), batch_of(2)).find("damaged"), std::string::npos);
}

}  // namespace
}  // namespace once::pulsar
