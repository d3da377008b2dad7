// SPDX-License-Identifier: Apache-2.0
#include "streams/kafka_cluster.h"

#include <atomic>
#include <set>
#include <thread>

#include "streams/sink_suite.h"
#include "streams/source_suite.h"
#include "testing/chaos_proxy.h"
#include "testing/free_port.h"
#include "testing/live_server.h"

namespace once::testing {
namespace {

LiveServer& server() {
  static LiveServer kafka("kafka");
  return kafka;
}

std::string hosts() { return fmt::format("127.0.0.1:{}", server().port()); }

std::string new_topic(std::uint32_t partitions) {
  static int count = 0;
  const std::string topic = fmt::format("topic{}", ++count);
  create_kafka_topic(hosts(), topic, partitions);
  return server().url() + "/" + topic;
}

StreamUnderTest kafka_stream() {
  StreamUnderTest stream;
  stream.name = "kafka";
  stream.new_topic = new_topic;
  stream.open_sink = [](const std::string& url) { return open_kafka_sink(url); };
  stream.open_source = [](const std::string& url, bool bounded) {
    return open_kafka_source(url + (bounded ? "?end=stop" : ""));
  };
  stream.dense_offsets = false;  // the ends of transactions have offsets too
  return stream;
}

INSTANTIATE_TEST_SUITE_P(Kafka, SinkSuite, ::testing::Values(kafka_stream()));
INSTANTIATE_TEST_SUITE_P(Kafka, ProducersSuite, ::testing::Values(kafka_stream()));
INSTANTIATE_TEST_SUITE_P(Kafka, SourceSuite, ::testing::Values(kafka_stream()));

// --- What only Kafka has.

std::string topic_of(const std::string& url) { return url.substr(url.rfind('/') + 1); }

// A producer that sends orders to the partitions of a topic.
class Shop {
 public:
  explicit Shop(const std::string& url) : sink_(open_kafka_sink(url).value()) {}

  void send(std::uint32_t partition, int from, int to) {
    if (!stamps_.contains(partition))
      stamps_[partition] = sink_->producers()->enter(partition, "shop").value();
    Stamp& stamp = stamps_[partition];
    std::vector<Message> messages;
    for (int i = from; i < to; ++i) messages.push_back({.id = fmt::format("order {}", i)});
    const auto done = sink_->append(partition, stamp, messages);
    ASSERT_TRUE(done) << done.error().text;
    stamp.sequence += messages.size();
  }

 private:
  std::unique_ptr<Sink> sink_;
  std::map<std::uint32_t, Stamp> stamps_;
};

// One member of a group, as a pipeline would drive it.
class Member {
 public:
  Member(const std::string& url, const std::string& group, const std::string& more = {})
      : source_(open_kafka_source(
                    fmt::format("{}?group={}&session.timeout.ms=2000&heartbeat.interval.ms=200{}",
                                url, group, more))
                    .value()) {}

  // A poll, and what a pipeline does about its answer.
  void step() {
    auto batch = source_->poll(100, 20);
    ASSERT_TRUE(batch) << batch.error().text;
    switch (batch->event) {
      case Batch::Event::assigned:
        owned.emplace(batch->partition);
        ASSERT_TRUE(
            source_->replay()->seek(batch->partition, positions[std::string(batch->partition)]));
        break;
      case Batch::Event::revoked: owned.erase(std::string(batch->partition)); break;
      case Batch::Event::end: break;
      case Batch::Event::messages:
        for (const Delivery& delivery : batch->deliveries) {
          EXPECT_TRUE(owned.contains(std::string(delivery.partition)));
          read.emplace_back(delivery.id);
          positions[std::string(delivery.partition)] = delivery.offset + 1;
        }
        if (!batch->deliveries.empty()) {
          ASSERT_TRUE(source_->ack(batch->deliveries));
        }
    }
  }

  std::set<std::string> owned;
  std::vector<std::string> read;
  static inline std::map<std::string, std::int64_t> positions;  // the store's, shared by all

 private:
  std::unique_ptr<Source> source_;
};

template <class Done>
bool drive(const std::vector<Member*>& members, const Done& done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    for (Member* member : members) member->step();
  }
  return true;
}

class KafkaGroup : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    url_ = new_topic(4);
    shop_ = std::make_unique<Shop>(url_);
    for (int p = 0; p < 4; ++p) Member::positions[fmt::format("{}/{}", topic_of(url_), p)] = -1;
    send_to_all(0, 10);
  }
  void send_to_all(int from, int to) {
    for (std::uint32_t p = 0; p < 4; ++p)
      shop_->send(p, static_cast<int>(p) * 1000 + from, static_cast<int>(p) * 1000 + to);
  }
  std::string url_;
  std::unique_ptr<Shop> shop_;
};

