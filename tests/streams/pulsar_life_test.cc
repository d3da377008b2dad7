// SPDX-License-Identifier: Apache-2.0
// What only Pulsar has, what goes wrong with it, and networks and brokers that break. All that is
// said through the URLs with `listener=outside` goes through a proxy.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <once/once.h>

#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "streams/pulsar_broker.h"
#include "testing/chaos_proxy.h"
#include "testing/free_port.h"
#include "wire/pulsar/adapter.h"
#include "wire/pulsar/client.h"
#include "wire/pulsar/protobuf.h"

namespace once::testing {
namespace {

using std::chrono::milliseconds, std::chrono::seconds, std::chrono::steady_clock;

// The broker of this program and the proxy before it.
struct World {
  std::uint16_t port = free_port();
  ChaosProxy proxy{port};
  LiveServer broker{"pulsar",
                    {.settings = {fmt::format("advertisedListeners=internal:pulsar://127.0.0.1:{},"
                                              "outside:pulsar://127.0.0.1:{}",
                                              port, proxy.port()),
                                  "internalListenerName=internal"},
                     .port = port}};
};

World& world() {
  static World one;
  return one;
}

std::string topic(std::uint32_t partitions = 1) {
  static std::atomic<int> count{0};
  return pulsar_topic_at(world().broker, fmt::format("life{}", ++count), partitions);
}

// The same topic through the proxy.
std::string through_proxy(const std::string& url) {
  const std::string direct = fmt::format(":{}/", world().port);
  std::string other = url;
  other.replace(other.find(direct), direct.size(), fmt::format(":{}/", world().proxy.port()));
  return other + "&listener=outside";
}

std::vector<Message> orders(int from, int to) {
  std::vector<Message> made;
  for (int i = from; i < to; ++i)
    made.push_back({.id = fmt::format("order {}", i), .key = fmt::format("customer {}", i % 7)});
  return made;
}

void send(const std::string& url, int from, int to, const std::string& name = "shop") {
  auto sink = open_pulsar_sink(url).value();
  const Stamp stamp = sink->producers()->enter(0, name).value();
  const auto sent = sink->append(0, stamp, orders(from, to));
  ASSERT_TRUE(sent) << sent.error().text;
}

struct Read {
  std::vector<std::string> ids;
  std::vector<std::int64_t> offsets;
};

Read all(const std::string& url, std::int64_t from = -1) {
  auto source = open_pulsar_source(url + "&end=stop").value();
  Read read;
  const auto deadline = steady_clock::now() + seconds(30);
  while (steady_clock::now() < deadline) {
    const auto batch = source->poll(100, 50);
    if (!batch) {
      ADD_FAILURE() << batch.error().text;
      return read;
    }
    if (batch->event == Batch::Event::end) return read;
    if (batch->event == Batch::Event::assigned) {
      const Status sought = source->replay()->seek(batch->partition, from);
      EXPECT_TRUE(sought) << sought.error().text;
    }
    for (const Delivery& delivery : batch->deliveries) {
      read.ids.emplace_back(delivery.id);
      read.offsets.push_back(delivery.offset);
    }
  }
  ADD_FAILURE() << "the topic does not end";
  return read;
}

std::vector<std::string> ids(int from, int to) {
  std::vector<std::string> wanted;
  for (const Message& message : orders(from, to)) wanted.push_back(message.id);
  return wanted;
}

// --- Errors

TEST(PulsarErrors, a_topic_that_is_missing_is_named_and_not_made) {
  const std::string url = pulsar_url(world().broker, "nowhere");
  for (const std::string more : {"", "&subscription=s", "&subscription=s&type=shared"}) {
    const auto source = open_pulsar_source(url + more);
    ASSERT_FALSE(source);
    EXPECT_EQ(source.error().tag, "missing") << source.error().text;
    EXPECT_NE(source.error().text.find("public/default/nowhere"), std::string::npos);
  }
  EXPECT_EQ(open_pulsar_sink(url).error().tag, "missing");
  EXPECT_EQ(pulsar::adapter().topics->describe(url).error().tag, "missing");
  const auto topics = pulsar::adapter().topics->list(pulsar_url(world().broker, "")).value();
  for (const TopicReport& report : topics) EXPECT_NE(report.name, "nowhere");
}

TEST(PulsarErrors, a_broker_that_is_away_or_is_something_else_is_named) {
  const auto away = open_pulsar_source("pulsar://127.0.0.1:1/t");
  ASSERT_FALSE(away);
  EXPECT_EQ(away.error().remedy, Remedy::retry);
  EXPECT_NE(away.error().text.find("Connection refused"), std::string::npos) << away.error().text;
  const std::string url = world().broker.url();
  const std::string web = url.substr(url.rfind(':') + 1);
  const auto other = open_pulsar_sink(fmt::format("pulsar://127.0.0.1:{}/t", web));
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().text.find("127.0.0.1:" + web), std::string::npos) << other.error().text;
}

TEST(PulsarErrors, a_message_that_is_too_large_is_parked_and_nothing_is_there) {
  const std::string url = topic();
  auto sink = open_pulsar_sink(url).value();
  const Stamp stamp = sink->producers()->enter(0, "shop").value();
  std::vector<Message> messages = orders(0, 3);
  messages[1].body = std::string(sink->traits().message_bytes_max + 1, 'x');
  const auto refused = sink->append(0, stamp, messages);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().remedy, Remedy::park);
  EXPECT_EQ(refused.error().tag, "too_large");
  EXPECT_TRUE(all(url).ids.empty());
  // The largest that fits goes through.
  messages[1].body->resize(sink->traits().message_bytes_max - 1024);
  const auto sent = sink->append(0, stamp, messages);
  ASSERT_TRUE(sent) << sent.error().text;
  EXPECT_EQ(all(url).ids, ids(0, 3));
}

