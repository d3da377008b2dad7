// SPDX-License-Identifier: Apache-2.0
// The binary with a real Pulsar.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <once/once.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "cli/program.h"
#include "streams/pulsar_broker.h"
#include "testing/scratch.h"

namespace once::testing {
namespace {

std::string url_of(const std::string& topic) { return pulsar_url(pulsar_broker(), topic); }

std::string orders(int from, int to) {
  std::string lines;
  for (int i = from; i < to; ++i)
    lines += Json{{"id", fmt::format("order {}", i)},
                  {"key", fmt::format("customer {}", i % 13)},
                  {"body", fmt::format(R"({{"order":{}}})", i)}}
                 .dump() +
             "\n";
  return lines;
}

std::vector<std::string> ids_in(const std::string& url) {
  const Answer answer = run_once({"consume", url, "--json", "-o", "jsonl"});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  std::vector<std::string> ids;
  for (const std::string& line : answer.lines()) ids.push_back(Json::parse(line)["id"]);
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::vector<std::string> wanted_ids(int from, int to) {
  std::vector<std::string> ids;
  for (int i = from; i < to; ++i) ids.push_back(fmt::format("order {}", i));
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::string made(const std::string& topic, const std::string& partitions = "3") {
  const std::string url = url_of(topic);
  const Answer created = run_once({"topic", "create", url, "--partitions", partitions});
  EXPECT_EQ(created.exit_code, 0) << created.err;
  return url;
}

TEST(PulsarCli, topics_are_created_shown_listed_and_deleted) {
  const std::string url = made("shown");
  EXPECT_EQ(run_once({"topic", "show", url, "-o", "json"}).json()["partitions"].size(), 3u);
  const std::string listed = run_once({"topic", "ls", url_of(""), "-o", "json"}).out;
  EXPECT_NE(listed.find("\"shown\""), std::string::npos) << listed;
  EXPECT_EQ(run_once({"topic", "delete", url}).exit_code, 0);
  const Answer missing = run_once({"topic", "show", url, "-o", "json"});
  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_EQ(missing.error()["tag"], "missing") << missing.err;
}

TEST(PulsarCli, what_is_produced_is_consumed_and_audited_and_a_replay_adds_nothing) {
  const std::string url = made("produced");
  const std::vector<std::string> words{"produce", url, "--json", "--producer", "shop", "--replay"};
  ASSERT_EQ(run_once(words, orders(0, 200)).exit_code, 0);
  const Answer again = run_once(words, orders(0, 250));
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(ids_in(url), wanted_ids(0, 250));
  const Answer audit = run_once({"audit", url, "-o", "json"});
  EXPECT_EQ(audit.exit_code, 0) << audit.err << audit.out;
  EXPECT_EQ(audit.json()["messages"], 250) << audit.out;
}

// Whoever looks takes nothing from the consumers of the subscription.
TEST(PulsarCli, to_look_at_a_topic_disturbs_nobody) {
  const std::string url = made("looked", "1");
  ASSERT_EQ(run_once({"produce", url, "--json"}, orders(0, 20)).exit_code, 0);
  const std::string shared = url + "&subscription=jobs&type=shared";
  auto source = open_pulsar_source(shared).value();
  (void)source->poll(0, 100);
  EXPECT_EQ(ids_in(shared), wanted_ids(0, 20));
  EXPECT_EQ(ids_in(shared), wanted_ids(0, 20));
  std::vector<std::string> left;
  for (int i = 0; i < 100 && left.size() < 20; ++i) {
    const Batch batch = source->poll(100, 50).value();
    for (const Delivery& delivery : batch.deliveries) left.emplace_back(delivery.id);
  }
  std::sort(left.begin(), left.end());
  EXPECT_EQ(left, wanted_ids(0, 20));
}

TEST(PulsarCli, a_bridge_goes_on_where_it_was_and_its_audit_agrees) {
  const Scratch scratch;
  const std::string from = made("bridged");
  const std::string to = made("copied");
  const std::string store = "sqlite:" + scratch.path("bridge.db");
  for (const auto& [begin, end] : std::vector<std::pair<int, int>>{{0, 100}, {100, 150}}) {
    ASSERT_EQ(run_once({"produce", from, "--json"}, orders(begin, end)).exit_code, 0);
    const Answer bridged = run_once({"bridge", from, to, "--state", store});
    ASSERT_EQ(bridged.exit_code, 0) << bridged.err;
  }
  EXPECT_EQ(ids_in(to), wanted_ids(0, 150));
}

std::string pipeline(const Scratch& scratch, const std::string& source, const std::string& emit) {
  const std::string path = scratch.path("shop.toml");
  std::ofstream(path) << fmt::format(R"toml(
scope = "shop"
source = {{ url = "{}", id = "carried" }}
store = {{ url = "sqlite:{}" }}
[run]
retention = "forever"
[[do]]
sql = "INSERT INTO effect (id) VALUES (:id)"
[[emit]]
to = "{}"
key = "key"
)toml",
                                     source, scratch.path("shop.db"), emit);
  return path;
}

TEST(PulsarCli, a_pipeline_reads_and_emits_and_says_what_it_promises) {
  const Scratch scratch;
  const std::string orders_url = made("orders");
  const std::string paid = made("paid");
  const std::string file = pipeline(scratch, orders_url + "&subscription=shop&end=stop", paid);
  ASSERT_EQ(
      ::system(fmt::format("sqlite3 {} 'CREATE TABLE effect (id TEXT)'", scratch.path("shop.db"))
                   .c_str()),
      0);
  ASSERT_EQ(run_once({"produce", orders_url, "--json"}, orders(0, 50)).exit_code, 0);
  const Answer check = run_once({"run", file, "--check"});
  EXPECT_EQ(check.exit_code, 0) << check.err;
  EXPECT_NE((check.out + check.err).find("effectively once per id"), std::string::npos)
      << check.out << check.err;
  for (int i = 0; i < 2; ++i) {
    const Answer ran = run_once({"run", file, "--quiet"});
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
  }
  EXPECT_EQ(ids_in(paid), wanted_ids(0, 50));
  const Answer trace = run_once(
      {"trace", "order 7", "--store", "sqlite:" + scratch.path("shop.db"), "--source", orders_url});
  EXPECT_EQ(trace.exit_code, 0) << trace.err;
  EXPECT_NE(trace.out.find("applied"), std::string::npos) << trace.out;
  EXPECT_NE(trace.out.find("orders/"), std::string::npos) << trace.out;
  EXPECT_EQ((trace.out + trace.err).find("once-stamp"), std::string::npos);
}

// A queue has no positions: without an id rule nothing tells a redelivery.
TEST(PulsarCli, a_shared_subscription_is_a_queue_for_a_pipeline) {
  const Scratch scratch;
  const std::string orders_url = made("queued");
  const std::string file =
      pipeline(scratch, orders_url + "&subscription=shop&type=shared", made("queued_paid"));
  ASSERT_EQ(
      ::system(fmt::format("sqlite3 {} 'CREATE TABLE effect (id TEXT)'", scratch.path("shop.db"))
                   .c_str()),
      0);
  {
    Program program({"run", file});
    ASSERT_EQ(run_once({"produce", orders_url, "--json"}, orders(0, 300)).exit_code, 0);
    ASSERT_EQ(run_once({"produce", orders_url, "--json"}, orders(0, 300)).exit_code, 0) << "again";
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (ids_in(url_of("queued_paid")).size() < 300 &&
           std::chrono::steady_clock::now() < deadline) {
    }
    ::kill(program.pid(), SIGTERM);
    const Answer ended = program.wait();
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
  }
  EXPECT_EQ(ids_in(url_of("queued_paid")), wanted_ids(0, 300));
}

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::pulsar_broker());
}
