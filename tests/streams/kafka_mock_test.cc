// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>
// After the other.
#include <librdkafka/rdkafka_mock.h>
#include <once/once.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "wire/kafka/client.h"

// librdkafka's own cluster in memory, which answers with the errors that it is told to. It knows no
// aborted transactions, so these tests only use errors after which nothing has to be aborted; the
// rest is shown on a real broker (kafka_stream_test).

namespace once::testing {
namespace {

using kafka::Free;

// Requests, by the numbers they have in Kafka's protocol.
enum Request : std::int16_t {
  produce = 0,
  fetch = 1,
  fetch_offsets = 9,
  find_coordinator = 10,
  join_group = 11,
  heartbeat = 12,
  init_producer = 22,
  add_partitions = 24,
  end_transaction = 26,
  commit_offsets = 28,
};

class KafkaMock : public ::testing::Test {
 protected:
  KafkaMock() {
    std::array<char, 256> text{};
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "log_level", "3", text.data(), text.size());
    owner_.reset(rd_kafka_new(RD_KAFKA_PRODUCER, conf, text.data(), text.size()));
    cluster_.reset(rd_kafka_mock_cluster_new(owner_.get(), 1));
    rd_kafka_mock_topic_create(cluster_.get(), "orders", 2, 1);
    url_ = fmt::format("kafka://{}/orders", rd_kafka_mock_cluster_bootstraps(cluster_.get()));
  }

  // The next requests of this kind are answered with these errors, one each.
  void answer(Request request, std::vector<rd_kafka_resp_err_t> errors) {
    rd_kafka_mock_push_request_errors_array(cluster_.get(), request, errors.size(), errors.data());
  }

  static std::vector<Message> messages(int from, int to) {
    std::vector<Message> made;
    for (int i = from; i < to; ++i) made.push_back({.id = fmt::format("order {}", i)});
    return made;
  }

  std::vector<std::string> all() {
    auto source = open_kafka_source(url_ + "?end=stop").value();
    std::vector<std::string> ids;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < deadline) {
      const Batch batch = source->poll(100, 50).value();
      if (batch.event == Batch::Event::assigned) {
        EXPECT_TRUE(source->replay()->seek(batch.partition, -1));
      }
      for (const Delivery& delivery : batch.deliveries) ids.emplace_back(delivery.id);
      if (batch.event == Batch::Event::end) return ids;
    }
    ADD_FAILURE() << "the source does not end";
    return ids;
  }

  static std::vector<std::string> ids(int count) {
    std::vector<std::string> wanted;
    for (const Message& message : messages(0, count)) wanted.push_back(message.id);
    return wanted;
  }

  std::unique_ptr<rd_kafka_t, Free<rd_kafka_destroy>> owner_;
  std::unique_ptr<rd_kafka_mock_cluster_t, Free<rd_kafka_mock_cluster_destroy>> cluster_;
  std::string url_;
};

TEST_F(KafkaMock, a_coordinator_that_is_not_ready_is_waited_for) {
  answer(find_coordinator, {RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE});
  answer(init_producer,
         {RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS, RD_KAFKA_RESP_ERR_NOT_COORDINATOR,
          RD_KAFKA_RESP_ERR_CONCURRENT_TRANSACTIONS});
  auto sink = open_kafka_sink(url_).value();
  const auto stamp = sink->producers()->enter(0, "shop");
  ASSERT_TRUE(stamp) << stamp.error().text;
  const auto done = sink->append(0, *stamp, messages(0, 3));
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_EQ(all(), ids(3));
}

TEST_F(KafkaMock, a_group_that_is_still_being_loaded_is_asked_again) {
  auto sink = open_kafka_sink(url_).value();
  answer(fetch_offsets, {RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS,
                         RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE});
  const auto stamp = sink->producers()->enter(0, "shop");
  ASSERT_TRUE(stamp) << stamp.error().text;
  EXPECT_EQ(stamp->sequence, 0u);
}