TEST_P(KafkaGroup, members_share_the_partitions_and_take_over_from_each_other) {
  const std::string more = GetParam();
  Member first(url_, topic_of(url_), more + (more.find("instance") == more.npos ? "" : "first"));
  ASSERT_TRUE(drive({&first}, [&] { return first.owned.size() == 4 && first.read.size() == 40; }));
  {
    Member second(url_, topic_of(url_),
                  more + (more.find("instance") == more.npos ? "" : "second"));
    ASSERT_TRUE(drive({&first, &second},
                      [&] { return first.owned.size() == 2 && second.owned.size() == 2; }));
    EXPECT_TRUE(second.read.empty()) << "what the first has handled came again";
    send_to_all(10, 20);
    ASSERT_TRUE(drive({&first, &second},
                      [&] { return first.read.size() == 60 && second.read.size() == 20; }));
  }
  ASSERT_TRUE(drive({&first}, [&] { return first.owned.size() == 4; }));
  send_to_all(20, 21);
  ASSERT_TRUE(drive({&first}, [&] { return first.read.size() == 64; }));
}

INSTANTIATE_TEST_SUITE_P(Protocols, KafkaGroup,
                         ::testing::Values("", "&partition.assignment.strategy=range",
                                           "&group.instance.id="));

// librdkafka before 2.3.0 aborts the process then.
TEST(KafkaSourceAlone, may_leave_its_group_before_it_gets_a_partition) {
  const std::string url = new_topic(4);
  Member keeper(url, "hasty");
  ASSERT_TRUE(drive({&keeper}, [&] { return keeper.owned.size() == 4; }));
  for (int i = 0; i < 8; ++i) {
    Member hasty(url, "hasty");
    hasty.step();  // joins
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(40 * i);
    while (std::chrono::steady_clock::now() < until) keeper.step();
  }
  ASSERT_TRUE(drive({&keeper}, [&] { return keeper.owned.size() == 4; }));
}

TEST(KafkaSourceAlone, tells_kafka_how_far_the_group_is_only_as_a_hint) {
  const std::string url = new_topic(1);
  Shop shop(url);
  shop.send(0, 0, 5);
  Member::positions[topic_of(url) + "/0"] = -1;
  {
    Member member(url, topic_of(url));
    ASSERT_TRUE(drive({&member}, [&] { return member.read.size() == 5; }));
  }
  EXPECT_EQ(kafka_committed(hosts(), topic_of(url), topic_of(url), 0), 5);
  // The store decides: it has gone back.
  Member::positions[topic_of(url) + "/0"] = 3;
  Member member(url, topic_of(url));
  ASSERT_TRUE(drive({&member}, [&] { return member.read.size() == 2; }));
  EXPECT_EQ(member.read, (std::vector<std::string>{"order 3", "order 4"}));
}

TEST(KafkaSourceAlone, starts_where_an_older_consumer_of_the_group_was_if_asked_to) {
  const std::string url = new_topic(1);
  Shop shop(url);
  shop.send(0, 0, 5);
  Member::positions[topic_of(url) + "/0"] = -1;
  {
    Member old(url, topic_of(url));
    ASSERT_TRUE(drive({&old}, [&] { return old.read.size() == 5; }));
  }
  shop.send(0, 5, 7);
  Member::positions[topic_of(url) + "/0"] = -1;
  Member fresh(url, topic_of(url), "&start=committed");
  ASSERT_TRUE(drive({&fresh}, [&] { return fresh.read.size() == 2; }));
  EXPECT_EQ(fresh.read, (std::vector<std::string>{"order 5", "order 6"}));
}

TEST(KafkaSourceAlone, messages_that_kafka_has_deleted_are_gone_and_not_skipped) {
  const std::string url = new_topic(1);
  Shop(url).send(0, 0, 10);
  delete_kafka_records(hosts(), topic_of(url), 0, 4);
  auto source = open_kafka_source(url).value();
  const Batch news = source->poll(10, 100).value();
  ASSERT_EQ(news.event, Batch::Event::assigned);
  const Status gone = source->replay()->seek(news.partition, 2);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().tag, "gone");
  EXPECT_NE(gone.error().text.find("the oldest is 4"), std::string::npos) << gone.error().text;
  EXPECT_TRUE(source->replay()->seek(news.partition, 4));
}

TEST(KafkaSourceAlone, a_position_beyond_the_end_is_gone) {
  const std::string url = new_topic(1);
  Shop(url).send(0, 0, 3);
  auto source = open_kafka_source(url).value();
  const Batch news = source->poll(10, 100).value();
  ASSERT_EQ(news.event, Batch::Event::assigned);
  const Status gone = source->replay()->seek(news.partition, 1000);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().tag, "gone") << gone.error().text;
}

TEST(KafkaSourceAlone, names_its_cluster_and_all_partitions) {
  const std::string url = new_topic(3);
  const SourceTraits traits = open_kafka_source(url + "?group=only_looks").value()->traits();
  EXPECT_EQ(traits.identity, "kafka:b25jZS1rYWZrYS10ZXN0cw") << "the cluster id in tools/server.py";
  const std::string topic = topic_of(url);
  EXPECT_EQ(traits.partitions,
            (std::vector<std::string>{topic + "/0", topic + "/1", topic + "/2"}));
}