TEST(PulsarErrors, topics_are_made_by_the_admin_api_and_are_what_was_asked_for) {
  const Topics& topics = *pulsar::adapter().topics;
  const std::string url = topic(3);
  EXPECT_TRUE(topics.create(url, {.partitions = 3})) << "again";
  EXPECT_EQ(topics.create(url, {.partitions = 4}).error().tag, "exists");
  EXPECT_EQ(topics.create(url, {.partitions = 3, .retention_ms = 1}).error().tag, "config");
  const auto without = topics.create(url.substr(0, url.find('?')) + "x", {});
  ASSERT_FALSE(without);
  EXPECT_NE(without.error().text.find("add web=PORT"), std::string::npos);
  EXPECT_EQ(topics.describe(url)->partitions.size(), 3u);
  EXPECT_TRUE(topics.remove(url));
  EXPECT_TRUE(topics.remove(url)) << "again";
  EXPECT_EQ(topics.describe(url).error().tag, "missing");
}

TEST(PulsarErrors, where_deduplication_is_off_the_first_message_finds_out) {
  pulsar_admin(world().broker, "PUT", "namespaces/public/careless", "{}");
  pulsar_admin(world().broker, "POST", "namespaces/public/careless/deduplication", "false");
  const std::string url = pulsar_topic_at(world().broker, "public/careless/orders");
  auto sink = open_pulsar_sink(url).value();
  const Stamp stamp = sink->producers()->enter(0, "shop").value();
  const auto sent = sink->append(0, stamp, orders(0, 2));
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().tag, "config");
  EXPECT_NE(sent.error().text.find("deduplication is off"), std::string::npos) << sent.error().text;
}

// --- Positions