TEST_F(KafkaMock, what_a_broker_could_not_take_is_sent_again_and_stored_once) {
  auto sink = open_kafka_sink(url_).value();
  Stamp stamp = sink->producers()->enter(0, "shop").value();
  for (int i = 0; i < 5; ++i) {
    answer(produce, {RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
                     RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT});
    answer(add_partitions, {RD_KAFKA_RESP_ERR_CONCURRENT_TRANSACTIONS});
    answer(end_transaction, {RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE});
    answer(commit_offsets, {RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS});
    const auto done = sink->append(0, stamp, messages(i * 4, i * 4 + 4));
    ASSERT_TRUE(done) << done.error().text;
    stamp.sequence += 4;
  }
  EXPECT_EQ(all(), ids(20));
}

// The mock keeps no offsets that were sent in transactions, as if the state had been deleted: the
// new producer reads it again instead of going on from what the old one knew.
TEST_F(KafkaMock, a_fatal_error_is_answered_by_a_new_producer_that_reads_its_state_again) {
  auto sink = open_kafka_sink(url_).value();
  Stamp stamp = sink->producers()->enter(0, "shop").value();
  ASSERT_TRUE(sink->append(0, stamp, messages(0, 4)));
  stamp.sequence = 4;
  answer(add_partitions, {RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH});
  const auto lost = sink->append(0, stamp, messages(4, 8));
  ASSERT_FALSE(lost);
  EXPECT_NE(lost.error().remedy, Remedy::stop) << lost.error().text;
  const auto again = sink->append(0, stamp, messages(4, 8));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().tag, "unknown") << again.error().text;
  EXPECT_EQ(all(), ids(4));
}

TEST_F(KafkaMock, a_denied_producer_says_so) {
  answer(init_producer, {RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED});
  auto sink = open_kafka_sink(url_).value();
  const auto denied = sink->producers()->enter(0, "shop");
  ASSERT_FALSE(denied);
  EXPECT_EQ(denied.error().remedy, Remedy::stop);
  EXPECT_EQ(denied.error().tag, "denied");
}

TEST_F(KafkaMock, a_fetch_that_fails_is_repeated_and_nothing_is_skipped) {
  {
    auto sink = open_kafka_sink(url_).value();
    ASSERT_TRUE(sink->append(0, sink->producers()->enter(0, "shop").value(), messages(0, 50)));
  }
  answer(fetch, {RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, RD_KAFKA_RESP_ERR_UNKNOWN,
                 RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE});
  EXPECT_EQ(all(), ids(50));
}

TEST_F(KafkaMock, a_broker_that_goes_away_for_a_while_is_waited_for) {
  {
    auto sink = open_kafka_sink(url_).value();
    ASSERT_TRUE(sink->append(0, sink->producers()->enter(0, "shop").value(), messages(0, 50)));
  }
  auto source = open_kafka_source(url_ + "?reconnect.backoff.max.ms=100").value();
  rd_kafka_mock_broker_set_down(cluster_.get(), 1);
  std::thread helper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    rd_kafka_mock_broker_set_up(cluster_.get(), 1);
  });
  std::vector<std::string> read;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (read.size() < 50 && std::chrono::steady_clock::now() < deadline) {
    const auto batch = source->poll(100, 50);
    ASSERT_TRUE(batch) << batch.error().text;
    EXPECT_FALSE(batch->drained && read.size() < 50) << "a broker that is away is not drained";
    if (batch->event == Batch::Event::assigned) {
      ASSERT_TRUE(source->replay()->seek(batch->partition, -1));
    }
    for (const Delivery& delivery : batch->deliveries) read.emplace_back(delivery.id);
  }
  helper.join();
  EXPECT_EQ(read, ids(50));
}

// librdkafka alone waits for the end of the session before it gives up.
// An empty poll looks the same while nothing is sent.
TEST_F(KafkaMock, a_source_whose_broker_is_away_says_so_within_seconds) {
  auto source = open_kafka_source(url_).value();
  ASSERT_EQ(source->replay()->ends().value(),
            (std::vector<PartitionEnd>{{"orders/0", 0}, {"orders/1", 0}}));
  rd_kafka_mock_broker_set_down(cluster_.get(), 1);
  const auto began = std::chrono::steady_clock::now();
  const auto away = source->replay()->ends();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(3));
  ASSERT_FALSE(away);
  EXPECT_EQ(away.error().remedy, Remedy::retry);
  EXPECT_EQ(away.error().tag, "away") << away.error().text;
  rd_kafka_mock_broker_set_up(cluster_.get(), 1);
  bool back = false;
  for (int i = 0; i < 10 && !back; ++i) back = source->replay()->ends().has_value();
  EXPECT_TRUE(back);
}

