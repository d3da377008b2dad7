// SPDX-License-Identifier: Apache-2.0
// The binary with a real Kafka: topics, bridges that are killed, and who may connect.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>
#include <once/clock.h>
#include <signal.h>
#include <sqlite3.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cli/program.h"
#include "streams/kafka_cluster.h"
#include "testing/live_server.h"
#include "testing/scratch.h"

namespace once::testing {
namespace {

LiveServer& server() {
  static LiveServer kafka("kafka");
  return kafka;
}

std::string hosts() { return fmt::format("127.0.0.1:{}", server().port()); }

// Orders as `once produce --json` reads them. They are recent: Kafka deletes what is older than the
// retention of its topic.
std::string orders(int from, int to) {
  static const std::int64_t first_ms = system_clock().now_ms() - 3'600'000;
  std::string lines;
  for (int i = from; i < to; ++i)
    lines += Json{{"id", fmt::format("order {}", i)},
                  {"key", fmt::format("customer {}", i % 13)},
                  {"headers", {{"n", fmt::format("{}", i)}}},
                  {"timestamp_ms", first_ms + i},
                  {"body", fmt::format(R"({{"order":{}}})", i)}}
                 .dump() +
             "\n";
  return lines;
}

void send(const std::string& url, int from, int to) {
  const Answer sent = run_once({"produce", url, "--json"}, orders(from, to));
  ASSERT_EQ(sent.exit_code, 0) << sent.err;
}

// --- Topics

TEST(KafkaTopic, is_shown_with_what_kafka_tells_and_nothing_else) {
  const std::string url = server().url() + "/shown";
  const Answer created = run_once({"topic", "create", url, "--partitions", "2", "-o", "json"});
  ASSERT_EQ(created.exit_code, 0) << created.err;
  const Json topic = created.json();
  EXPECT_EQ(topic["topic"], "shown");
  EXPECT_EQ(topic["messages_at_most"], 0);
  EXPECT_EQ(topic["segment_bytes"], 1 << 30) << "Kafka's default, not ours";
  EXPECT_EQ(topic["retention_ms"], 7 * 24 * 3'600'000);
  EXPECT_EQ(topic["retention_bytes"], -1);
  EXPECT_EQ(topic["settings"]["cleanup.policy"], "delete");
  EXPECT_EQ(topic["settings"]["min.insync.replicas"], "1");
  for (const char* unknown : {"messages", "bytes", "gaps"}) EXPECT_FALSE(topic.contains(unknown));
  EXPECT_EQ(topic["partitions"].size(), 2u);
  const std::string text = run_once({"topic", "show", url}).out;
  EXPECT_EQ(text.find("topic shown: segments of 1,073,741,824 bytes, messages kept 604,800,000 ms"),
            0u)
      << text;
  EXPECT_NE(text.find("messages at most"), std::string::npos) << text;
  EXPECT_EQ(text.find("gaps"), std::string::npos) << text;
}

// The ends of transactions have offsets too, when Kafka has written them.
TEST(KafkaTopic, has_at_most_as_many_messages_as_offsets) {
  const std::string url = server().url() + "/counted";
  ASSERT_EQ(run_once({"topic", "create", url}).exit_code, 0);
  send(url, 0, 10);
  const Json topic = run_once({"topic", "show", url, "-o", "json"}).json();
  EXPECT_GE(topic["messages_at_most"], 10);
  EXPECT_EQ(topic["partitions"][0]["messages_at_most"], topic["messages_at_most"]);
  EXPECT_EQ(run_once({"consume", url}).lines().size(), 10u);
}

TEST(KafkaTopic, is_created_with_what_is_asked_for_and_only_once) {
  const std::string url = server().url() + "/asked";
  const std::vector<std::string> words{"topic",          "create",  url,
                                       "--retention-ms", "3600000", "--segment-bytes",
                                       "1048576",        "-o",      "json"};
  const Answer first = run_once(words);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.json()["retention_ms"], 3'600'000);
  EXPECT_EQ(first.json()["segment_bytes"], 1 << 20);
  EXPECT_EQ(run_once(words).out, first.out);
  EXPECT_EQ(run_once({"topic", "create", url}).exit_code, 0) << "nothing else was asked for";
  for (const std::vector<std::string>& other :
       {std::vector<std::string>{"--retention-ms", "-1"}, {"--partitions", "2"}}) {
    std::vector<std::string> more{"topic", "create", url, "-o", "json"};
    more.insert(more.end(), other.begin(), other.end());
    const Answer refused = run_once(more);
    EXPECT_EQ(refused.exit_code, 3) << refused.out;
    EXPECT_EQ(refused.error()["tag"], "exists") << refused.err;
  }
  EXPECT_EQ(run_once({"topic", "create", url, "--gaps", "hold"}).exit_code, 3);
  const Json listed = run_once({"topic", "ls", server().url(), "-o", "json"}).json();
  EXPECT_TRUE(std::any_of(listed.begin(), listed.end(),
                          [](const Json& topic) { return topic["topic"] == "asked"; }));
  EXPECT_EQ(run_once({"topic", "delete", url}).exit_code, 0);
  EXPECT_EQ(run_once({"topic", "delete", url}).exit_code, 0);
}

// A process that is stopped, as a paused machine is, keeps its connections and sees no error.
TEST(KafkaFollow, a_topic_that_was_created_again_while_the_reader_was_stopped_is_gone) {
  const std::string url = server().url() + "/replaced";
  ASSERT_EQ(run_once({"topic", "create", url}).exit_code, 0);
  send(url, 0, 10);
  Program reader({"consume", url, "--follow", "--json", "-o", "json"});
  const std::string last = Json{{"body", R"({"order":9})"}, {"encoding", "text"}}.dump().substr(1);
  reader.read_until(last + "\n");
  ASSERT_EQ(::kill(reader.pid(), SIGSTOP), 0);
  ASSERT_EQ(run_once({"topic", "delete", url}).exit_code, 0);
  ASSERT_EQ(run_once({"topic", "create", url}).exit_code, 0);
  send(url, 100, 130);
  std::this_thread::sleep_for(std::chrono::milliseconds(1'100));
  ASSERT_EQ(::kill(reader.pid(), SIGCONT), 0);
  const Answer ended = reader.wait();
  EXPECT_EQ(ended.exit_code, 3) << ended.err;
  EXPECT_EQ(ended.error()["tag"], "gone") << ended.err;
  EXPECT_EQ(ended.lines().size(), 10u) << ended.out;
}

TEST(KafkaTopic, that_is_compacted_is_warned_of_where_it_is_read) {
  create_kafka_topic(hosts(), "compacted", 1, {{"cleanup.policy", "compact"}});
  const std::string url = server().url() + "/compacted";
  const Json topic = run_once({"topic", "show", url, "-o", "json"}).json();
  EXPECT_EQ(topic["settings"]["cleanup.policy"], "compact");
  EXPECT_FALSE(topic.contains("retention_ms")) << "nothing is removed for its age";
  const Scratch scratch;
  const std::string to = "file:" + scratch.path("to");
  ASSERT_EQ(run_once({"topic", "create", to}).exit_code, 0);
  const std::string state = "sqlite:" + scratch.path("state.db");
  const Answer bridged = run_once({"bridge", url, to, "--state", state});
  EXPECT_EQ(bridged.exit_code, 0) << bridged.err;
  EXPECT_NE(bridged.err.find("compacted is compacted"), std::string::npos) << bridged.err;
}

// --- Looking

// A member of a group works, and others look at the topic with the URL of its pipeline: it keeps
// its partitions, and they see all of them.
TEST(KafkaLooking, leaves_the_group_of_a_url_alone) {
  const std::string topic = server().url() + "/looked_at";
  create_kafka_topic(hosts(), "looked_at", 2);
  send(topic, 0, 20);
  const std::string member = topic + "?group=workers";
  const Scratch scratch;
  const std::string to = "file:" + scratch.path("to");
  ASSERT_EQ(run_once({"topic", "create", to}).exit_code, 0);
  const std::string state = "sqlite:" + scratch.path("state.db");
  Program worker({"bridge", member, to, "--state", state, "--follow"});
  const auto copied = [&](std::size_t count) {
    for (int i = 0; i < 200; ++i) {
      if (run_once({"consume", to}).lines().size() == count) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return false;
  };
  ASSERT_TRUE(copied(20));
  const auto fences = [&] {
    const Json positions = run_once({"position", "ls", "--store", state, "-o", "json"}).json();
    Json found = Json::array();
    for (const Json& one : positions) found.push_back(one["fence"]);
    return found;
  };
  const Json before = fences();
  ASSERT_EQ(before.size(), 2u);

  const Answer all = run_once({"consume", member + "&member=me", "-o", "json"});
  EXPECT_EQ(all.exit_code, 0) << all.err;
  EXPECT_EQ(all.lines().size(), 20u);
  EXPECT_NE(all.err.find("without joining the group \"workers\""), std::string::npos) << all.err;
  std::size_t parts = 0;
  for (const char* partition : {"0", "1"}) {
    const auto part = run_once({"consume", member, "--partition", partition, "-o", "json"}).lines();
    for (const std::string& text : part)
      EXPECT_EQ(Json::parse(text)["partition"], partition[0] - '0');
    parts += part.size();
    // The end of the transaction that sent them has an offset, too.
    EXPECT_EQ(run_once({"consume", topic, "--partition", partition, "--last", "3"}).lines().size(),
              2u);
  }
  EXPECT_EQ(parts, 20u);
  EXPECT_EQ(run_once({"consume", topic, "--from", "-1m"}).lines().size(), 0u) << "they are older";
  EXPECT_EQ(run_once({"consume", topic, "--from", "-2h"}).lines().size(), 20u);
  EXPECT_EQ(run_once({"audit", member, "-o", "json"}).json()["messages"], 20);
  const Answer traced =
      run_once({"trace", "order 7", "--store", state, "--source", member, "-o", "json"});
  EXPECT_EQ(traced.exit_code, 0) << traced.err;
  EXPECT_EQ(traced.json()["events"][0]["kind"], "source");
  const Json lags =
      run_once({"position", "ls", "--store", state, "--source", member, "-o", "json"}).json();
  for (const Json& one : lags)
    EXPECT_EQ(one["lag"], 0) << "the end of a transaction is no message\n" << lags;

  send(topic, 20, 40);
  EXPECT_TRUE(copied(40));
  EXPECT_EQ(fences(), before) << "nobody took its partitions away";
  ::kill(worker.pid(), SIGTERM);
  EXPECT_EQ(worker.wait().exit_code, 0);
}

TEST(KafkaLooking, a_topic_is_not_copied_onto_itself) {
  const std::string topic = server().url() + "/itself";
  create_kafka_topic(hosts(), "itself", 1);
  const Scratch scratch;
  const std::string named = fmt::format("kafka://localhost:{}/itself", server().port());
  for (const std::string& to : {topic, named}) {
    const Answer answer =
        run_once({"bridge", topic + "?group=g", to, "--state", "sqlite:" + scratch.path("s.db")});
    EXPECT_EQ(answer.exit_code, 2) << answer.err;
    EXPECT_NE(answer.err.find("the same topic"), std::string::npos) << answer.err;
  }
}

// --- Bridges

class KafkaBridge : public ::testing::Test {
 protected:
  static constexpr int half = 1500;
  static constexpr int count = 2 * half;
  static constexpr int partitions = 3;

  void SetUp() override { ::unsetenv("ONCE_POINT"); }
  void TearDown() override { ::unsetenv("ONCE_POINT"); }

  static void create(const std::string& url) {
    const Answer made =
        run_once({"topic", "create", url, "--partitions", std::to_string(partitions)});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }

  std::vector<std::string> words(const std::string& from, const std::string& to) const {
    return {"bridge", from, to, "--state", "sqlite:" + scratch_.path("state.db"), "-o", "json"};
  }

  // What was sent, by its partition and in order, without its offset.
  using Content = std::map<int, std::vector<std::string>>;
  static Content content(const std::string& url) {
    Content found;
    for (const std::string& text : run_once({"consume", url, "-o", "json"}).lines()) {
      Json message = Json::parse(text);
      const int partition = message["partition"];
      for (const char* place : {"partition", "offset", "stamp"}) message.erase(place);
      found[partition].push_back(message.dump());
    }
    return found;
  }

  static int size_of(const Content& content) {
    std::size_t size = 0;
    for (const auto& [partition, messages] : content) size += messages.size();
    return static_cast<int>(size);
  }

  void kill_in_the_middle(const std::string& from, const std::string& to) {
    auto slowly = words(from, to);
    slowly.insert(slowly.end(), {"--rate", "300"});
    Program bridge(slowly);
    std::this_thread::sleep_for(std::chrono::milliseconds(3000));
    ASSERT_EQ(::kill(bridge.pid(), SIGKILL), 0);
    EXPECT_EQ(bridge.wait().exit_code, 128 + SIGKILL);
    const int copied = size_of(content(to));
    EXPECT_GT(copied, 0);
    EXPECT_LT(copied, count);
  }

  // Killed at points where something is done and not yet remembered, and in full flight; then it
  // copies the rest, and both topics hold the same.
  void copy_through_kills(const std::string& from, const std::string& to) {
    create(from);
    create(to);
    send(from, 0, half);
    for (const char* point : {"lane_after_commit", "relay_after_append"}) {
      ::setenv("ONCE_POINT", point, 1);
      EXPECT_EQ(run_once(words(from, to)).exit_code, 128 + SIGKILL) << point;
      ::unsetenv("ONCE_POINT");
    }
    send(from, half, count);
    kill_in_the_middle(from, to);
    for (int again = 0; again < 2; ++again) {  // the second time there is nothing to do
      const Answer rest = run_once(words(from, to));
      ASSERT_EQ(rest.exit_code, 0) << rest.out << rest.err;
      EXPECT_EQ(rest.json(), (Json{{"copied", count},
                                   {"missing", 0},
                                   {"doubled", 0},
                                   {"others", 0},
                                   {"duplicates", 0},
                                   {"parked", 0},
                                   {"without_id", 0},
                                   {"ok", true}}));
    }
    EXPECT_EQ(size_of(content(from)), count);
    EXPECT_EQ(content(to), content(from));
  }

  const Scratch scratch_;
};

TEST_F(KafkaBridge, from_kafka_into_the_log_goes_on_after_every_kill) {
  const std::string from = server().url() + "/bridge_from";
  const std::string to = "file:" + scratch_.path("to");
  copy_through_kills(from, to);
}

TEST_F(KafkaBridge, from_the_log_into_kafka_goes_on_after_every_kill) {
  const std::string from = "file:" + scratch_.path("from");
  const std::string to = server().url() + "/bridge_to";
  copy_through_kills(from, to);
}

// --- What a run emits

class KafkaEmit : public ::testing::Test {
 protected:
  // Every message is entered in a table and announced.
  std::string file(const std::string& source, const std::string& to, const std::string& more = "") {
    const std::string text = fmt::format(R"toml(
scope = "orders"
[source]
url = "{}"
id = "carried"
[store]
url = "sqlite:{}"
[run]
{}
[values]
order = {{ json = "/order", type = "integer" }}
[[do]]
sql = "INSERT INTO entered (n) VALUES (:order)"
[[emit]]
to = "{}"
)toml",
                                         source, scratch_.path("shop.db"), more, to);
    const std::string path = scratch_.path("orders.toml");
    std::ofstream(path) << text;
    return path;
  }
  void make_table() {
    sqlite3* shop = nullptr;
    ASSERT_EQ(sqlite3_open(scratch_.path("shop.db").c_str(), &shop), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(shop, "CREATE TABLE entered (n INTEGER)", nullptr, nullptr, nullptr),
              SQLITE_OK);
    sqlite3_close(shop);
  }
  static std::map<std::string, int> announced(const std::string& url) {
    std::map<std::string, int> times;
    for (const std::string& text : run_once({"consume", url, "-o", "json"}).lines())
      ++times[Json::parse(text)["id"]];
    return times;
  }
  static std::map<std::string, int> each_once(int count) {
    std::map<std::string, int> times;
    for (int i = 0; i < count; ++i) times[fmt::format("order {}", i)] = 1;
    return times;
  }

  const Scratch scratch_;
};

TEST_F(KafkaEmit, members_of_a_group_that_are_killed_emit_each_message_once) {
  constexpr int rounds = 6, per_round = 50;
  const std::string from = server().url() + "/emit_from";
  for (const std::string& to : {server().url() + "/emit_to", "file:" + scratch_.path("to")}) {
    SCOPED_TRACE(to);
    const std::string source = from + (to.starts_with("file") ? "_file" : "");
    ASSERT_EQ(run_once({"topic", "create", source, "--partitions", "4"}).exit_code, 0);
    ASSERT_EQ(run_once({"topic", "create", to, "--partitions", "2"}).exit_code, 0);
    std::filesystem::remove(scratch_.path("shop.db"));
    make_table();
    const std::string plan = file(source + "?group=orders&session.timeout.ms=6000", to);
    std::vector<std::unique_ptr<Program>> members(2);
    for (auto& member : members)
      member = std::make_unique<Program>(std::vector<std::string>{"run", plan});
    for (int round = 0; round < rounds; ++round) {
      send(source, round * per_round, (round + 1) * per_round);
      std::this_thread::sleep_for(std::chrono::milliseconds(700));
      auto& victim = members[static_cast<std::size_t>(round) % members.size()];
      ::kill(victim->pid(), SIGKILL);
      const Answer ended = victim->wait();
      EXPECT_EQ(ended.exit_code, 128 + SIGKILL) << "it ended by itself: " << ended.err;
      victim = std::make_unique<Program>(std::vector<std::string>{"run", plan});
    }
    const auto expected = each_once(rounds * per_round);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (announced(to).size() < expected.size() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    for (auto& member : members) ::kill(member->pid(), SIGTERM);
    for (auto& member : members) {
      const Answer ended = member->wait();
      EXPECT_EQ(ended.exit_code, 0) << ended.err;
    }
    EXPECT_EQ(announced(to), expected);
  }
}

TEST_F(KafkaEmit, one_consumer_of_several_topics_that_is_killed_emits_each_message_once) {
  constexpr int rounds = 3, per_round = 60;
  const std::string to = "file:" + scratch_.path("to");
  const std::vector<std::string> topics{"several_a", "several_b"};
  for (const std::string& topic : topics)
    ASSERT_EQ(
        run_once({"topic", "create", server().url() + "/" + topic, "--partitions", "2"}).exit_code,
        0);
  ASSERT_EQ(run_once({"topic", "create", to}).exit_code, 0);
  make_table();
  const std::string source = server().url() + "/several_a,several_b?group=several";
  const std::string plan = file(source + "&session.timeout.ms=6000", to);
  const auto expected = each_once(rounds * per_round);
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < topics.size(); ++i)
      send(server().url() + "/" + topics[i],
           round * per_round + static_cast<int>(i) * per_round / 2,
           round * per_round + static_cast<int>(i + 1) * per_round / 2);
    Program member({"run", plan});
    const std::size_t before = static_cast<std::size_t>(round * per_round);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (announced(to).size() <= before && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ::kill(member.pid(), SIGKILL);
    member.wait();
  }
  const Answer done = run_once({"run", file(source, to, "at_end = \"stop\"")});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(announced(to), expected);
  const Json positions =
      run_once({"position", "ls", "--store", "sqlite:" + scratch_.path("shop.db"), "--source",
                source, "-o", "json"})
          .json();
  std::vector<std::string> names;
  for (const Json& position : positions) {
    names.push_back(position["partition"]);
    EXPECT_FALSE(position["lag"].is_null()) << position;
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"several_a/0", "several_a/1", "several_b/0", "several_b/1"}));
}

TEST_F(KafkaEmit, what_kafka_refuses_is_parked_and_the_others_leave) {
  const std::string from = "file:" + scratch_.path("from");
  const std::string to = server().url() + "/emit_large";
  ASSERT_EQ(run_once({"topic", "create", from}).exit_code, 0);
  ASSERT_EQ(run_once({"topic", "create", to}).exit_code, 0);
  make_table();
  const auto order = [](int i, std::size_t size) {
    return Json{{"id", fmt::format("order {}", i)},
                {"body", fmt::format(R"({{"order":{},"text":"{}"}})", i, std::string(size, 'x'))}}
               .dump() +
           "\n";
  };
  std::string lines;
  for (int i = 0; i < 9; ++i) lines += order(i, i == 4 ? 3 << 20 : 10);
  ASSERT_EQ(run_once({"produce", from, "--json"}, lines).exit_code, 0);
  const Answer ran = run_once({"run", file(from, to, "at_end = \"stop\""), "-o", "json"});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.json()["emitted"], 8);
  EXPECT_EQ(ran.json()["emits_parked"], 1);
  auto expected = each_once(9);
  expected.erase("order 4");
  EXPECT_EQ(announced(to), expected);
}