TEST(KafkaSourceAlone, messages_of_an_aborted_transaction_are_not_seen) {
  const std::string url = new_topic(1);
  abort_kafka_transaction(hosts(), topic_of(url), "never happened");
  Shop(url).send(0, 0, 2);
  auto source = open_kafka_source(url + "?end=stop").value();
  std::vector<std::string> bodies;
  for (bool more = true; more;) {
    const Batch batch = source->poll(10, 50).value();
    if (batch.event == Batch::Event::assigned) {
      ASSERT_TRUE(source->replay()->seek(batch.partition, -1));
    }
    for (const Delivery& delivery : batch.deliveries) bodies.emplace_back(delivery.id);
    more = batch.event != Batch::Event::end;
  }
  EXPECT_EQ(bodies, (std::vector<std::string>{"order 0", "order 1"}));
}

TEST(KafkaErrors, name_what_is_wrong_and_where) {
  const auto missing = open_kafka_source(server().url() + "/nowhere");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().tag, "missing");
  EXPECT_NE(missing.error().text.find("nowhere"), std::string::npos);
  const auto property = open_kafka_source(server().url() + "/t?no.such.property=1");
  ASSERT_FALSE(property);
  EXPECT_NE(property.error().text.find("no.such.property"), std::string::npos);
  const auto away = open_kafka_sink("kafka://127.0.0.1:1/t?socket.timeout.ms=1000");
  ASSERT_FALSE(away);
  EXPECT_EQ(away.error().remedy, Remedy::retry);
  EXPECT_NE(away.error().text.find("Connection refused"), std::string::npos) << away.error().text;
}

TEST(KafkaErrors, show_no_secret) {
  const auto denied =
      open_kafka_source(fmt::format("kafka://me:verysecret@{}/t?socket.timeout.ms=1000", hosts()));
  ASSERT_FALSE(denied);
  EXPECT_EQ(denied.error().text.find("verysecret"), std::string::npos) << denied.error().text;
}

// --- A network that breaks: all that clients and broker say goes through a proxy.

TEST(KafkaNetwork, H12_a_sink_whose_connections_break_appends_everything_once_and_in_order) {
  const std::uint16_t port = free_port();
  ChaosProxy proxy(port);
  LiveServer kafka(
      "kafka",
      {.settings = {fmt::format("advertised.listeners=PLAINTEXT://127.0.0.1:{}", proxy.port())},
       .port = port});
  ASSERT_TRUE(kafka.missing().empty());
  const std::string through = fmt::format("127.0.0.1:{}", proxy.port());
  create_kafka_topic(through, "orders", 1);
  const std::string url =
      fmt::format("kafka://{}/orders?reconnect.backoff.max.ms=200&socket.timeout.ms=3000", through);

  std::atomic<bool> done{false};
  std::thread breaker([&] {
    for (int i = 0; !done; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(37 + i * 61 % 290));
      if (i % 7 == 6) {  // nothing passes for a while
        proxy.stall(true);
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        proxy.stall(false);
      }
      proxy.cut_all();
    }
  });
  constexpr int batches = 60;
  std::uint64_t duplicates = 0;
  {
    auto sink = open_kafka_sink(url).value();
    ProducerOptions options;
    options.name = "shop";
    options.attempts_max = 1000;
    auto producer = Producer::open(*sink, options);
    while (!producer && producer.error().remedy != Remedy::stop)
      producer = Producer::open(*sink, options);
    ASSERT_TRUE(producer) << producer.error().text;
    for (int b = 0; b < batches; ++b) {
      std::vector<Message> messages;
      for (int i = 0; i < 5; ++i) messages.push_back({.id = fmt::format("order {}", b * 5 + i)});
      const auto sent = (*producer)->send(messages);
      ASSERT_TRUE(sent) << sent.error().text;
      duplicates += sent->duplicates;
    }
  }
  done = true;
  breaker.join();
  auto source = open_kafka_source(url + "&end=stop").value();
  std::vector<std::string> read;
  for (bool more = true; more;) {
    const Batch batch = source->poll(100, 50).value();
    if (batch.event == Batch::Event::assigned) {
      ASSERT_TRUE(source->replay()->seek(batch.partition, -1));
    }
    for (const Delivery& delivery : batch.deliveries) read.emplace_back(delivery.id);
    more = batch.event != Batch::Event::end;
  }
  std::vector<std::string> wanted;
  for (int i = 0; i < batches * 5; ++i) wanted.push_back(fmt::format("order {}", i));
  EXPECT_EQ(read, wanted);
  ::testing::Test::RecordProperty("duplicates_recognised", static_cast<int>(duplicates));
}

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::server());
}