TEST(PulsarSource, a_topic_that_was_made_anew_is_not_taken_for_the_old_one) {
  const std::string url = topic();
  send(url, 0, 5);
  const std::int64_t last = all(url).offsets.at(3);
  ASSERT_TRUE(pulsar::adapter().topics->remove(url));
  ASSERT_TRUE(pulsar::adapter().topics->create(url, {}));
  send(url, 10, 20);
  auto source = open_pulsar_source(url).value();
  const Batch news = source->poll(10, 1000).value();
  ASSERT_EQ(news.event, Batch::Event::assigned);
  for (const std::int64_t offset : {last, last + 1}) {
    const Status gone = source->replay()->seek(news.partition, offset);
    ASSERT_FALSE(gone);
    EXPECT_EQ(gone.error().tag, "gone") << gone.error().text;
  }
}

TEST(PulsarSource, a_sink_notices_that_its_topic_was_made_anew) {
  const std::string url = topic();
  auto sink = open_pulsar_sink(url).value();
  const Stamp stamp = sink->producers()->enter(0, "shop").value();
  ASSERT_TRUE(sink->append(0, stamp, orders(0, 3)));
  ASSERT_TRUE(pulsar::adapter().topics->remove(url));
  ASSERT_TRUE(pulsar::adapter().topics->create(url, {}));
  const auto sent = sink->append(0, {stamp.producer, stamp.epoch, 3}, orders(3, 5));
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().tag, "gone") << sent.error().text;
  EXPECT_TRUE(all(url).ids.empty());
}

// A member of a subscription, as a pipeline would drive it; the positions are those of the store.
struct Member {
  explicit Member(const std::string& url) : source(open_pulsar_source(url).value()) {}

  void step(std::map<std::string, std::int64_t>& positions) {
    const auto batch = source->poll(100, 20);
    ASSERT_TRUE(batch) << batch.error().text;
    const std::string name(batch->partition);
    if (batch->event == Batch::Event::assigned) {
      owned.insert(name);
      const auto known = positions.find(name);
      const Status sought =
          source->replay()->seek(name, known == positions.end() ? -1 : known->second);
      ASSERT_TRUE(sought) << sought.error().text;
    }
    if (batch->event == Batch::Event::revoked) owned.erase(name);
    for (const Delivery& delivery : batch->deliveries) {
      EXPECT_TRUE(owned.contains(name));
      read.emplace_back(delivery.id);
      positions[name] = delivery.offset + 1;
    }
    if (!batch->deliveries.empty()) {
      ASSERT_TRUE(source->ack(batch->deliveries));
    }
  }

  std::unique_ptr<Source> source;
  std::set<std::string> owned;
  std::vector<std::string> read;
};

TEST(PulsarSource, members_of_a_failover_subscription_take_over_where_the_store_is) {
  const std::string url = topic(4) + "&subscription=points";
  const std::string plain = url.substr(0, url.find("&subscription"));
  auto sink = open_pulsar_sink(plain).value();
  std::map<std::uint32_t, Stamp> stamps;
  const auto send_all = [&](int from, int to) {
    for (std::uint32_t p = 0; p < 4; ++p) {
      if (!stamps.contains(p)) stamps[p] = sink->producers()->enter(p, "shop").value();
      const int base = static_cast<int>(p) * 1000;
      ASSERT_TRUE(sink->append(p, stamps[p], orders(base + from, base + to)));
      stamps[p].sequence += static_cast<std::uint64_t>(to - from);
    }
  };
  std::map<std::string, std::int64_t> positions;
  const auto drive = [&](std::vector<Member*> members, const auto& done) {
    const auto deadline = steady_clock::now() + seconds(20);
    while (!done() && steady_clock::now() < deadline)
      for (Member* member : members) member->step(positions);
    return done();
  };
  std::multiset<std::string> read;
  const auto note = [&](const Member& member) {
    read.insert(member.read.begin(), member.read.end());
  };
  auto first = std::make_unique<Member>(url);
  send_all(0, 10);
  ASSERT_TRUE(drive({first.get()}, [&] { return first->read.size() == 40; }));
  Member second(url);
  ASSERT_TRUE(drive({first.get(), &second}, [&] {
    return first->owned.size() + second.owned.size() == 4 && !second.owned.empty();
  }));
  send_all(10, 20);
  ASSERT_TRUE(
      drive({first.get(), &second}, [&] { return first->read.size() + second.read.size() == 80; }));
  note(*first);
  first.reset();
  send_all(20, 21);
  ASSERT_TRUE(drive({&second}, [&] { return second.owned.size() == 4; }));
  ASSERT_TRUE(drive({&second}, [&] { return read.size() + second.read.size() == 84; }));
  note(second);
  std::multiset<std::string> wanted;
  for (int p = 0; p < 4; ++p)
    for (const std::string& id : ids(p * 1000, p * 1000 + 21)) wanted.insert(id);
  EXPECT_EQ(read, wanted);
}

