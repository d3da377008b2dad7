// SPDX-License-Identifier: Apache-2.0
#include "wire/mqtt/packet.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace once::mqtt {
namespace {

using namespace std::string_literals;

// What a reader cuts out of bytes that come one by one.
std::vector<Frame> frames_of(const std::string& bytes) {
  FrameReader reader(1 << 20);
  std::vector<Frame> frames;
  for (const char c : bytes) {
    reader.add(std::string_view(&c, 1));
    while (auto frame = reader.next().value()) frames.push_back(std::move(*frame));
  }
  return frames;
}

Frame frame_of(const std::string& bytes) {
  const auto frames = frames_of(bytes);
  EXPECT_EQ(frames.size(), 1u);
  return frames.at(0);
}

// --- Written, as the examples of the standards have it

TEST(MqttPacket, connect_of_both_versions) {
  std::string bytes;
  encode(Connect{.version = Version::v3, .keep_alive_s = 10, .client = "me"}, bytes);
  EXPECT_EQ(bytes, "\x10\x0e\0\4MQTT\4\0\0\x0a\0\2me"s);
  bytes.clear();
  encode(Connect{.version = Version::v5,
                 .clean_start = true,
                 .keep_alive_s = 10,
                 .client = "me",
                 .user = "u",
                 .password = "",
                 .properties = {{PropertyId::session_expiry, 10}}},
         bytes);
  EXPECT_EQ(bytes, "\x10\x19\0\4MQTT\5\xc2\0\x0a\5\x11\0\0\0\x0a\0\2me\0\1u\0\0"s);
}

TEST(MqttPacket, publish_of_both_versions) {
  const Publish publish{.qos = 1, .duplicate = true, .packet = 10, .topic = "a/b", .payload = "hi"};
  std::string bytes;
  encode(publish, Version::v3, bytes);
  EXPECT_EQ(bytes, "\x3a\x09\0\3a/b\0\x0ahi"s);
  Publish more = publish;
  more.properties = {{PropertyId::user, 0, "id", "7"}};
  bytes.clear();
  encode(more, Version::v5, bytes);
  EXPECT_EQ(bytes,
            "\x3a\x12\0\3a/b\0\x0a\x08\x26\0\2id\0\1"
            "7hi"s);
  EXPECT_EQ(encoded_bytes(more, Version::v5), bytes.size());
}

TEST(MqttPacket, answers_and_the_rest) {
  std::string bytes;
  encode(Answer{.type = PacketType::pubrel, .packet = 10}, Version::v5, bytes);
  encode(Answer{.type = PacketType::pubcomp, .packet = 10, .reason = 0x92}, Version::v5, bytes);
  encode(Answer{.type = PacketType::pubcomp, .packet = 10, .reason = 0x92}, Version::v3, bytes);
  EXPECT_EQ(bytes, "\x62\2\0\x0a\x70\3\0\x0a\x92\x70\2\0\x0a"s);
  bytes.clear();
  const Subscribe subscribe{.packet = 10, .filter = "a/+", .qos = 2, .retain_handling = 1};
  encode(subscribe, Version::v5, bytes);
  encode(subscribe, Version::v3, bytes);
  EXPECT_EQ(bytes, "\x82\x09\0\x0a\0\0\3a/+\x12\x82\x08\0\x0a\0\3a/+\2"s);
  bytes.clear();
  encode_ping(bytes);
  encode(Disconnect(), Version::v5, bytes);
  encode(Disconnect{.properties = {{PropertyId::session_expiry, 0}}}, Version::v5, bytes);
  encode(Disconnect{.properties = {{PropertyId::session_expiry, 0}}}, Version::v3, bytes);
  EXPECT_EQ(bytes, "\xc0\0\xe0\0\xe0\7\0\5\x11\0\0\0\0\xe0\0"s);
}

// --- Read

TEST(MqttPacket, what_is_written_is_read) {
  for (const Version version : {Version::v3, Version::v5})
    for (const std::size_t size : {0u, 1u, 100u, 127u, 128u, 20'000u, 3'000'000u}) {
      const std::string payload(size, 'x');
      Publish publish{.qos = 2, .retain = true, .packet = 65'535, .topic = "t", .payload = payload};
      if (version == Version::v5)
        publish.properties = {{PropertyId::message_expiry, 4'000'000'000u},
                              {PropertyId::content_type, 0, "text/plain"},
                              {PropertyId::user, 0, "a", ""},
                              {PropertyId::user, 0, "a", "b"}};
      std::string bytes;
      encode(publish, version, bytes);
      FrameReader reader(4 << 20);
      reader.add(bytes);
      const Frame frame = reader.next().value().value();
      EXPECT_TRUE(std::get<Publish>(decode(frame, version).value()) == publish) << size;
      EXPECT_EQ(reader.next().value(), std::nullopt);
    }
}

TEST(MqttPacket, what_servers_send) {
  const Frame connack = frame_of("\x20\x0b\1\0\x08\x21\0\x14\x13\0\x3c\x2a\0"s);
  const Packet welcome = decode(connack, Version::v5).value();
  EXPECT_EQ(std::get<Connack>(welcome), (Connack{true,
                                                 0,
                                                 {{PropertyId::receive_maximum, 20},
                                                  {PropertyId::server_keep_alive, 60},
                                                  {PropertyId::shared_available, 0}}}));
  // A server of 3.1.1 answers so, whatever it was asked.
  EXPECT_EQ(std::get<Connack>(decode(frame_of("\x20\2\0\5"s), Version::v5).value()),
            (Connack{false, 5, {}}));
  EXPECT_EQ(std::get<Answer>(decode(frame_of("\x40\2\0\7"s), Version::v5).value()),
            (Answer{PacketType::puback, 7, 0, {}}));
  EXPECT_EQ(std::get<Answer>(decode(frame_of("\x40\3\0\7\x10"s), Version::v5).value()),
            (Answer{PacketType::puback, 7, 0x10, {}}));
  EXPECT_EQ(std::get<Suback>(decode(frame_of("\x90\4\0\1\0\x87"s), Version::v5).value()),
            (Suback{1, {0x87}, {}}));
  EXPECT_TRUE(std::holds_alternative<Pong>(decode(frame_of("\xd0\0"s), Version::v5).value()));
  const Frame goodbye = frame_of("\xe0\x07\x8e\5\x1f\0\2no"s);
  const Packet ended = decode(goodbye, Version::v5).value();
  EXPECT_EQ(std::get<Disconnect>(ended), (Disconnect{0x8e, {{PropertyId::reason, 0, "no"}}}));
}

TEST(MqttPacket, what_is_broken_is_refused) {
  for (const std::string& bytes : {
           "\x20\1\0"s,                          // CONNACK without a reason
           "\x20\5\0\0\2\x21\0"s,                // a property that is cut
           "\x20\x09\0\0\6\x21\0\1\x21\0\1"s,    // a property twice
           "\x20\5\0\0\2\x7f\0"s,                // one that is not known
           "\x36\5\0\1t\0\1"s,                   // QoS 3
           "\x32\6\0\1t\0\0\0"s,                 // packet identifier 0
           "\x30\3\0\5t"s,                       // a topic that is cut
           "\x30\3\0\0\0"s,                      // no topic
           "\x30\7\0\1t\3\x23\0\1"s,             // an alias
           "\x40\2\0\0"s, "\x90\3\0\1\0"s,       // PUBACK of 0; SUBACK of nothing
           "\x41\2\0\1"s, "\x10\0"s, "\xf0\0"s,  // flags; what clients send; AUTH
       }) {
    const auto read = decode(frame_of(bytes), Version::v5);
    ASSERT_FALSE(read) << ::testing::PrintToString(bytes);
    EXPECT_EQ(read.error().tag, "protocol");
    EXPECT_EQ(read.error().remedy, Remedy::retry);
  }
}

TEST(MqttPacket, a_length_is_not_believed) {
  FrameReader reader(1000);
  reader.add("\x30\xff\xff\xff\x7f"s);
  EXPECT_EQ(reader.next().error().tag, "protocol");
  FrameReader other(1 << 30);
  other.add("\x30\xff\xff\xff\xff"s);
  EXPECT_EQ(other.next().error().tag, "protocol") << "more than four bytes";
  FrameReader patient(1 << 30);
  patient.add("\x30\xff\xff\xff\x7f"s);
  EXPECT_EQ(patient.next().value(), std::nullopt) << "it has to arrive first";
}

TEST(MqttPacket, texts_are_utf_8_without_nul) {
  for (const std::string& text : {""s, "a"s, "\xc3\xa4"s, "\xe2\x82\xac"s, "\xf0\x9f\x90\x98"s})
    EXPECT_TRUE(is_text(text)) << text;
  for (const std::string& text :
       {"\0"s, "\x80"s, "\xc3"s, "\xc0\x80"s, "\xe0\x80\x80"s, "\xed\xa0\x80"s, "\xf4\x90\x80\x80"s,
        "\xf5\x80\x80\x80"s, "\xff"s, std::string(65'536, 'x')})
    EXPECT_FALSE(is_text(text)) << ::testing::PrintToString(text.substr(0, 8));
}

}  // namespace
}  // namespace once::mqtt
