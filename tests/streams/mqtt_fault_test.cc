// SPDX-License-Identifier: Apache-2.0
// What goes wrong between us and Mosquitto: connections that are cut at any byte, a broker that is
// ended, killed or frozen, sessions that are taken over or forgotten, and who may not. Nothing is
// lost that the broker still has, and what comes twice has the same id.
#include <gtest/gtest.h>

#include <optional>

#include "streams/mqtt_broker.h"
#include "streams/queue_shop.h"
#include "testing/chaos_proxy.h"
#include "testing/random.h"

namespace once::testing {
namespace {

using std::chrono::steady_clock;

constexpr auto patience = std::chrono::seconds(40);

LiveServer& server() {
  static LiveServer mosquitto("mosquitto",
                              {.settings = {"max_packet_size=2000000", "autosave_on_changes=false",
                                            "autosave_interval=0"}});
  return mosquitto;
}

// A topic that nobody has used, with a session that keeps what is sent to it.
class Topic {
 public:
  explicit Topic(int qos = 1, LiveServer& where = server()) : where_(where), qos_(qos) {
    static int count = 0;
    name_ = fmt::format("fault/{}", ++count);
    subscribe_mqtt(source_url());
  }
  std::string url(std::uint16_t port = 0) const {
    return fmt::format("{}/{}?qos={}", port == 0 ? where_.url() : where_.url_at(port), name_, qos_);
  }
  std::string source_url(std::uint16_t port = 0) const {
    return fmt::format("{}&headers=own&client={}", url(port), client());
  }
  std::string client() const { return "client-of-" + name_.substr(6); }
  std::unique_ptr<Sink> sink(std::uint16_t port = 0) const { return opened(mqtt_sink(url(port))); }
  std::unique_ptr<Source> source(std::uint16_t port = 0, const std::string& more = "") const {
    return opened(mqtt_source(source_url(port) + more));
  }
  // How often each id waits in the session; takes everything out of it.
  std::map<std::string, int> content() const {
    const auto reader = source(0, "&end=stop");
    std::map<std::string, int> counts;
    const auto deadline = steady_clock::now() + patience;
    while (steady_clock::now() < deadline) {
      const Batch batch = reader->poll(1000, 50).value();
      if (batch.event == Batch::Event::end) return counts;
      for (const Delivery& delivery : batch.deliveries) ++counts[std::string(delivery.id)];
      EXPECT_TRUE(reader->ack(batch.deliveries));
    }
    ADD_FAILURE() << "the session does not end";
    return counts;
  }

 private:
  template <class T>
  static std::unique_ptr<T> opened(Result<std::unique_ptr<T>> made) {
    EXPECT_TRUE(made) << made.error().text;
    return std::move(*made);
  }

