// SPDX-License-Identifier: Apache-2.0
// What goes wrong between us and RabbitMQ: connections that are cut at any byte, brokers that are
// killed, frozen, full or out of memory, queues that are gone, messages that nobody takes. Nothing
// is lost, and what comes twice has the same id.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <set>
#include <thread>

#include "model/message_view.h"
#include "streams/queue_shop.h"
#include "streams/rabbitmq_home.h"
#include "testing/chaos_proxy.h"
#include "testing/random.h"

namespace once::testing {
namespace {

using std::chrono::steady_clock;

constexpr auto patience = std::chrono::seconds(40);

std::set<std::string> ids(int from, int to) {
  std::set<std::string> wanted;
  for (const Message& message : orders(from, to)) wanted.insert(message.id);
  return wanted;
}

std::unique_ptr<Sink> sink_to(const std::string& url) {
  auto sink = rabbitmq_adapter().sink(url);
  EXPECT_TRUE(sink) << sink.error().text;
  return std::move(*sink);
}

std::unique_ptr<Source> source_of(const std::string& url) {
  auto source = rabbitmq_adapter().source(url);
  EXPECT_TRUE(source) << source.error().text;
  return std::move(*source);
}

// How often each id is in a queue; takes everything out of it.
std::map<std::string, int> all_in(const std::string& url) {
  const auto source = source_of(url + "&end=stop");
  std::map<std::string, int> counts;
  const auto deadline = steady_clock::now() + patience;
  while (steady_clock::now() < deadline) {
    const Batch batch = source->poll(1000, 50).value();
    if (batch.event == Batch::Event::end) return counts;
    for (const Delivery& delivery : batch.deliveries) ++counts[std::string(delivery.id)];
    EXPECT_TRUE(source->ack(batch.deliveries));
  }
  ADD_FAILURE() << "the queue does not end";
  return counts;
}

std::set<std::string> ids_of(const std::map<std::string, int>& counts) {
  std::set<std::string> found;
  for (const auto& [id, count] : counts) found.insert(id);
  return found;
}

int most_of(const std::map<std::string, int>& counts) {
  int most = 0;
  for (const auto& [id, count] : counts) most = std::max(most, count);
  return most;
}

void control(const std::string& arguments) {
  const std::string command = rabbitmq_server().path("ctl") + " " + arguments + " > /dev/null 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
}

// --- The sink

TEST(RabbitSink, a_message_that_no_queue_gets_is_named_and_the_others_arrive) {
  const std::string exchange = rabbitmq_server().url() + "?exchange=shop";
  const std::string queue = new_rabbitmq_queue("quorum", "&exchange=shop&routing_key=customer%203");
  const auto sink = sink_to(exchange);
  const auto receipt = sink->append(0, {}, orders(0, 7));
  ASSERT_TRUE(receipt) << receipt.error().text;
  ASSERT_EQ(receipt->refused.size(), 6u);
  std::set<std::string> refused;
  for (const Refusal& one : receipt->refused) {
    EXPECT_EQ(one.why.tag, "unroutable");
    EXPECT_EQ(one.why.remedy, Remedy::park);
    EXPECT_NE(one.why.text.find(orders(0, 7)[one.message].id), std::string::npos);
    refused.insert(orders(0, 7)[one.message].id);
  }
  EXPECT_FALSE(refused.contains("order 3"));
  EXPECT_EQ(all_in(queue), (std::map<std::string, int>{{"order 3", 1}}));
}

TEST(RabbitSink, a_queue_that_is_gone_takes_no_message_and_blames_none) {
  const std::string url = new_rabbitmq_queue("quorum");
  const auto sink = sink_to(url);
  ASSERT_TRUE(sink->append(0, {}, orders(0, 2)));
  ASSERT_TRUE(rabbitmq_adapter().topics->remove(url));
  const auto receipt = sink->append(0, {}, orders(2, 4));
  ASSERT_FALSE(receipt);
  EXPECT_EQ(receipt.error().remedy, Remedy::stop);
  EXPECT_EQ(receipt.error().tag, "missing");
  const auto opened = rabbitmq_adapter().sink(url);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().tag, "missing") << opened.error().text;
}

TEST(RabbitSink, a_message_that_the_broker_finds_too_large_is_named_and_the_others_arrive) {
  const std::string url = new_rabbitmq_queue("quorum");
  std::vector<Message> sent = orders(0, 6);
  sent[2].body->assign(3'000'000, 'x');
  sent[4].body->assign(3'000'001, 'x');
  sent[5].headers.push_back({"large", std::string(200'000, 'h')});
  {
    const auto sink = sink_to(url);
    const auto receipt = sink->append(0, {}, sent);
    ASSERT_TRUE(receipt) << receipt.error().text;
    ASSERT_EQ(receipt->refused.size(), 3u);
    EXPECT_EQ(receipt->refused[0].message, 2u);
    EXPECT_EQ(receipt->refused[1].message, 4u);
    EXPECT_EQ(receipt->refused[2].message, 5u);
    for (const Refusal& one : receipt->refused) EXPECT_EQ(one.why.tag, "too_large");
  }
  EXPECT_EQ(all_in(url),
            (std::map<std::string, int>{{"order 0", 1}, {"order 1", 1}, {"order 3", 1}}));
}

TEST(RabbitSink, a_full_queue_says_what_it_has_taken_and_takes_more_later) {
  const std::string url = new_rabbitmq_queue("classic", "&max_length=5&overflow=reject-publish");
  const auto sink = sink_to(url);
  ASSERT_TRUE(sink->append(0, {}, orders(0, 5)));
  const auto full = sink->append(0, {}, orders(5, 7));
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().remedy, Remedy::retry) << "nothing was appended";
  EXPECT_EQ(full.error().tag, "full");
  EXPECT_EQ(ids_of(all_in(url)), ids(0, 5));
  ASSERT_TRUE(sink->append(0, {}, orders(5, 7)));
  EXPECT_EQ(all_in(url), (std::map<std::string, int>{{"order 5", 1}, {"order 6", 1}}));
}

TEST(RabbitSink, a_broker_without_memory_takes_nothing_and_what_is_sent_later_is_there_once) {
  const std::string url = new_rabbitmq_queue("classic");
  const auto sink = sink_to(url);
  ASSERT_TRUE(sink->append(0, {}, orders(0, 1)));
  control("eval 'rabbit_alarm:set_alarm({{resource_limit, memory, node()}, []}).'");
  // The broker says so when it is sent the first message.
  Status told;
  int sent = 1;
  const auto deadline = steady_clock::now() + patience;
  while (told && steady_clock::now() < deadline) {
    const auto receipt = sink->append(0, {}, orders(sent, sent + 1));
    if (receipt)
      ++sent;
    else
      told = fail(receipt.error());
  }
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().tag, "blocked");
  EXPECT_NE(told.error().text.find("memory"), std::string::npos) << told.error().text;
  const auto again = sink->append(0, {}, orders(100, 101));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().remedy, Remedy::retry) << "nothing is sent while it is blocked";
  control("eval 'rabbit_alarm:clear_alarm({resource_limit, memory, node()}).'");
  send_for_certain(*sink, orders(sent, 20));
  const auto counts = all_in(url);
  EXPECT_EQ(ids_of(counts), ids(0, 20));
  EXPECT_LE(most_of(counts), 2);
}

// (a) Whether the broker has a message whose confirm was lost, nobody knows: it is sent again, and
// its id tells.
TEST(RabbitNetwork, a_confirm_that_is_lost_leaves_a_copy_of_the_same_id_and_one_effect) {
  const std::string url = new_rabbitmq_queue("quorum");
  ChaosProxy proxy(rabbitmq_server().port());
  const auto sink = sink_to(with_port(url, proxy.port()));
  proxy.arm({.match = R"("number": 4})", .client_bytes = std::nullopt, .answer_bytes = 0});
  const auto unknown = sink->append(0, {}, orders(0, 5));
  ASSERT_TRUE(proxy.fired());
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().remedy, Remedy::recheck);
  send_for_certain(*sink, orders(0, 5));
  QueueShop shop(source_of(url));
  shop.start();
  EXPECT_TRUE(shop.wait_for(5));
  EXPECT_TRUE(shop.stop());
  EXPECT_EQ(ids_of(shop.effects()), ids(0, 5));
  EXPECT_EQ(most_of(shop.effects()), 1);
}