// No message waits for it, so that nothing but the check would tell.
TEST_F(KafkaEmit, a_property_that_the_broker_or_the_library_refuses_is_found_by_the_check) {
  const std::string from = "file:" + scratch_.path("from");
  const std::string to = server().url() + "/emit_checked";
  ASSERT_EQ(run_once({"topic", "create", from}).exit_code, 0);
  ASSERT_EQ(run_once({"topic", "create", to}).exit_code, 0);
  make_table();
  const auto check = [&](const std::string& property) {
    return run_once({"run", file(from, to + property, "at_end = \"stop\""), "--check"});
  };
  EXPECT_EQ(check("?transaction.timeout.ms=50000").exit_code, 0);
  // What the broker refuses, and what the library does, with the codes that a run ends with.
  const std::map<std::string, int> refusals{{"transaction.timeout.ms=90000000", 3},
                                            {"transaction.timeout.ms=1", 2},
                                            {"message.timeout.ms=70000", 2},
                                            {"compression.type=none2", 2}};
  for (const auto& [property, code] : refusals) {
    const Answer refused = check("?" + property);
    EXPECT_EQ(refused.exit_code, code) << property << refused.err;
    EXPECT_NE(refused.err.find(property.substr(0, property.find('.'))), std::string::npos)
        << refused.err;
  }
}

