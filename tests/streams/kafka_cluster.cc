// SPDX-License-Identifier: Apache-2.0
#include "streams/kafka_cluster.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "wire/kafka/client.h"

namespace once::testing {
namespace {

using kafka::Free;

std::unique_ptr<rd_kafka_t, Free<rd_kafka_destroy>> client(
    rd_kafka_type_t type, const std::string& hosts,
    const std::vector<std::pair<std::string, std::string>>& more = {}) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  std::array<char, 256> text{};
  rd_kafka_conf_set(conf, "bootstrap.servers", hosts.c_str(), text.data(), text.size());
  for (const auto& [name, value] : more)
    rd_kafka_conf_set(conf, name.c_str(), value.c_str(), text.data(), text.size());
  return std::unique_ptr<rd_kafka_t, Free<rd_kafka_destroy>>(
      rd_kafka_new(type, conf, text.data(), text.size()));
}

using Event = std::unique_ptr<rd_kafka_event_t, Free<rd_kafka_event_destroy>>;

// Asks until the answer is good: a broker that has just started does not know its topics yet.
void administer(const std::string& hosts,
                const std::function<void(rd_kafka_t*, rd_kafka_queue_t*)>& ask,
                const std::function<rd_kafka_resp_err_t(const rd_kafka_event_t*)>& judge) {
  const auto admin = client(RD_KAFKA_PRODUCER, hosts);
  rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR__TIMED_OUT;
  for (int i = 0; i < 60 && code != RD_KAFKA_RESP_ERR_NO_ERROR; ++i) {
    const kafka::Queue answers(rd_kafka_queue_new(admin.get()));
    ask(admin.get(), answers.get());
    const Event event(rd_kafka_queue_poll(answers.get(), 10'000));
    if (!event) continue;
    code = rd_kafka_event_error(event.get());
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) code = judge(event.get());
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  ASSERT_EQ(code, RD_KAFKA_RESP_ERR_NO_ERROR) << rd_kafka_err2str(code);
}

}  // namespace

void create_kafka_topic(const std::string& hosts, const std::string& topic,
                        std::uint32_t partitions, const KafkaSettings& settings) {
  administer(
      hosts,
      [&](rd_kafka_t* admin, rd_kafka_queue_t* answers) {
        std::array<char, 256> text{};
        rd_kafka_NewTopic_t* wanted = rd_kafka_NewTopic_new(
            topic.c_str(), static_cast<int>(partitions), 1, text.data(), text.size());
        for (const auto& [name, value] : settings)
          rd_kafka_NewTopic_set_config(wanted, name.c_str(), value.c_str());
        rd_kafka_CreateTopics(admin, &wanted, 1, nullptr, answers);
        rd_kafka_NewTopic_destroy(wanted);
      },
      [](const rd_kafka_event_t* event) {
        std::size_t count = 0;
        const rd_kafka_topic_result_t** results = rd_kafka_CreateTopics_result_topics(
            rd_kafka_event_CreateTopics_result(const_cast<rd_kafka_event_t*>(event)), &count);
        const rd_kafka_resp_err_t code = rd_kafka_topic_result_error(results[0]);
        return code == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS ? RD_KAFKA_RESP_ERR_NO_ERROR : code;
      });
}

void delete_kafka_records(const std::string& hosts, const std::string& topic,
                          std::int32_t partition, std::int64_t offset) {
  administer(
      hosts,
      [&](rd_kafka_t* admin, rd_kafka_queue_t* answers) {
        const kafka::PartitionList before(rd_kafka_topic_partition_list_new(1));
        rd_kafka_topic_partition_list_add(before.get(), topic.c_str(), partition)->offset = offset;
        rd_kafka_DeleteRecords_t* wanted = rd_kafka_DeleteRecords_new(before.get());
        rd_kafka_DeleteRecords(admin, &wanted, 1, nullptr, answers);
        rd_kafka_DeleteRecords_destroy(wanted);
      },
      [](const rd_kafka_event_t* event) {
        return rd_kafka_DeleteRecords_result_offsets(
                   rd_kafka_event_DeleteRecords_result(const_cast<rd_kafka_event_t*>(event)))
            ->elems[0]
            .err;
      });
}

std::int64_t kafka_committed(const std::string& hosts, const std::string& group,
                             const std::string& topic, std::int32_t partition) {
  const auto consumer = client(RD_KAFKA_CONSUMER, hosts, {{"group.id", group}});
  const kafka::PartitionList places(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(places.get(), topic.c_str(), partition);
  EXPECT_EQ(rd_kafka_committed(consumer.get(), places.get(), 10'000), RD_KAFKA_RESP_ERR_NO_ERROR);
  return std::max<std::int64_t>(places->elems[0].offset, -1);
}

void abort_kafka_transaction(const std::string& hosts, const std::string& topic,
                             const std::string& body) {
  const auto producer = client(RD_KAFKA_PRODUCER, hosts, {{"transactional.id", "aborter"}});
  ASSERT_FALSE(kafka::Failure(rd_kafka_init_transactions(producer.get(), 20'000)));
  ASSERT_FALSE(kafka::Failure(rd_kafka_begin_transaction(producer.get())));
  ASSERT_EQ(rd_kafka_producev(producer.get(), RD_KAFKA_V_TOPIC(topic.c_str()),
                              RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                              RD_KAFKA_V_VALUE(const_cast<char*>(body.data()), body.size()),
                              RD_KAFKA_V_END),
            RD_KAFKA_RESP_ERR_NO_ERROR);
  ASSERT_EQ(rd_kafka_flush(producer.get(), 20'000), RD_KAFKA_RESP_ERR_NO_ERROR);
  ASSERT_FALSE(kafka::Failure(rd_kafka_abort_transaction(producer.get(), 20'000)));
}

}  // namespace once::testing
