// SPDX-License-Identifier: Apache-2.0
#include "wire/mqtt/envelope.h"

#include <gtest/gtest.h>
#include <once/identity.h>

#include <string>

#include "model/message_view.h"

namespace once::mqtt {
namespace {

using namespace std::string_literals;

Message read_back(const Incoming& incoming) {
  Delivery delivery;
  delivery.id = incoming.id;
  delivery.key = incoming.key;
  delivery.body = incoming.body;
  delivery.headers = incoming.headers;
  delivery.timestamp_ms = incoming.timestamp_ms;
  return message_of(delivery);
}

Message there_and_back(const Message& message) {
  const Outgoing outgoing = Outgoing::make(message, Version::v5).value();
  Incoming incoming;
  incoming.publish = {.topic = "t", .payload = outgoing.payload, .properties = outgoing.properties};
  incoming.open(true);
  return read_back(incoming);
}

TEST(MqttEnvelope, a_message_comes_back_as_it_was) {
  Message message{.id = "order 7", .key = "ann", .body = "{}", .timestamp_ms = 1'700'000'000'000};
  message.headers = {{"region", "eu"},
                     {"region", "us"},
                     {"empty", ""},
                     {"none", std::nullopt},
                     {"binary", "\0\xff"s},
                     {"\xff", "bad name"},
                     {"", "no name"},
                     {"once-id", "not the id"},
                     {"once-key", "not the key"},
                     {"once-time", "12"},
                     {"once-body", "none"},
                     {"once-header", "eA=="},
                     {"once-id-base64", "eA=="},
                     {"mqtt-content-type", "application/json"},
                     {"mqtt-content-type", "twice"},
                     {"mqtt-response-topic", "a/#"},
                     {"mqtt-response-topic", "answers/7"},
                     {"mqtt-correlation-data", "\0\1"s},
                     {"mqtt-expiry", "007"},
                     {"mqtt-expiry", "60"},
                     {"mqtt-topic", "of another"}};
  // Those that are properties of MQTT come in the order of the properties, which is that of
  // sending.
  EXPECT_EQ(there_and_back(message), message);
  for (const std::string& odd : {""s, "\0"s, "\xff\xfe"s}) {
    EXPECT_EQ(there_and_back({.id = "x" + odd, .key = odd}),
              (Message{.id = "x" + odd, .key = odd}));
    EXPECT_EQ(there_and_back({.id = "x", .body = odd}), (Message{.id = "x", .body = odd}));
  }
  EXPECT_EQ(there_and_back({.id = "x", .body = std::nullopt}),
            (Message{.id = "x", .body = std::nullopt}));
  EXPECT_EQ(there_and_back({}), Message{});
}

TEST(MqttEnvelope, what_cannot_be_carried_is_refused) {
  Message message{.id = "x"};
  message.headers = {{"large", std::string(70'000, 'x')}};
  const auto refused = Outgoing::make(message, Version::v5);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().remedy, Remedy::park);
  EXPECT_EQ(refused.error().tag, "too_large");
}

TEST(MqttEnvelope, of_3_1_1_there_is_only_the_body) {
  const Message message{.id = "x", .key = "k", .body = "b"};
  const Outgoing made = Outgoing::make(message, Version::v3).value();
  EXPECT_TRUE(made.properties.empty());
  EXPECT_EQ(made.payload, "b");
}

TEST(MqttEnvelope, a_source_tells_how_a_message_came) {
  Incoming incoming;
  incoming.publish = {.qos = 1, .retain = true, .packet = 1, .topic = "sensors/7", .payload = "21"};
  incoming.publish.properties = {{PropertyId::content_type, 0, "text/plain"},
                                 {PropertyId::message_expiry, 60},
                                 {PropertyId::user, 0, "region", "eu"}};
  incoming.open(false);
  EXPECT_EQ(read_back(incoming).headers, (std::vector<Header>{{"mqtt-topic", "sensors/7"},
                                                              {"mqtt-qos", "1"},
                                                              {"mqtt-retain", "true"},
                                                              {"mqtt-content-type", "text/plain"},
                                                              {"mqtt-expiry", "60"},
                                                              {"region", "eu"}}));
}

// What others send under our names does no harm.
TEST(MqttEnvelope, what_is_not_ours_is_a_header) {
  const std::vector<Header> foreign{{"once-time", "soon"},       {"once-body", "none"},
                                    {"once-header", "?"},        {"once-header", "eA==.?"},
                                    {"once-id-base64", "?"},     {"once-idea", "x"},
                                    {"once-key-base64", "oops!"}};
  Incoming incoming;
  incoming.publish = {.topic = "t", .payload = "there is one"};
  for (const Header& header : foreign)
    incoming.publish.properties.push_back({PropertyId::user, 0, header.name, *header.value});
  incoming.open(true);
  EXPECT_EQ(read_back(incoming).headers, foreign);
  EXPECT_EQ(incoming.body, "there is one");
}

// The MQTT binding of CloudEvents has the names of the attributes without a prefix.
TEST(MqttEnvelope, cloudevents_are_known_by_their_bare_names) {
  Incoming incoming;
  incoming.publish = {.topic = "t", .payload = "{}"};
  incoming.publish.properties = {{PropertyId::user, 0, "specversion", "1.0"},
                                 {PropertyId::user, 0, "source", "/shop"},
                                 {PropertyId::user, 0, "id", "7"}};
  incoming.open(false);
  Delivery delivery;
  delivery.headers = incoming.headers;
  delivery.body = incoming.body;
  const auto id = IdRule::parse("cloudevents").value().id_of(delivery);
  ASSERT_TRUE(id) << id.error().text;
  EXPECT_EQ(decode_tuple(*id).value(), (std::vector<std::string>{"/shop", "7"}));
}

}  // namespace
}  // namespace once::mqtt