// --- Batches of other clients

// One entry with so many messages, as a client of Java sends it.
void send_batch(const std::string& url, int from, int to) {
  using pulsar::ProtoWriter;
  const auto address = pulsar::Address::parse(url, pulsar::Role::sink).value();
  pulsar::Client client(address);
  const auto connection = client.connection_for(address.full_topic()).value();
  const std::uint64_t request = connection->next_number();
  ASSERT_TRUE(connection->ask(pulsar::producer_frame(request, address.full_topic(), 1, "java"),
                              request, "enter"));
  std::string payload;
  for (int i = from; i < to; ++i) {
    ProtoWriter pair;
    pair.bytes(1, "once-id").bytes(2, fmt::format("order {}", i));
    ProtoWriter metadata;
    metadata.message(1, pair).number(3, 4);
    payload += std::string(3, '\0') + static_cast<char>(metadata.text().size());
    payload += metadata.text() + "body";
  }
  ProtoWriter metadata;
  metadata.bytes(1, "java").number(2, 1).number(3, 1'800'000'000'000);
  metadata.number(11, static_cast<std::uint64_t>(to - from));
  bool is_there = false;
  connection->listen_to_producer(1, [&](pulsar::Command& command, std::string&&) -> Status {
    is_there = command.type == pulsar::Type::send_receipt;
    return {};
  });
  ASSERT_TRUE(connection->send(pulsar::send_frame({1, 1, metadata.text(), payload})));
  while (!is_there) ASSERT_TRUE(connection->serve(net::in_ms(5000)));
}

Batch take(Source& source, std::size_t count) {
  const auto deadline = steady_clock::now() + seconds(20);
  while (steady_clock::now() < deadline) {
    Batch batch = source.poll(count, 50).value();
    if (!batch.deliveries.empty()) return batch;
  }
  ADD_FAILURE() << "nothing comes";
  return {};
}

std::vector<std::string> ids_of(const Batch& batch) {
  std::vector<std::string> found;
  for (const Delivery& delivery : batch.deliveries) found.emplace_back(delivery.id);
  return found;
}

TEST(PulsarBatches, of_a_batch_each_message_has_an_offset_and_reading_begins_in_its_middle) {
  const std::string url = topic();
  send_batch(url, 0, 5);
  const Read read = all(url);
  EXPECT_EQ(read.ids, ids(0, 5));
  ASSERT_EQ(read.offsets.size(), 5u);
  for (std::size_t i = 1; i < 5; ++i) EXPECT_EQ(read.offsets[i], read.offsets[i - 1] + 1);
  EXPECT_EQ(all(url, read.offsets[2] + 1).ids, ids(3, 5));
}