// (d)
TEST(RabbitNetwork, publishes_that_are_cut_at_any_byte_lose_nothing) {
  const std::string url = new_rabbitmq_queue("quorum");
  ChaosProxy proxy(rabbitmq_server().port());
  const auto sink = sink_to(with_port(url, proxy.port()));
  Random random(3);
  constexpr int rounds = 40;
  for (int round = 0; round < rounds; ++round) {
    proxy.arm(
        {.match = fmt::format(R"("number": {})", round * 10 + static_cast<int>(random.below(10))),
         .client_bytes = random.below(400),
         .answer_bytes = random.below(30)});
    send_for_certain(*sink, orders(round * 10, round * 10 + 10));
  }
  const auto counts = all_in(url);
  EXPECT_EQ(ids_of(counts), ids(0, rounds * 10));
  QueueShop shop(source_of(url));
  send_for_certain(*sink, orders(0, rounds * 10));
  shop.start();
  EXPECT_TRUE(shop.wait_for(std::size_t{rounds} * 10));
  EXPECT_TRUE(shop.stop());
  EXPECT_EQ(most_of(shop.effects()), 1);
}

// --- The source

// (b) and (d): connections are cut while deliveries and acks are on their way.
TEST(RabbitNetwork, deliveries_and_acks_that_are_cut_have_one_effect_each) {
  constexpr int count = 3000;
  const std::string url = new_rabbitmq_queue("quorum");
  ASSERT_TRUE(sink_to(url)->append(0, {}, orders(0, count)));
  ChaosProxy proxy(rabbitmq_server().port());
  QueueShop shop(source_of(with_port(url, proxy.port()) + "&prefetch=100"));
  shop.start();
  Random random(5);
  const std::string ack("\x00\x3c\x00\x50", 4);  // basic.ack
  int cuts = 0;
  const auto deadline = steady_clock::now() + patience;
  while (shop.effects().size() < count && cuts < 25 && steady_clock::now() < deadline) {
    proxy.arm({.match = ack, .client_bytes = random.below(20), .answer_bytes = random.below(9000)});
    while (!proxy.fired() && shop.effects().size() < count && steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    cuts += proxy.fired() ? 1 : 0;
  }
  EXPECT_GT(cuts, 5);
  EXPECT_TRUE(shop.wait_for(count));
  const Status ran = shop.stop();
  EXPECT_TRUE(ran) << ran.error().text;
  EXPECT_EQ(ids_of(shop.effects()), ids(0, count));
  EXPECT_EQ(most_of(shop.effects()), 1);
}

// (c)
TEST(RabbitBroker, that_is_killed_under_load_loses_and_doubles_nothing) {
  constexpr int count = 2000;
  // RabbitMQ 3.10 finds no leader for a quorum queue that is killed within a second of its birth.
  const std::string url = new_rabbitmq_queue("classic");
  // RabbitMQ has confirmed the queue, and writes it to its file up to two seconds later.
  std::this_thread::sleep_for(std::chrono::seconds(3));
  QueueShop shop(source_of(url + "&prefetch=50"));
  shop.start();
  const auto sink = sink_to(url);
  std::thread producer([&] {
    for (int i = 0; i < count; i += 50) send_for_certain(*sink, orders(i, i + 50));
  });
  EXPECT_TRUE(shop.wait_for(200));
  rabbitmq_server().kill();
  rabbitmq_server().start();
  producer.join();
  EXPECT_TRUE(shop.wait_for(count));
  const Status ran = shop.stop();
  EXPECT_TRUE(ran) << ran.error().text;
  EXPECT_EQ(ids_of(shop.effects()), ids(0, count));
  EXPECT_EQ(most_of(shop.effects()), 1);
}

TEST(RabbitSource, a_queue_that_is_deleted_under_its_consumer_is_missing) {
  const std::string url = new_rabbitmq_queue("classic");
  const auto source = source_of(url);
  ASSERT_TRUE(source->poll(10, 0));
  ASSERT_TRUE(rabbitmq_adapter().topics->remove(url));
  Result<Batch> batch = source->poll(10, 50);
  for (int i = 0; i < 20 && batch; ++i) batch = source->poll(10, 50);
  ASSERT_FALSE(batch);
  EXPECT_EQ(batch.error().remedy, Remedy::stop);
  EXPECT_EQ(batch.error().tag, "missing") << batch.error().text;
}

// Otherwise its messages would be passed over without a word.
TEST(RabbitSource, a_stream_is_refused_by_name) {
  const std::string url = new_rabbitmq_queue("stream");
  ASSERT_TRUE(sink_to(url)->append(0, {}, orders(0, 3)));
  const auto source = rabbitmq_adapter().source(url + "&end=stop");
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().remedy, Remedy::stop);
  EXPECT_EQ(source.error().tag, "config");
  EXPECT_NE(source.error().text.find("is a stream"), std::string::npos) << source.error().text;
}

