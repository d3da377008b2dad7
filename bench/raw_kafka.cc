// SPDX-License-Identifier: Apache-2.0
#include "raw_kafka.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "harness.h"
#include "open/topics.h"

namespace once::bench {
namespace {

constexpr int wait_ms = 10'000;

using Properties = std::vector<std::pair<const char*, std::string>>;

rd_kafka_t* make_client(rd_kafka_type_t type, const Properties& properties) {
  rd_kafka_conf_t* const conf = rd_kafka_conf_new();
  std::array<char, 512> text{};
  for (const auto& [name, value] : properties)
    if (rd_kafka_conf_set(conf, name, value.c_str(), text.data(), text.size()) != RD_KAFKA_CONF_OK)
      give_up(std::string("raw Kafka: ") + text.data());
  rd_kafka_t* const client = rd_kafka_new(type, conf, text.data(), text.size());
  if (client == nullptr) give_up(std::string("raw Kafka: ") + text.data());
  return client;
}

void check(rd_kafka_resp_err_t code) {
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
    give_up(std::string("raw Kafka: ") + rd_kafka_err2str(code));
}

std::string body_of(const Message& message) {
  return fmt::format(R"({{"id":"{}","account":{},"amount":1,"note":"as agreed, thank you"}})",
                     message.id, *message.key);
}

void produce(rd_kafka_t* producer, const KafkaTopic& topic, const Message& message) {
  const std::string body = body_of(message);
  while (true) {
    const rd_kafka_resp_err_t code = rd_kafka_producev(
        producer, RD_KAFKA_V_TOPIC(topic.name.c_str()), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
        RD_KAFKA_V_KEY(message.key->data(), message.key->size()),
        RD_KAFKA_V_VALUE(const_cast<char*>(body.data()), body.size()), RD_KAFKA_V_END);
    if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL) return check(code);
    rd_kafka_poll(producer, 10);
  }
}

}  // namespace

void fill_topic(const KafkaTopic& topic, std::size_t count) {
  must(create_topic_at(topic.url(), {.partitions = topic.partitions}));
  rd_kafka_t* const producer = make_client(
      RD_KAFKA_PRODUCER,
      {{"bootstrap.servers", topic.hosts()}, {"enable.idempotence", "true"}, {"linger.ms", "20"}});
  for (std::size_t i = 0; i < count; ++i) {
    produce(producer, topic, make_message(IdKind::uuid7, i));
    if (i % 1000 == 0) rd_kafka_poll(producer, 0);
  }
  check(rd_kafka_flush(producer, 60'000));
  rd_kafka_destroy(producer);
}

Message payment_in(const rd_kafka_message_t& message) {
  const char* const body = static_cast<const char*>(message.payload);
  const auto json = nlohmann::json::parse(body, body + message.len);
  Message payment;
  payment.id = json["id"].get<std::string>();
  payment.key = std::to_string(json["account"].get<std::int64_t>());
  return payment;
}

RawConsumer::RawConsumer(const KafkaTopic& topic)
    : client_(make_client(RD_KAFKA_CONSUMER, {{"bootstrap.servers", topic.hosts()},
                                              {"group.id", "bench"},
                                              {"enable.auto.commit", "false"},
                                              {"auto.offset.reset", "earliest"}})) {
  rd_kafka_poll_set_consumer(client_);
  rd_kafka_topic_partition_list_t* const all =
      rd_kafka_topic_partition_list_new(static_cast<int>(topic.partitions));
  for (std::uint32_t i = 0; i < topic.partitions; ++i)
    rd_kafka_topic_partition_list_add(all, topic.name.c_str(), static_cast<std::int32_t>(i))
        ->offset = RD_KAFKA_OFFSET_BEGINNING;
  check(rd_kafka_assign(client_, all));
  rd_kafka_topic_partition_list_destroy(all);
  queue_ = rd_kafka_queue_get_consumer(client_);
}

RawConsumer::~RawConsumer() {
  let_go();
  rd_kafka_queue_destroy(queue_);
  rd_kafka_consumer_close(client_);
  rd_kafka_destroy(client_);
}

void RawConsumer::let_go() {
  for (rd_kafka_message_t* const message : messages_) rd_kafka_message_destroy(message);
  messages_.clear();
}

const rd_kafka_message_t& RawConsumer::next() {
  let_go();
  rd_kafka_message_t* const message = rd_kafka_consumer_poll(client_, wait_ms);
  if (message == nullptr) give_up("raw Kafka: no message came");
  messages_.push_back(message);
  check(message->err);
  return *message;
}

std::span<rd_kafka_message_t* const> RawConsumer::next(std::size_t count_max) {
  let_go();
  messages_.resize(count_max);
  const ssize_t count = rd_kafka_consume_batch_queue(queue_, wait_ms, messages_.data(), count_max);
  messages_.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
  if (messages_.empty()) give_up("raw Kafka: no message came");
  for (const rd_kafka_message_t* const message : messages_) check(message->err);
  return messages_;
}

}  // namespace once::bench