TEST(PulsarBatches, of_a_shared_subscription_are_acknowledged_message_by_message) {
  const std::string url = topic() + "&subscription=jobs&type=shared";
  auto source = open_pulsar_source(url).value();
  (void)source->poll(0, 100);  // there is a subscription now
  send_batch(url.substr(0, url.find("&subscription")), 0, 5);
  Batch batch = take(*source, 5);
  ASSERT_EQ(ids_of(batch), ids(0, 5));
  const std::span<const Delivery> all_five(batch.deliveries);
  ASSERT_TRUE(source->ack(all_five.subspan(1, 2)));
  ASSERT_TRUE(source->release(all_five.subspan(4)));
  ASSERT_TRUE(source->ack(all_five.first(1)));
  // The rest is still out: the batch comes again when that is settled, too.
  EXPECT_TRUE(source->poll(5, 200)->deliveries.empty());
  ASSERT_TRUE(source->release(all_five.subspan(3, 1)));
  batch = take(*source, 5);
  EXPECT_EQ(ids_of(batch), ids(3, 5));
  EXPECT_EQ(batch.deliveries[0].attempt, 2u);
  // Another consumer gets what is left, and nothing else.
  ASSERT_TRUE(source->ack(std::span(batch.deliveries).first(1)));
  source.reset();
  source = open_pulsar_source(url).value();
  batch = take(*source, 5);
  EXPECT_EQ(ids_of(batch), ids(4, 5));
  ASSERT_TRUE(source->ack(batch.deliveries));
  source.reset();
  source = open_pulsar_source(url).value();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(source->poll(5, 50)->deliveries.empty());
}

// --- What breaks

