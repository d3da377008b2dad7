// SPDX-License-Identifier: Apache-2.0
// The example counters.toml as it is meant: views of pages from a real Kafka, counted in a real
// Redis, by processes that are killed and by one that has no partition.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "cli/program.h"
#include "streams/kafka_cluster.h"
#include "testing/live_server.h"
#include "testing/redis_home.h"

namespace once::testing {
namespace {

LiveServer& kafka() {
  static LiveServer made("kafka");
  return made;
}

class KafkaCounters : public ::testing::Test {
 protected:
  void SetUp() override {
    ::unsetenv("ONCE_POINT");
    create_kafka_topic(fmt::format("127.0.0.1:{}", kafka().port()), topic_, 1);
    ::setenv("SOURCE", source().c_str(), 1);
    store_ = RedisHome::server().url() + "?prefix=" + RedisHome::make_place();
    ::setenv("STORE", store_.c_str(), 1);
  }
  void TearDown() override {
    for (const char* name : {"SOURCE", "STORE", "AT_END", "ONCE_POINT"}) ::unsetenv(name);
  }

  std::string topic() const { return kafka().url() + "/" + topic_; }
  std::string source() const { return topic() + "?group=counters"; }
  static std::string file() { return std::string(ONCE_EXAMPLES) + "/counters.toml"; }
  // Each view is sent twice; robots are not counted.
  void send_views(int from, int count) {
    std::string lines;
    for (int round = 0; round < 2; ++round)
      for (int i = from; i < from + count; ++i)
        lines += Json{{"view", fmt::format("v{}", i)},
                      {"page", i % 4 == 0 ? "/books" : "/pens"},
                      {"day", "2026-11-16"},
                      {"seconds", 2}}
                     .dump() +
                 "\n";
    lines += "{\"bot\":true,\"page\":\"/books\"}\n";
    const Answer sent = run_once({"produce", topic()}, lines);
    ASSERT_EQ(sent.exit_code, 0) << sent.err;
  }
  std::string ask(const std::vector<std::string>& words) const {
    const RedisAnswer answer = RedisHome::answer_to(words, store_);
    return answer.text().empty() ? std::to_string(answer.number()) : std::string(answer.text());
  }
  void expect_counted(int views) const {
    EXPECT_EQ(ask({"GET", "views:/books"}), std::to_string(views / 4));
    EXPECT_EQ(ask({"GET", "views:/pens"}), std::to_string(views * 3 / 4));
    EXPECT_EQ(ask({"HGET", "views:2026-11-16", "/pens"}), std::to_string(views * 3 / 4));
    EXPECT_EQ(ask({"ZSCORE", "best", "/books"}), std::to_string(views / 2));
  }
  bool wait_for_views(int views) const {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (ask({"GET", "views:/pens"}) != std::to_string(views * 3 / 4)) {
      if (std::chrono::steady_clock::now() > give_up) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return true;
  }

  const std::string topic_ = "views";
  std::string store_;
};

TEST_F(KafkaCounters, views_are_counted_once_under_kills_and_a_spare_process_says_that_it_waits) {
  int views = 0;
  for (const char* point : {"lane_after_handler", "store_after_commit_sent", "lane_after_commit"}) {
    send_views(views, 40);
    views += 40;
    ::setenv("ONCE_POINT", point, 1);
    EXPECT_EQ(run_once({"run", file()}).exit_code, 128 + SIGKILL) << point;
    ::unsetenv("ONCE_POINT");
    ::setenv("AT_END", "stop", 1);
    const Answer again = run_once({"run", file()});
    ::unsetenv("AT_END");
    EXPECT_EQ(again.exit_code, 0) << again.err;
    expect_counted(views);
  }
  // There is one partition, and two members of the group.
  Program first({"run", file(), "--log", "json"});
  send_views(views, 40);
  views += 40;
  EXPECT_TRUE(wait_for_views(views));
  Program spare({"run", file(), "--log", "json"});
  std::this_thread::sleep_for(std::chrono::seconds(10));
  ::kill(spare.pid(), SIGTERM);
  const Answer waited = spare.wait();
  ::kill(first.pid(), SIGTERM);
  const Answer worked = first.wait();
  EXPECT_EQ(waited.exit_code, 0) << waited.err;
  EXPECT_EQ(worked.exit_code, 0) << worked.err;
  EXPECT_NE((waited.err + worked.err).find("partitions_awaited"), std::string::npos)
      << waited.err << worked.err;
  expect_counted(views);
}

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (!once::testing::RedisHome::server().missing().empty())
    return once::testing::run_all_on(once::testing::RedisHome::server());
  return once::testing::run_all_on(once::testing::kafka());
}