  LiveServer& where_;
  const int qos_;
  std::string name_;
};

// The first error of polls, within the patience of the test.
std::optional<Error> error_of(Source& source) {
  const auto deadline = steady_clock::now() + patience;
  while (steady_clock::now() < deadline) {
    const auto batch = source.poll(10, 50);
    if (!batch) return batch.error();
    EXPECT_TRUE(source.ack(batch->deliveries));
  }
  ADD_FAILURE() << "the source has no error";
  return std::nullopt;
}

std::set<std::string> ids_of(const std::map<std::string, int>& counts) {
  std::set<std::string> found;
  for (const auto& [id, count] : counts) found.insert(id);
  return found;
}

// The ids of what comes until there are so many, whatever happens in between.
std::set<std::string> ids_from(Source& source, std::size_t count) {
  std::set<std::string> found;
  const auto deadline = steady_clock::now() + patience;
  while (found.size() < count && steady_clock::now() < deadline) {
    const auto batch = source.poll(10, 50);
    if (!batch) continue;
    for (const Delivery& delivery : batch->deliveries) found.emplace(delivery.id);
  }
  return found;
}

void expect_no_secret(const Error& error) {
  EXPECT_EQ(error.text.find("s3cret-of-mine"), std::string::npos) << error.text;
  EXPECT_EQ(error.text.find("once-test-secret"), std::string::npos) << error.text;
}

// --- The sink

TEST(MqttSink, a_message_that_nobody_subscribes_to_is_not_lost_in_silence) {
  const std::string url = server().url() + "/nobody/listens";
  const auto sink = mqtt_sink(url).value();
  const auto receipt = sink->append(0, {}, orders(0, 3));
  ASSERT_FALSE(receipt);
  EXPECT_EQ(receipt.error().tag, "unroutable");
  EXPECT_EQ(receipt.error().remedy, Remedy::retry);
  const auto accepting = mqtt_sink(url + "?no_subscribers=accept").value();
  EXPECT_TRUE(accepting->append(0, {}, orders(0, 3)));
  EXPECT_FALSE(accepting->traits().warnings.empty());
  EXPECT_TRUE(mqtt_sink(url + "?retain=yes").value()->append(0, {}, orders(0, 1)))
      << "it waits for its subscribers";
}

TEST(MqttSink, a_message_that_is_too_large_is_named_and_the_others_arrive) {
  const Topic topic;
  std::vector<Message> sent = orders(0, 5);
  sent[1].body->assign(3'000'000, 'x');
  sent[3].headers.push_back({"large", std::string(200'000, 'h')});
  {
    const auto sink = topic.sink();
    EXPECT_LT(sink->traits().message_bytes_max, 2'000'000u);
    const auto receipt = sink->append(0, {}, sent);
    ASSERT_TRUE(receipt) << receipt.error().text;
    ASSERT_EQ(receipt->refused.size(), 2u);
    EXPECT_EQ(receipt->refused[0].message, 1u);
    EXPECT_EQ(receipt->refused[1].message, 3u);
    for (const Refusal& one : receipt->refused) {
      EXPECT_EQ(one.why.tag, "too_large");
      EXPECT_EQ(one.why.remedy, Remedy::park);
    }
  }
  EXPECT_EQ(topic.content(),
            (std::map<std::string, int>{{"order 0", 1}, {"order 2", 1}, {"order 4", 1}}));
}

TEST(MqttRights, a_topic_that_is_not_ours_is_denied) {
  const auto sink = mqtt_sink(server().url() + "/forbidden/orders").value();
  const auto receipt = sink->append(0, {}, orders(0, 2));
  ASSERT_FALSE(receipt);
  EXPECT_EQ(receipt.error().tag, "denied") << receipt.error().text;
  EXPECT_EQ(receipt.error().remedy, Remedy::stop);
  expect_no_secret(receipt.error());
}

TEST(MqttRights, a_wrong_password_is_denied) {
  const std::string wrong =
      fmt::format("mqtt://once:s3cret-of-mine@127.0.0.1:{}/orders", server().port());
  for (const std::string version : {"3", "5"}) {
    const auto source = mqtt_source(wrong + "?client=x&version=" + version);
    const auto sink = mqtt_sink(wrong + "?version=" + version + (version == "3" ? "&id=body" : ""));
    ASSERT_FALSE(source);
    ASSERT_FALSE(sink);
    for (const Error& error : {source.error(), sink.error()}) {
      EXPECT_EQ(error.tag, "denied");
      EXPECT_EQ(error.remedy, Remedy::stop);
      expect_no_secret(error);
    }
  }
}

TEST(MqttTls, the_certificate_of_the_broker_is_verified) {
  LiveServer secure("mosquitto", {.tls = true});
  const std::string good = fmt::format("{}/orders?ca={}", secure.url(), secure.path("tls/ca.pem"));
  subscribe_mqtt(good + "&client=x");
  send_mqtt(good, orders(0, 3));
  const auto source = mqtt_source(good + "&client=x").value();
  EXPECT_EQ(ids_from(*source, 3), ids_of(each_order_once(0, 3)));

  const std::string foreign =
      fmt::format("{}/orders?ca={}", secure.url(), secure.path("tls/other_ca.pem"));
  for (const std::string& url : {foreign, secure.url() + "/orders", secure.url() + "/o?ca=/none"}) {
    const auto sink = mqtt_sink(url);
    ASSERT_FALSE(sink) << url;
    EXPECT_EQ(sink.error().tag, "denied") << sink.error().text;
    EXPECT_EQ(sink.error().remedy, Remedy::stop);
    expect_no_secret(sink.error());
  }
  const auto plain = mqtt_sink(fmt::format("mqtt://127.0.0.1:{}/orders", secure.port()));
  ASSERT_FALSE(plain);
  EXPECT_NE(plain.error().text.find("mqtts://"), std::string::npos) << plain.error().text;
  expect_no_secret(plain.error());
}

TEST(MqttBroker, that_is_not_there_is_away) {
  LiveServer other("mosquitto");
  const Topic topic(1, other);
  const auto sink = topic.sink();
  const auto source = topic.source();
  ASSERT_TRUE(source->poll(10, 50));
  other.stop();
  const auto error = error_of(*source);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->tag, "away");
  EXPECT_EQ(error->remedy, Remedy::retry);
  expect_no_secret(*error);
  const auto receipt = sink->append(0, {}, orders(0, 1));
  ASSERT_FALSE(receipt);
  EXPECT_EQ(receipt.error().remedy, Remedy::retry) << "nothing was sent";
  EXPECT_EQ(mqtt_source(topic.source_url()).error().tag, "away");
  EXPECT_EQ(mqtt_sink(topic.url()).error().tag, "away");
  other.start();
  send_for_certain(*sink, orders(0, 3));
  EXPECT_EQ(ids_from(*source, 3), ids_of(each_order_once(0, 3)));
}

// --- The network

// (a) Whether the broker has a message whose answer was lost, only the broker knows.
TEST(MqttNetwork, an_answer_that_is_lost_leaves_one_effect) {
  const Topic topic;
  ChaosProxy proxy(server().port());
  const auto sink = topic.sink(proxy.port());
  proxy.arm({.match = R"("number": 4})", .client_bytes = std::nullopt, .answer_bytes = 0});
  send_for_certain(*sink, orders(0, 5));
  EXPECT_TRUE(proxy.fired());
  QueueShop shop(topic.source());
  shop.start();
  EXPECT_TRUE(shop.wait_for(5));
  EXPECT_TRUE(shop.stop());
  EXPECT_EQ(shop.effects(), each_order_once(0, 5));
}

// (d)
void cut_publishes(const Topic& topic, int rounds) {
  ChaosProxy proxy(server().port());
  const auto sink = topic.sink(proxy.port());
  Random random(3);
  int cuts = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::size_t at = random.below(10);
    std::optional<std::size_t> client_bytes;
    if (random.below(2) == 0) client_bytes = random.below(400);
    proxy.arm({.match = fmt::format(R"("number": {})", static_cast<std::size_t>(round) * 10 + at),
               .client_bytes = client_bytes,
               .answer_bytes = random.below(30)});
    send_for_certain(*sink, orders(round * 10, round * 10 + 10));
    cuts += proxy.fired() ? 1 : 0;
  }
  EXPECT_GT(cuts, rounds / 4);
}

TEST(MqttNetwork, publishes_of_qos_1_that_are_cut_at_any_byte_lose_nothing) {
  const Topic topic;
  cut_publishes(topic, 40);
  QueueShop shop(topic.source());
  shop.start();
  EXPECT_TRUE(shop.wait_for(400));
  EXPECT_TRUE(shop.stop());
  EXPECT_EQ(shop.effects(), each_order_once(0, 400));
}

// The session goes on: the broker knows what it was sent before.
TEST(MqttNetwork, publishes_of_qos_2_that_are_cut_at_any_byte_are_there_once) {
  const Topic topic(2);
  cut_publishes(topic, 40);
  EXPECT_EQ(topic.content(), each_order_once(0, 400));
}

// (b) and (d): connections are cut while deliveries and answers are on their way.
void cut_deliveries(const Topic& topic, const std::string& answer) {
  constexpr int count = 3000;
  ASSERT_TRUE(topic.sink()->append(0, {}, orders(0, count)));
  ChaosProxy proxy(server().port());
  QueueShop shop(topic.source(proxy.port(), "&prefetch=100"));
  shop.start();
  Random random(5);
  int cuts = 0;
  const auto deadline = steady_clock::now() + patience;
  while (shop.effects().size() < count && cuts < 12 && steady_clock::now() < deadline) {
    proxy.arm(
        {.match = answer, .client_bytes = random.below(200), .answer_bytes = random.below(9000)});
    while (!proxy.fired() && shop.effects().size() < count && steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    cuts += proxy.fired() ? 1 : 0;
  }
  EXPECT_GT(cuts, 5);
  EXPECT_TRUE(shop.wait_for(count));
  const Status ran = shop.stop();
  EXPECT_TRUE(ran) << ran.error().text;
  EXPECT_EQ(shop.effects(), each_order_once(0, count));
}

TEST(MqttNetwork, deliveries_and_acks_of_qos_1_that_are_cut_have_one_effect_each) {
  cut_deliveries(Topic(), "\x40\x02");  // PUBACK
}

TEST(MqttNetwork, deliveries_and_acks_of_qos_2_that_are_cut_have_one_effect_each) {
  cut_deliveries(Topic(2), "\x50\x02");  // PUBREC
}

TEST(MqttNetwork, a_broker_that_hangs_is_away_and_comes_back) {
  const Topic topic;
  ChaosProxy proxy(server().port());
  const auto source = topic.source(proxy.port(), "&keepalive=1");
  ASSERT_TRUE(source->poll(10, 0));
  proxy.stall(true);
  ASSERT_TRUE(topic.sink()->append(0, {}, orders(0, 3)));
  const auto error = error_of(*source);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->tag, "away");
  EXPECT_EQ(error->remedy, Remedy::retry);
  proxy.stall(false);
  proxy.cut_all();
  EXPECT_EQ(ids_from(*source, 3), ids_of(each_order_once(0, 3)));
}

// --- The broker

// (c) It writes down what it has when it ends.
TEST(MqttBroker, that_is_ended_under_load_loses_and_doubles_nothing) {
  constexpr int count = 2000;
  LiveServer other("mosquitto", {.settings = {"autosave_on_changes=false", "autosave_interval=0"}});
  const Topic topic(1, other);
  QueueShop shop(topic.source(0, "&prefetch=50"));
  shop.start();
  std::thread producer([&] {
    const auto sink = topic.sink();
    for (int i = 0; i < count; i += 50) send_for_certain(*sink, orders(i, i + 50));
  });
  EXPECT_TRUE(shop.wait_for(200));
  other.stop();
  other.start();
  producer.join();
  EXPECT_TRUE(shop.wait_for(count));
  const Status ran = shop.stop();
  EXPECT_TRUE(ran) << ran.error().text;
  EXPECT_EQ(shop.effects(), each_order_once(0, count));
}

// What it has confirmed and not written is lost with it. Sent again, each has one effect.
TEST(MqttBroker, that_is_killed_under_load_doubles_nothing) {
  constexpr int count = 1000;
  LiveServer other("mosquitto");
  const Topic topic(1, other);
  QueueShop shop(topic.source(0, "&prefetch=50"));
  shop.start();
  std::thread producer([&] {
    const auto sink = topic.sink();
    for (int i = 0; i < count; i += 50) send_for_certain(*sink, orders(i, i + 50));
  });
  EXPECT_TRUE(shop.wait_for(200));
  other.kill();
  other.start();
  producer.join();
  send_for_certain(*topic.sink(), orders(0, count));
  EXPECT_TRUE(shop.wait_for(count));
  const Status ran = shop.stop();
  EXPECT_TRUE(ran) << ran.error().text;
  EXPECT_EQ(shop.effects(), each_order_once(0, count));
}

TEST(MqttSession, that_the_broker_has_forgotten_is_told_once) {
  LiveServer forgetful("mosquitto", {.settings = {"persistence=false"}});
  const Topic topic(1, forgetful);
  const auto source = topic.source();
  ASSERT_TRUE(source->poll(10, 50));
  ASSERT_TRUE(topic.sink()->append(0, {}, orders(0, 3)));
  forgetful.kill();
  forgetful.start();
  std::optional<Error> error = error_of(*source);
  while (error && error->tag == "away") error = error_of(*source);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->tag, "session_lost");
  EXPECT_EQ(error->remedy, Remedy::retry) << "the pipeline tells it and goes on";
  send_for_certain(*topic.sink(), orders(3, 5));
  EXPECT_EQ(ids_from(*source, 2), ids_of(each_order_once(3, 5)));
}

TEST(MqttSession, of_two_processes_with_one_name_one_ends) {
  for (const char* version : {"", "&version=3"}) {
    const Topic topic;
    const auto one = topic.source(0, version);
    const auto other = topic.source(0, version);
    ASSERT_TRUE(one->poll(10, 0));
    ASSERT_TRUE(other->poll(10, 0));
    std::optional<Error> error;
    const auto deadline = steady_clock::now() + patience;
    while (!error && steady_clock::now() < deadline)
      for (Source* const source : {one.get(), other.get()})
        if (const auto batch = source->poll(10, 20); !batch && !error) error = batch.error();
    ASSERT_TRUE(error);
    EXPECT_EQ(error->tag, "fenced") << error->text;
    EXPECT_EQ(error->remedy, Remedy::stop);
    EXPECT_NE(error->text.find("client="), std::string::npos) << error->text;
  }
}

TEST(MqttSession, a_pipeline_that_is_full_keeps_its_connection) {
  const Topic topic;
  ASSERT_TRUE(topic.sink()->append(0, {}, orders(0, 3)));
  const auto source = topic.source(0, "&keepalive=1");
  std::vector<Delivery> held;
  std::vector<Batch> batches;
  while (held.size() < 3) {
    batches.push_back(source->poll(10, 50).value());
    for (const Delivery& delivery : batches.back().deliveries) held.push_back(delivery);
  }
  const auto end = steady_clock::now() + std::chrono::milliseconds(3500);
  while (steady_clock::now() < end) {
    ASSERT_TRUE(source->poll(0, 0));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  ASSERT_TRUE(source->ack(held));
  ASSERT_TRUE(topic.content().empty()) << "the acks were of the session that is there";
}

// --- What travels

TEST(MqttTopics, of_a_filter_each_message_names_its_own) {
  const std::string url = server().url();
  const std::string source_url = url + "/sensors/+/temp?client=sensors&qos=2";
  subscribe_mqtt(source_url);
  send_mqtt(url + "/sensors/7/temp?qos=2&retain=yes", orders(0, 1));
  send_mqtt(url + "/sensors/8/temp?no_subscribers=accept", orders(1, 2));
  send_mqtt(url + "/sensors/8/wind?no_subscribers=accept", orders(2, 3));
  const auto topics_of = [](Source& source) {
    std::map<std::string, std::string> found;
    const auto deadline = steady_clock::now() + std::chrono::seconds(20);
    while (steady_clock::now() < deadline) {
      const Batch batch = source.poll(10, 50).value();
      if (batch.drained) break;
      for (const Delivery& delivery : batch.deliveries) {
        EXPECT_EQ(delivery.partition, "sensors/+/temp");
        std::string text(*delivery.header("mqtt-topic"));
        text += fmt::format(" {}", *delivery.header("mqtt-qos"));
        if (delivery.header("mqtt-retain") != nullptr) text += " retained";
        found[std::string(delivery.id)] = text;
      }
      EXPECT_TRUE(source.ack(batch.deliveries));
    }
    return found;
  };
  using Found = std::map<std::string, std::string>;
  EXPECT_EQ(topics_of(*mqtt_source(source_url).value()),
            (Found{{"order 0", "sensors/7/temp 2"}, {"order 1", "sensors/8/temp 1"}}));
  const auto late = mqtt_source(url + "/sensors/+/temp?client=late&qos=2").value();
  EXPECT_EQ(topics_of(*late), (Found{{"order 0", "sensors/7/temp 2 retained"}}));
}

TEST(MqttVersion3, carries_the_body_and_nothing_else) {
  const std::string url = server().url() + "/three/one";
  subscribe_mqtt(url + "?client=three&version=3");
  send_mqtt(url + "?version=3&id=body", orders(0, 2));
  const auto source = mqtt_source(url + "?client=three&version=3&headers=own").value();
  std::vector<std::string> bodies;
  const auto deadline = steady_clock::now() + patience;
  while (bodies.size() < 2 && steady_clock::now() < deadline) {
    const Batch batch = source->poll(10, 50).value();
    for (const Delivery& delivery : batch.deliveries) {
      EXPECT_TRUE(delivery.id.empty());
      EXPECT_GT(delivery.timestamp_ms, 0);
      bodies.emplace_back(delivery.body);
    }
    EXPECT_TRUE(source->ack(batch.deliveries));
  }
  EXPECT_EQ(bodies, (std::vector<std::string>{R"({"number": 0})", R"({"number": 1})"}));
  EXPECT_FALSE(source->traits().warnings.empty());
}

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::server());
}