// Cuts all connections through the proxy again and again.
class Breaker {
 public:
  Breaker()
      : thread_([this] {
          for (int i = 0; !done_; ++i) {
            std::this_thread::sleep_for(milliseconds(40 + i * 61 % 190));
            world().proxy.cut_all();
          }
        }) {}
  ~Breaker() {
    done_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> done_{false};
  std::thread thread_;
};

// Sends until it is there, as a relay does it.
void send_surely(Sink& sink, const Stamp& stamp, const std::vector<Message>& messages) {
  const auto deadline = steady_clock::now() + seconds(40);
  while (true) {
    const auto sent = sink.append(0, stamp, messages);
    if (sent) return;
    ASSERT_TRUE(is_transient(sent.error().remedy)) << sent.error().text;
    ASSERT_LT(steady_clock::now(), deadline) << sent.error().text;
    std::this_thread::sleep_for(milliseconds(20));
  }
}

TEST(PulsarNetwork, H12_a_sink_whose_connections_break_appends_everything_once_and_in_order) {
  const std::string url = topic();
  auto sink = open_pulsar_sink(through_proxy(url)).value();
  Stamp stamp = sink->producers()->enter(0, "shop").value();
  {
    const Breaker breaker;
    for (int i = 0; i < 100; ++i) {
      send_surely(*sink, stamp, orders(i * 20, i * 20 + 20));
      stamp.sequence += 20;
    }
  }
  EXPECT_EQ(all(url).ids, ids(0, 2000));
}

TEST(PulsarNetwork, a_lost_answer_is_not_a_lost_message_and_not_a_second_one) {
  const std::string url = topic();
  auto sink = open_pulsar_sink(through_proxy(url)).value();
  Stamp stamp = sink->producers()->enter(0, "shop").value();
  send_surely(*sink, stamp, orders(0, 5));
  for (const std::size_t bytes : {0u, 1u, 9u, 40u}) {
    stamp.sequence += 5;
    const int from = static_cast<int>(stamp.sequence);
    // The broker gets the first message and perhaps more, and its answer is cut.
    world().proxy.arm({.match = fmt::format("order {}", from),
                       .client_bytes = std::nullopt,
                       .answer_bytes = bytes});
    const auto lost = sink->append(0, stamp, orders(from, from + 5));
    EXPECT_TRUE(world().proxy.fired());
    if (!lost) {
      EXPECT_EQ(lost.error().remedy, Remedy::recheck) << lost.error().text;
    }
    send_surely(*sink, stamp, orders(from, from + 5));
  }
  EXPECT_EQ(all(url).ids, ids(0, 25));
}

TEST(PulsarNetwork, an_ordered_source_whose_connections_break_reads_everything_once_and_in_order) {
  const std::string url = topic();
  send(url, 0, 3000);
  auto source = open_pulsar_source(through_proxy(url)).value();
  std::vector<std::string> read;
  const Breaker breaker;
  const auto deadline = steady_clock::now() + seconds(40);
  while (read.size() < 3000 && steady_clock::now() < deadline) {
    const auto batch = source->poll(50, 20);
    if (!batch) {
      ASSERT_TRUE(is_transient(batch.error().remedy)) << batch.error().text;
      continue;
    }
    if (batch->event == Batch::Event::assigned)
      while (!source->replay()->seek(batch->partition, -1)) {
      }
    for (const Delivery& delivery : batch->deliveries) read.emplace_back(delivery.id);
    std::this_thread::sleep_for(milliseconds(5));
  }
  EXPECT_EQ(read, ids(0, 3000));
}

TEST(PulsarNetwork, of_a_queue_whose_connections_break_nothing_is_lost_and_acks_hold) {
  const std::string url = topic();
  send(url, 0, 1000);
  auto source = open_pulsar_source(through_proxy(url) + "&subscription=jobs&type=shared").value();
  std::set<std::string> seen;
  std::set<std::string> confirmed;
  int in_vain = 0;
  const auto step = [&] {
    const auto batch = source->poll(50, 20);
    if (!batch) {
      ASSERT_TRUE(is_transient(batch.error().remedy)) << batch.error().text;
      return;
    }
    in_vain = batch->deliveries.empty() ? in_vain + 1 : 0;
    for (const Delivery& delivery : batch->deliveries) {
      ASSERT_FALSE(confirmed.contains(std::string(delivery.id))) << delivery.id << " came again";
      seen.emplace(delivery.id);
    }
    std::this_thread::sleep_for(milliseconds(3));
    // An ack without an answer may have arrived or not: then its messages come again.
    if (!batch->deliveries.empty() && source->ack(batch->deliveries))
      for (const Delivery& delivery : batch->deliveries) confirmed.emplace(delivery.id);
  };
  const auto deadline = steady_clock::now() + seconds(40);
  {
    const Breaker breaker;
    while (seen.size() < 1000 && steady_clock::now() < deadline) step();
  }
  EXPECT_EQ(seen.size(), 1000u);
  for (in_vain = 0; in_vain < 40 && steady_clock::now() < deadline;) step();
  source.reset();
  source = open_pulsar_source(url + "&subscription=jobs&type=shared").value();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(source->poll(50, 50)->deliveries.empty());
}

TEST(PulsarNetwork, a_broker_that_is_killed_forgets_no_confirmed_message_and_takes_none_twice) {
  const std::string url = topic();
  auto sink = open_pulsar_sink(url).value();
  Stamp stamp = sink->producers()->enter(0, "shop").value();
  std::atomic<bool> done{false};
  std::thread sender([&] {
    for (int i = 0; i < 200 && !::testing::Test::HasFatalFailure(); ++i) {
      send_surely(*sink, stamp, orders(i * 10, i * 10 + 10));
      stamp.sequence += 10;
    }
    done = true;
  });
  std::this_thread::sleep_for(milliseconds(300));
  world().broker.kill();
  world().broker.start();
  sender.join();
  EXPECT_TRUE(done);
  EXPECT_EQ(all(url).ids, ids(0, 2000));
  // A process that starts anew knows where it was.
  auto next = open_pulsar_sink(url).value();
  EXPECT_EQ(next->producers()->enter(0, "shop")->sequence, 2000u);
  EXPECT_EQ(next->append(0, {stamp.producer, next->producers()->enter(0, "shop")->epoch, 1990},
                         orders(1990, 2001))
                ->duplicates,
            10u);
  EXPECT_EQ(all(url).ids, ids(0, 2001));
}

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::world().broker);
}