TEST(RabbitSource, a_pipeline_that_is_full_keeps_its_connection) {
  const std::string url = new_rabbitmq_queue("classic");
  ASSERT_TRUE(sink_to(url)->append(0, {}, orders(0, 3)));
  const auto source = source_of(url + "&heartbeat=1");
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
  EXPECT_TRUE(all_in(url).empty()) << "the acks were of the session that is there";
}

TEST(RabbitSource, a_broker_that_hangs_is_away_and_comes_back) {
  const std::string url = new_rabbitmq_queue("classic");
  ASSERT_TRUE(sink_to(url)->append(0, {}, orders(0, 3)));
  ChaosProxy proxy(rabbitmq_server().port());
  const auto source =
      source_of(with_port(url, proxy.port()) + "&heartbeat=1&connection_timeout=300");
  ASSERT_TRUE(source->poll(10, 0));
  proxy.stall(true);
  Result<Batch> batch = Batch{};
  const auto deadline = steady_clock::now() + patience;
  while (batch && steady_clock::now() < deadline) batch = source->poll(10, 50);
  ASSERT_FALSE(batch);
  EXPECT_EQ(batch.error().remedy, Remedy::retry);
  EXPECT_EQ(batch.error().tag, "away") << batch.error().text;
  proxy.stall(false);
  proxy.cut_all();
  std::set<std::string> found;
  while (found.size() < 3 && steady_clock::now() < deadline) {
    batch = source->poll(10, 50);
    if (!batch) continue;
    for (const Delivery& delivery : batch->deliveries) found.emplace(delivery.id);
  }
  EXPECT_EQ(found, ids(0, 3));
}

TEST(RabbitSource, that_is_left_ends_its_wait_and_gives_back_what_it_had) {
  const std::string url = new_rabbitmq_queue("classic");
  ASSERT_TRUE(sink_to(url)->append(0, {}, orders(0, 3)));
  const auto source = source_of(url);
  std::size_t taken = 0;
  while (taken < 3) taken += source->poll(10, 50)->deliveries.size();
  std::thread leaver([&] { source->leave(); });
  leaver.join();
  EXPECT_EQ(ids_of(all_in(url)), ids(0, 3));
}

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::rabbitmq_server());
}
