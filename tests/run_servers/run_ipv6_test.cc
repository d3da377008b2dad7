// SPDX-License-Identifier: Apache-2.0
// Servers that listen on the IPv6 loopback address and on no other. Each address is written in
// brackets, as URLs require.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <once/open.h>
#include <once/sql.h>

#include <fstream>
#include <string>
#include <vector>

#include "cli/program.h"
#include "testing/live_server.h"
#include "testing/mysql_home.h"
#include "testing/postgres_home.h"
#include "testing/scratch.h"

namespace once::testing {
namespace {

using Lines = std::vector<std::string>;

const LiveServerOptions at_ipv6{.host = "::1"};

LiveServer& kafka() {
  static LiveServer made("kafka", at_ipv6);
  return made;
}

class Ipv6 : public ::testing::Test {
 protected:
  // Two topics; in the first one, three messages that were sent twice.
  void SetUp() override {
    for (const std::string& topic : {orders_, done_}) {
      const Answer made = run_once({"topic", "create", topic});
      ASSERT_EQ(made.exit_code, 0) << made.err;
    }
    std::string lines;
    for (const std::string& id : ids_) lines += Json{{"id", id}, {"body", "{}"}}.dump() + "\n";
    for (int copy = 0; copy < 2; ++copy) {
      const Answer sent = run_once({"produce", orders_, "--json"}, lines);
      ASSERT_EQ(sent.exit_code, 0) << sent.err;
    }
  }

  static Lines ids_in(const std::string& topic) {
    Lines ids;
    const Lines lines = run_once({"consume", topic, "-o", "json"}).lines();
    for (const std::string& line : lines) ids.push_back(Json::parse(line)["id"]);
    return ids;
  }

  static Lines effects_in(const std::string& store_url) {
    auto store = open_store(store_url).value();
    auto transaction = store->begin("look").value();
    Lines ids;
    const auto rows = transaction->sql()->query("SELECT id FROM effect ORDER BY number").value();
    for (const Row& row : rows) ids.push_back(std::get<std::string>(row.at(0)));
    return ids;
  }

  // From Kafka into the store and back to Kafka.
  void expect_pipeline_works(const std::string& store_url) {
    const std::string path = scratch_.path("pipeline.toml");
    std::ofstream(path) << "scope = \"ipv6\"\n[source]\nurl = \"" << orders_
                        << "?group=ipv6\"\nid = \"carried\"\n[store]\nurl = \"" << store_url
                        << "\"\n[run]\nat_end = \"stop\"\n[[do]]\n"
                        << "sql = \"INSERT INTO effect (id) VALUES (:id)\"\n[[emit]]\nto = \""
                        << done_ << "\"\n";
    const Answer ran = run_once({"run", path, "-o", "json"});
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_EQ(ran.json()["duplicates"], ids_.size());
    EXPECT_EQ(effects_in(store_url), ids_);
    EXPECT_EQ(ids_in(done_), ids_);
  }

  const Scratch scratch_;
  const Lines ids_{"order 1", "order 2", "order 3"};
  const std::string orders_ = fmt::format(
      "{}/{}", kafka().url(), ::testing::UnitTest::GetInstance()->current_test_info()->name());
  const std::string done_ = orders_ + "_done";
};

TEST_F(Ipv6, kafka_to_postgresql_and_back) {
  const LiveServer server("postgresql", at_ipv6);
  PostgresHome::administer(PostgresHome::effect_table, server.url());
  expect_pipeline_works(server.url());
}

TEST_F(Ipv6, kafka_to_mariadb_and_back) {
  const LiveServer server("mariadb", at_ipv6);
  MysqlHome::administer(MysqlHome::effect_table, server.url());
  expect_pipeline_works(server.url());
}

TEST_F(Ipv6, a_bridge_between_topics_of_kafka_keeps_its_state_in_redis) {
  const LiveServer server("redis", at_ipv6);
  for (int run = 0; run < 2; ++run) {  // the second one finds nothing to copy
    const Answer copied = run_once({"bridge", orders_, done_, "--state", server.url()});
    ASSERT_EQ(copied.exit_code, 0) << copied.err;
  }
  const Lines copies = ids_in(done_);
  EXPECT_EQ(copies, ids_in(orders_));
  EXPECT_EQ(copies.size(), 2 * ids_.size());
}

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::kafka());
}