TEST_F(KafkaEmit, a_topic_that_was_created_again_is_an_error_with_a_repair) {
  const std::string from = "file:" + scratch_.path("from");
  const std::string to = server().url() + "/emit_anew";
  ASSERT_EQ(run_once({"topic", "create", from}).exit_code, 0);
  ASSERT_EQ(run_once({"topic", "create", to}).exit_code, 0);
  make_table();
  const std::string plan = file(from, to, "at_end = \"stop\"");
  send(from, 0, 5);
  ASSERT_EQ(run_once({"run", plan}).exit_code, 0);
  ASSERT_EQ(run_once({"topic", "delete", to}).exit_code, 0);
  std::this_thread::sleep_for(std::chrono::seconds(2));
  ASSERT_EQ(run_once({"topic", "create", to}).exit_code, 0);
  send(from, 5, 8);
  const Answer refused = run_once({"run", plan});
  EXPECT_EQ(refused.exit_code, 3) << refused.err;
  EXPECT_NE(refused.err.find("error[diverged]"), std::string::npos) << refused.err;
  EXPECT_TRUE(announced(to).empty());
  const std::string store = "sqlite:" + scratch_.path("shop.db");
  const Json listed = run_once({"outbox", "ls", "--store", store, "-o", "json"}).json();
  ASSERT_EQ(listed.size(), 1u);
  ASSERT_EQ(run_once({"outbox", "restart", listed[0]["destination"], "--reason", "created again",
                      "--store", store})
                .exit_code,
            0);
  EXPECT_EQ(run_once({"run", plan}).exit_code, 0);
  EXPECT_EQ(announced(to),
            (std::map<std::string, int>{{"order 5", 1}, {"order 6", 1}, {"order 7", 1}}));
}