TEST_F(KafkaMock, a_member_whose_broker_is_away_is_closed_in_bounded_time) {
  {
    auto sink = open_kafka_sink(url_).value();
    ASSERT_TRUE(sink->append(0, sink->producers()->enter(0, "shop").value(), messages(0, 50)));
  }
  auto source = open_kafka_source(url_ + "?group=g&session.timeout.ms=45000").value();
  std::size_t read = 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (read < 50 && std::chrono::steady_clock::now() < deadline) {
    const Batch batch = source->poll(100, 50).value();
    if (batch.event == Batch::Event::assigned) {
      ASSERT_TRUE(source->replay()->seek(batch.partition, -1));
    }
    read += batch.deliveries.size();
    ASSERT_TRUE(source->ack(batch.deliveries));  // something to commit when it is closed
  }
  ASSERT_EQ(read, 50u);
  rd_kafka_mock_broker_set_down(cluster_.get(), 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const auto began = std::chrono::steady_clock::now();
  source.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(6));
}

// The pipeline looks at the last message that was handled before it goes on behind it.
TEST_F(KafkaMock, a_source_reads_from_any_offset_right_after_the_assignment) {
  {
    auto sink = open_kafka_sink(url_).value();
    ASSERT_TRUE(sink->append(0, sink->producers()->enter(0, "shop").value(), messages(0, 50)));
  }
  for (const char* more : {"", "?group=g"}) {
    auto source = open_kafka_source(url_ + more).value();
    std::vector<std::int64_t> read;
    bool went_back = false;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (read.size() < 1 + 1 + 50 && std::chrono::steady_clock::now() < deadline) {
      const auto batch = source->poll(1, 50);
      ASSERT_TRUE(batch) << batch.error().text;
      if (batch->event == Batch::Event::assigned) {
        ASSERT_TRUE(
            source->replay()->seek(batch->partition, batch->partition == "orders/0" ? 49 : -1));
      }
      for (const Delivery& delivery : batch->deliveries) read.push_back(delivery.offset);
      if (read.size() == 1 && !went_back) {
        went_back = true;
        ASSERT_TRUE(source->replay()->seek("orders/0", 20));
      }
      if (read.size() == 2 && !batch->deliveries.empty()) {
        ASSERT_TRUE(source->replay()->seek("orders/0", 0));
      }
    }
    std::vector<std::int64_t> wanted{49, 20};
    for (std::int64_t i = 0; i < 50; ++i) wanted.push_back(i);
    EXPECT_EQ(read, wanted) << more;
  }
}

TEST_F(KafkaMock, a_member_that_the_group_has_forgotten_joins_again_and_loses_nothing) {
  {
    auto sink = open_kafka_sink(url_).value();
    ASSERT_TRUE(sink->append(0, sink->producers()->enter(0, "shop").value(), messages(0, 50)));
  }
  auto source =
      open_kafka_source(url_ + "?group=g&heartbeat.interval.ms=100&session.timeout.ms=6000")
          .value();
  std::int64_t position = -1;
  int assignments = 0;
  std::vector<std::string> read;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while ((read.size() < 50 || assignments < 2) && std::chrono::steady_clock::now() < deadline) {
    const auto batch = source->poll(5, 50);
    ASSERT_TRUE(batch) << batch.error().text;
    if (batch->event == Batch::Event::assigned) {
      if (batch->partition == "orders/0" && ++assignments == 1)
        answer(heartbeat, {RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID});
      ASSERT_TRUE(
          source->replay()->seek(batch->partition, batch->partition == "orders/0" ? position : -1));
    }
    for (const Delivery& delivery : batch->deliveries) {
      read.emplace_back(delivery.id);
      position = delivery.offset + 1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(assignments, 2);
  EXPECT_EQ(read, ids(50));
}

}  // namespace
}  // namespace once::testing
