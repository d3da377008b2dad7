// SPDX-License-Identifier: Apache-2.0
#include "wire/rabbitmq/envelope.h"

#include <gtest/gtest.h>

#include <array>

namespace once::rabbitmq {
namespace {

Message sent_and_taken(const Message& message, std::string_view exchange = {},
                       std::string_view routing_key = {}) {
  const Envelope envelope(message, 1'000, !exchange.empty());
  EXPECT_FALSE(envelope.refusal());
  Arrived arrived;
  take_properties(envelope.properties(), exchange, routing_key, arrived);
  take_body(std::string(view_of_bytes(envelope.body())), arrived);
  return arrived.message;
}

TEST(RabbitEnvelope, a_message_comes_back_whole) {
  const Message message{.id = "order 1",
                        .key = std::string("\0k", 2),
                        .body = std::string("\xff\0b", 3),
                        .headers = {{"content-type", "text/plain"},
                                    {"priority", "7"},
                                    {"region", "eu"},
                                    {"region", "us"},
                                    {"none", std::nullopt},
                                    {"empty", ""}},
                        .timestamp_ms = 1'700'000'000'123};
  EXPECT_EQ(sent_and_taken(message), message);
  const Envelope envelope(message, 0, false);
  EXPECT_EQ(view_of_bytes(envelope.properties().message_id), "order 1");
  EXPECT_EQ(view_of_bytes(envelope.properties().content_type), "text/plain");
  EXPECT_EQ(envelope.properties().priority, 7);
  EXPECT_EQ(envelope.properties().delivery_mode, 2);
  EXPECT_EQ(envelope.properties().timestamp, 1'700'000'000u);
}

TEST(RabbitEnvelope, what_is_absent_stays_absent_and_what_is_empty_empty) {
  for (const auto& body : {std::optional<std::string>(), std::optional<std::string>("")})
    for (const auto& key : {std::optional<std::string>(), std::optional<std::string>("")}) {
      const Message message{.id = "1", .key = key, .body = body, .timestamp_ms = 5};
      EXPECT_EQ(sent_and_taken(message), message);
      EXPECT_EQ(sent_and_taken(message, "exchange", "paid"), message) << "through an exchange";
    }
}

TEST(RabbitEnvelope, an_id_that_is_too_long_for_a_property_is_a_header) {
  const Message message{.id = std::string(300, 'i'), .timestamp_ms = 5};
  EXPECT_EQ(sent_and_taken(message), message);
}

TEST(RabbitEnvelope, a_name_that_is_too_long_is_refused) {
  const Message message{.id = "1", .headers = {{std::string(300, 'h'), "v"}}};
  const Envelope envelope(message, 0, false);
  ASSERT_TRUE(envelope.refusal());
  EXPECT_EQ(envelope.refusal()->remedy, Remedy::park);
}

TEST(RabbitEnvelope, properties_that_a_broker_would_act_upon_are_sent_as_headers) {
  const Message message{
      .id = "1", .headers = {{"user-id", "ann"}, {"expiration", "10"}, {"priority", "high"}}};
  const Envelope envelope(message, 0, false);
  EXPECT_EQ(envelope.properties()._flags &
                (AMQP_BASIC_USER_ID_FLAG | AMQP_BASIC_EXPIRATION_FLAG | AMQP_BASIC_PRIORITY_FLAG),
            0u);
  EXPECT_EQ(sent_and_taken(message).headers, message.headers);
}

TEST(RabbitEnvelope, the_message_of_a_stranger) {
  amqp_field_value_t number{};
  number.kind = AMQP_FIELD_KIND_I32;
  number.value.i32 = -5;
  amqp_field_value_t text{};
  text.kind = AMQP_FIELD_KIND_UTF8;
  text.value.bytes = bytes_of("q\"");
  std::array<amqp_field_value_t, 2> items{number, text};
  amqp_field_value_t list{};
  list.kind = AMQP_FIELD_KIND_ARRAY;
  list.value.array = {2, items.data()};
  amqp_field_value_t count{};
  count.kind = AMQP_FIELD_KIND_I64;
  count.value.i64 = 3;
  std::array<amqp_table_entry_t, 4> entries{{{bytes_of("n"), number},
                                             {bytes_of("x-death"), list},
                                             {bytes_of("cloudEvents:id"), text},
                                             {bytes_of("x-delivery-count"), count}}};
  amqp_basic_properties_t properties{};
  properties._flags =
      AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_TIMESTAMP_FLAG | AMQP_BASIC_CORRELATION_ID_FLAG;
  properties.headers = {4, entries.data()};
  properties.timestamp = 7;
  properties.correlation_id = bytes_of("c");
  Arrived arrived;
  take_properties(properties, "shop", "order.paid", arrived);
  const Message wanted{.key = "order.paid",
                       .headers = {{"correlation-id", "c"},
                                   {"n", "-5"},
                                   {"x-death", "[-5, \"q\\\"\"]"},
                                   {"cloudEvents:id", "q\""}},
                       .timestamp_ms = 7000};
  EXPECT_EQ(arrived.message, wanted);
  EXPECT_EQ(arrived.attempt, 4u);
  Arrived direct;
  take_properties(properties, "", "queue", direct);
  EXPECT_FALSE(direct.message.key) << "the name of the queue is no key";
}

}  // namespace
}  // namespace once::rabbitmq