TEST_F(KafkaEmit, a_topic_that_is_replaced_under_a_live_relay_is_noticed_and_told) {
  const std::string from = "file:" + scratch_.path("from");
  const std::string to = server().url() + "/emit_replaced";
  ASSERT_EQ(run_once({"topic", "create", from}).exit_code, 0);
  ASSERT_EQ(run_once({"topic", "create", to}).exit_code, 0);
  make_table();
  Program program({"run", file(from, to)});
  send(from, 0, 5);
  for (int i = 0; i < 200 && announced(to).size() < 5; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ASSERT_EQ(announced(to).size(), 5u);
  ASSERT_EQ(run_once({"topic", "delete", to}).exit_code, 0);
  ASSERT_EQ(run_once({"topic", "create", to}).exit_code, 0);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  send(from, 5, 8);
  const std::string store = "sqlite:" + scratch_.path("shop.db");
  const auto outbox = [&] {
    return run_once({"outbox", "ls", "--store", store, "-o", "json"}).json().at(0);
  };
  for (int i = 0; i < 200 && outbox()["trouble"] == ""; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(outbox()["pending"], 3) << "what was not sent waits";
  EXPECT_NE(outbox()["trouble"].get<std::string>().find("created again"), std::string::npos);
  EXPECT_TRUE(announced(to).empty());
  ASSERT_EQ(run_once({"outbox", "restart", outbox()["destination"], "--reason", "created again",
                      "--store", store})
                .exit_code,
            0);
  const std::map<std::string, int> expected{{"order 5", 1}, {"order 6", 1}, {"order 7", 1}};
  for (int i = 0; i < 200 && announced(to) != expected; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(announced(to), expected);
  ::kill(program.pid(), SIGTERM);
  const Answer ended = program.wait();
  EXPECT_NE(ended.err.find("diverged"), std::string::npos) << ended.err;
}

// --- Who may connect

class KafkaSecurity : public ::testing::Test {
 protected:
  static LiveServer& secure() {
    static LiveServer kafka("kafka", {.tls = true});
    return kafka;
  }

  static constexpr const char* plain = "&sasl.mechanism=PLAIN";
  // Kafka 4 does not accept what older versions say.
  static inline const bool scram_works = rd_kafka_version() >= 0x02060100;

  // kafka://once:PASSWORD@HOST:PORT/orders
  static std::string url(const std::string& more = plain) {
    return fmt::format("{}/orders?ssl.ca.location={}{}", secure().url(),
                       secure().path("tls/ca.pem"), more);
  }
  static std::string with(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, text.npos) << text;
    return text.replace(at, from.size(), to);
  }

  // Source, sink and topic say at once that a person has to act, and tell no secret.
  static void expect_refused(const std::string& wrong, const std::string& reason) {
    for (const std::vector<std::string>& command : {std::vector<std::string>{"consume", wrong},
                                                    {"produce", wrong},
                                                    {"topic", "show", wrong}}) {
      std::vector<std::string> words = command;
      words.insert(words.end(), {"-o", "json"});
      const auto began = std::chrono::steady_clock::now();
      const Answer refused = run_once(words, "x\n");
      EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(6)) << command[0];
      EXPECT_EQ(refused.exit_code, 3) << command[0] << refused.err;
      EXPECT_EQ(refused.error()["tag"], "denied") << command[0] << refused.err;
      EXPECT_NE(refused.err.find(reason), std::string::npos) << command[0] << refused.err;
      EXPECT_EQ(refused.err.find("secret"), std::string::npos) << command[0] << refused.err;
    }
  }
};

TEST_F(KafkaSecurity, a_user_with_a_password_over_tls_sends_and_reads) {
  const Answer created = run_once({"topic", "create", url()});
  ASSERT_EQ(created.exit_code, 0) << created.err;
  int sent = 0;
  std::vector<std::string> mechanisms{plain};
  if (scram_works) mechanisms.insert(mechanisms.end(), {"", "&sasl.mechanism=SCRAM-SHA-256"});
  for (const std::string& mechanism : mechanisms) {
    send(url(mechanism), sent, sent + 20);
    sent += 20;
    const auto lines = run_once({"consume", url(mechanism), "-o", "json"}).lines();
    ASSERT_EQ(static_cast<int>(lines.size()), sent) << mechanism;
    for (int i = 0; i < sent; ++i)
      EXPECT_EQ(Json::parse(lines[static_cast<std::size_t>(i)])["id"], fmt::format("order {}", i));
  }
  const std::string cluster = with(url(), "/orders", "");
  const Answer listed = run_once({"topic", "ls", cluster, "-o", "json"});
  ASSERT_EQ(listed.exit_code, 0) << listed.err;
  EXPECT_EQ(listed.json()[0]["topic"], "orders");
  const Answer deleted = run_once({"topic", "delete", url(), "-o", "json"});
  EXPECT_EQ(deleted.exit_code, 0) << deleted.err;
  EXPECT_EQ(deleted.out.find("secret"), std::string::npos) << deleted.out;
}

TEST_F(KafkaSecurity, a_wrong_password_is_refused) {
  expect_refused(with(url(), "once-test-secret", "wrong-secret"), "check user, password");
  expect_refused(with(url(""), "once-test-secret", "wrong-secret"), "check user, password");
}

TEST_F(KafkaSecurity, a_library_whose_scram_kafka_does_not_understand_is_named) {
  if (scram_works)
    EXPECT_EQ(run_once({"topic", "create", url("")}).exit_code, 0) << rd_kafka_version_str();
  else
    expect_refused(url(""), "before 2.6.1");
}

TEST_F(KafkaSecurity, a_certificate_that_nobody_vouches_for_is_refused) {
  expect_refused(with(url(), "tls/ca.pem", "tls/other_ca.pem"), "certificate");
  expect_refused(secure().url() + "/orders", "certificate");
}

TEST_F(KafkaSecurity, a_certificate_of_another_name_is_refused) {
  expect_refused(with(url(), "127.0.0.1", "localhost"), "certificate");
}

TEST_F(KafkaSecurity, plain_text_is_refused_by_a_listener_with_tls) {
  expect_refused(fmt::format("kafka://127.0.0.1:{}/orders", secure().port()), "security.protocol");
}

TEST_F(KafkaSecurity, tls_is_refused_by_a_listener_of_plain_text) {
  expect_refused(
      with(url(), fmt::format(":{}/", secure().port()), fmt::format(":{}/", server().port())),
      "security.protocol");
}

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::server());
}
