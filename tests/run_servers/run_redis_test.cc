// SPDX-License-Identifier: Apache-2.0
// `once run` on a real Redis: counters, sets and scores that every message changes once, also if it
// is killed, and that a refused message leaves as they were.
#include <gtest/gtest.h>
#include <once/key_value.h>
#include <once/open.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "cli/program.h"
#include "testing/redis_home.h"
#include "testing/scratch.h"

namespace once::testing {
namespace {

using Home = RedisHome;
using Lines = std::vector<std::string>;

class RunRedis : public ::testing::Test {
 protected:
  void SetUp() override {
    url_ = Home::server().url() + "?prefix=" + Home::make_place();
    ::setenv("RUN_DIR", scratch_.directory().c_str(), 1);
    ::setenv("RUN_URL", url_.c_str(), 1);
    ::unsetenv("ONCE_POINT");
    for (const char* topic : {"calls", "done"})
      ASSERT_EQ(run_once({"topic", "create", "file:" + scratch_.path(topic)}).exit_code, 0);
    for (const char* pattern : {"t:*", "views:*", "best"})
      for (const std::string& key : Home::list({"KEYS", pattern})) ask({"DEL", key});
  }
  void TearDown() override { ::unsetenv("ONCE_POINT"); }

  static std::string head() {
    return R"toml(scope = "points"
[source]
url = "file:${RUN_DIR}/calls"
id = "json:/order"
[store]
url = "${RUN_URL}"
[run]
at_end = "stop"
[values]
member = { json = "/member" }
points = { json = "/points", type = "integer" }
)toml";
  }
  Answer run(const std::string& steps, Lines more = {}) {
    std::ofstream(scratch_.path("p.toml")) << head() << steps;
    Lines words{"run", scratch_.path("p.toml")};
    words.insert(words.end(), more.begin(), more.end());
    return run_once(words);
  }
  void send(const std::string& order, const std::string& member, int points) {
    lines_ += Json{{"order", order}, {"member", member}, {"points", points}}.dump() + "\n";
  }
  void sent() {
    const Answer answer = run_once({"produce", "file:" + scratch_.path("calls")}, lines_);
    ASSERT_EQ(answer.exit_code, 0) << answer.err;
    lines_.clear();
  }
  std::string ask(const std::vector<std::string>& words) {
    const RedisAnswer answer = Home::answer_to(words, url_);
    return answer.text().empty() ? std::to_string(answer.number()) : std::string(answer.text());
  }

  Scratch scratch_;
  std::string url_;
  std::string lines_;
};

const std::string counting = R"toml(
[[do]]
redis = ["HINCRBY", "t:points", "{member}", ":points"]
[[do]]
redis = ["ZINCRBY", "t:best", ":points", "member {member}"]
[[do]]
redis = ["SADD", "t:orders", ":id"]
reply = 1
[[do]]
redis = ["INCRBY", "t:all", 1]
[[do]]
redis = ["EXPIRE", "t:all", 86400]
[[emit]]
to = "file:${RUN_DIR}/done"
)toml";

TEST_F(RunRedis, every_message_counts_once_also_if_it_is_killed) {
  int orders = 0;
  for (const char* point : {"lane_after_handler", "lane_before_commit", "store_before_commit",
                            "lane_after_commit", "relay_after_append"}) {
    for (int round = 0; round < 2; ++round)
      for (int i = 0; i < 30; ++i)
        send("o" + std::to_string(orders + i), i % 2 == 0 ? "ann" : "bob", 3);
    orders += 30;
    sent();
    ::setenv("ONCE_POINT", point, 1);
    EXPECT_EQ(run(counting).exit_code, 128 + 9) << point;
    ::unsetenv("ONCE_POINT");
    const Answer answer = run(counting);
    ASSERT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_EQ(ask({"HGET", "t:points", "ann"}), std::to_string(orders * 3 / 2)) << point;
    EXPECT_EQ(ask({"HGET", "t:points", "bob"}), std::to_string(orders * 3 / 2)) << point;
    EXPECT_EQ(ask({"ZSCORE", "t:best", "member ann"}), std::to_string(orders * 3 / 2));
    EXPECT_EQ(ask({"SCARD", "t:orders"}), std::to_string(orders));
    EXPECT_EQ(ask({"GET", "t:all"}), std::to_string(orders));
    Lines announced;
    for (const std::string& text :
         run_once({"consume", "file:" + scratch_.path("done"), "-o", "json"}).lines())
      announced.push_back(Json::parse(text)["id"]);
    Lines expected;
    for (int i = 0; i < orders; ++i) expected.push_back("o" + std::to_string(i));
    EXPECT_EQ(announced, expected) << point;
  }
}

// What a command would answer is known only at a commit, which does not come.
TEST_F(RunRedis, commands_can_be_tried_and_leave_nothing_behind) {
  for (const char* order : {"o0", "o1", "o0"}) send(order, "ann", 3);
  sent();
  const std::string steps = counting + R"toml(
[[do]]
redis = ["SADD", "t:bad", ":id"]
when = { json = "/order", is = "o1" }
otherwise = { park = "never in a trial" }
reply = 7
)toml";
  const Answer table = run(steps, {"--try", "10"});
  ASSERT_EQ(table.exit_code, 0) << table.err;
  EXPECT_NE(table.out.find("?+?+?+?+?"), std::string::npos) << table.out;
  const Json tried = run(steps, {"--try", "10", "-o", "json"}).json()["messages"];
  ASSERT_EQ(tried.size(), 3u);
  EXPECT_EQ(tried[0]["outcome"], "applied");
  EXPECT_EQ(tried[0]["writes"].size(), 5u);
  EXPECT_EQ(tried[0]["writes"][0],
            (Json{{"statement", "HINCRBY t:points ann 3"}, {"rows", nullptr}}));
  EXPECT_EQ(tried[0]["emits"].size(), 1u);
  EXPECT_EQ(tried[1]["outcome"], "applied");
  EXPECT_EQ(tried[1]["writes"].size(), 6u);
  EXPECT_EQ(tried[2]["verdict"], "duplicate");
  EXPECT_EQ(Home::list({"KEYS", "t:*"}), Lines{});
  ASSERT_EQ(run(counting).exit_code, 0);
  EXPECT_EQ(ask({"HGET", "t:points", "ann"}), "6");
}

// A value that makes a key one of our own. A file whose every key is one ends the run instead.
TEST_F(RunRedis, key_that_a_value_leads_into_our_own_parks_its_message_and_the_others_go_on) {
  const std::string prefix = url_.substr(url_.find("prefix=") + 7);
  const std::string root = "{" + prefix + "}/ledger/points";
  const std::string step = "[[do]]\nredis = [\"INCRBY\", \"{member}\", \":points\"]\n";
  send("o0", root, 1);
  send("o1", "t:ann", 2);
  send("o2", root + "/more", 4);
  send("o3", root, 8);
  send("o4", "t:ann", 16);
  sent();
  const Answer answer = run(step, {"-o", "json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(answer.json()["applied"], 2);
  EXPECT_EQ(answer.json()["parked"], 3);
  EXPECT_EQ(ask({"GET", "t:ann"}), "18");
  Lines parked;
  for (const Json& row :
       run_once({"park", "ls", "--store", url_, "--scope", "points", "--all", "-o", "json"})
           .json()) {
    parked.push_back(row["id"]);
    EXPECT_NE(row["reason"].get<std::string>().find("is one of our own"), std::string::npos) << row;
  }
  EXPECT_EQ(parked, (Lines{"o0", "o2", "o3"}));
}

// The story of examples/run, killed at every point and at any instant.
TEST_F(RunRedis, views_of_the_example_are_counted_once) {
  ::setenv("SOURCE", ("file:" + scratch_.path("calls")).c_str(), 1);
  ::setenv("STORE", url_.c_str(), 1);
  ::setenv("AT_END", "stop", 1);
  const Lines command{"run", std::string(ONCE_EXAMPLES) + "/counters.toml", "-o", "json"};
  int views = 0;
  for (const char* point : {"lane_after_admit", "lane_after_handler", "store_before_commit",
                            "store_after_commit_sent", "lane_after_commit", "lane_after_ack"}) {
    std::string lines;
    for (int round = 0; round < 2; ++round)
      for (int i = 0; i < 40; ++i)
        lines += Json{{"view", "v" + std::to_string(views + i)},
                      {"page", i % 4 == 0 ? "/books" : "/pens"},
                      {"day", "2026-11-1" + std::to_string(i % 2)},
                      {"seconds", 2}}
                     .dump() +
                 "\n";
    lines += "{\"bot\":true,\"page\":\"/books\"}\n";
    views += 40;
    ASSERT_EQ(run_once({"produce", "file:" + scratch_.path("calls")}, lines).exit_code, 0);
    ::setenv("ONCE_POINT", point, 1);
    EXPECT_EQ(run_once(command).exit_code, 128 + 9) << point;
    ::unsetenv("ONCE_POINT");
    const Answer answer = run_once(command);
    ASSERT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_EQ(ask({"GET", "views:/books"}), std::to_string(views / 4)) << point;
    EXPECT_EQ(ask({"GET", "views:/pens"}), std::to_string(views * 3 / 4)) << point;
    EXPECT_EQ(ask({"HGET", "views:2026-11-10", "/books"}), std::to_string(views / 4)) << point;
    EXPECT_EQ(ask({"HGET", "views:2026-11-11", "/pens"}), std::to_string(views / 2)) << point;
    EXPECT_EQ(ask({"ZSCORE", "best", "/books"}), std::to_string(views / 2)) << point;
    EXPECT_EQ(answer.json()["parked"], 0) << point;
  }
  EXPECT_GT(std::stoll(ask({"TTL", "views:2026-11-10"})), 7'000'000);
  for (const char* name : {"SOURCE", "STORE", "AT_END"}) ::unsetenv(name);
}

// All kinds of commands before one whose reply is refused: the server has what it had.
TEST_F(RunRedis, refused_message_leaves_every_key_as_it_was) {
  const std::string steps = R"toml(
[[do]]
redis = ["HINCRBY", "t:hash", "a", ":points"]
[[do]]
redis = ["HSET", "t:hash", "{member}", "x"]
[[do]]
redis = ["HDEL", "t:alone", "only"]
[[do]]
redis = ["SET", "t:text", "new {member}"]
[[do]]
redis = ["INCRBYFLOAT", "t:float", "0.5"]
[[do]]
redis = ["SADD", "t:set", ":member"]
[[do]]
redis = ["SREM", "t:set", "old"]
[[do]]
redis = ["ZADD", "t:scores", "7", ":member"]
[[do]]
redis = ["RPUSH", "t:list", ":member"]
[[do]]
redis = ["PERSIST", "t:text"]
[[do]]
redis = ["PEXPIRE", "t:set", "999999"]
[[do]]
redis = ["SETNX", "t:fresh", "1"]
[[do]]
redis = ["DECRBY", "t:stock", ":points"]
reply = { at_least = 0 }
otherwise = { reject = "sold out" }
)toml";
  const std::vector<Lines> before{{"HSET", "t:hash", "a", "5"},
                                  {"HSET", "t:alone", "only", "1"},
                                  {"PEXPIRE", "t:alone", "500000"},
                                  {"SET", "t:text", "old", "PX", "500000"},
                                  {"SET", "t:float", "1.25"},
                                  {"SADD", "t:set", "old"},
                                  {"ZADD", "t:scores", "1.5", "ann"},
                                  {"RPUSH", "t:list", "first"},
                                  {"SET", "t:stock", "4"}};
  for (const Lines& command : before) ask(command);
  const auto state = [&] {
    std::map<std::string, std::string> dumped;
    for (const std::string& key : Home::list({"KEYS", "t:*"}))
      dumped[key] = std::string(Home::answer_to({"DUMP", key}, url_).text());
    return dumped;
  };
  const auto untouched = state();
  send("o1", "ann", 5);
  sent();
  const Answer refused = run(steps, {"-o", "json"});
  ASSERT_EQ(refused.exit_code, 0) << refused.err;
  EXPECT_EQ(refused.json()["rejected"], 1);
  EXPECT_EQ(state(), untouched);
  EXPECT_GT(std::stoll(ask({"PTTL", "t:text"})), 400'000);
  EXPECT_GT(std::stoll(ask({"PTTL", "t:alone"})), 400'000);
  EXPECT_EQ(ask({"PTTL", "t:set"}), "-1");
  EXPECT_EQ(ask({"EXISTS", "t:fresh"}), "0");

  for (int i = 2; i < 8; ++i) send("o" + std::to_string(i), "ann", i % 2 == 0 ? 5 : 2);
  sent();
  const Answer mixed = run(steps, {"-o", "json"});
  ASSERT_EQ(mixed.exit_code, 0) << mixed.err;
  EXPECT_EQ(mixed.json()["applied"], 2) << mixed.out;
  EXPECT_EQ(mixed.json()["rejected"], 4) << mixed.out;
  EXPECT_EQ(ask({"GET", "t:stock"}), "0");
  EXPECT_EQ(ask({"HGET", "t:hash", "a"}), "9");
  EXPECT_EQ(ask({"LLEN", "t:list"}), "3");
  EXPECT_EQ(ask({"GET", "t:float"}), "2.25");
}

TEST_F(RunRedis, key_of_another_kind_parks_its_message_and_the_others_go_on) {
  ask({"SET", "t:points:bob", "text"});
  for (const char* member : {"ann", "bob", "cleo"}) send(member, member, 2);
  sent();
  const Answer answer =
      run("[[do]]\nredis = [\"INCRBY\", \"t:points:{member}\", \":points\"]\n", {"-o", "json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(answer.json()["parked"], 1);
  EXPECT_EQ(answer.json()["applied"], 2);
  EXPECT_EQ(ask({"GET", "t:points:ann"}), "2");
  EXPECT_EQ(ask({"GET", "t:points:cleo"}), "2");
  EXPECT_EQ(ask({"GET", "t:points:bob"}), "text");
}

// The same for a program: through the transaction of its handler.
TEST_F(RunRedis, commands_of_a_program_are_all_or_nothing_and_name_their_message) {
  const auto store = open_store(url_).value();
  const auto begin = [&] { return store->begin("program").value(); };
  {
    const auto transaction = begin();
    KeyValueTransaction& keys = *transaction->key_value();
    ASSERT_TRUE(keys.command(Lines{"INCRBY", "t:n", "5"}));
    ASSERT_TRUE(keys.command(Lines{"LPUSH", "t:list", "a"}));
    EXPECT_EQ(ask({"EXISTS", "t:n"}), "0") << "commands run when the transaction commits";
    ASSERT_TRUE(transaction->commit());
  }
  EXPECT_EQ(ask({"GET", "t:n"}), "5");
  {
    const auto transaction = begin();
    KeyValueTransaction& keys = *transaction->key_value();
    transaction->on_behalf_of(3);
    ASSERT_TRUE(keys.command(Lines{"LPUSH", "t:list", "b"}));
    ExpectReply expect;
    expect.is = 7;
    expect.otherwise = rejected("too many");
    ASSERT_TRUE(keys.command(Lines{"INCRBY", "t:n", "1"}, expect));
    const Status committed = transaction->commit();
    ASSERT_FALSE(committed);
    ASSERT_TRUE(committed.error().culprit);
    EXPECT_EQ(committed.error().culprit->message, 3u);
    EXPECT_EQ(committed.error().culprit->instead, rejected("too many"));
  }
  EXPECT_EQ(ask({"GET", "t:n"}), "5");
  EXPECT_EQ(ask({"LLEN", "t:list"}), "1");
  {
    const auto transaction = begin();
    ASSERT_TRUE(transaction->key_value()->put("t:n", "1"));
    const Status both = transaction->key_value()->command(Lines{"INCRBY", "t:n", "1"});
    ASSERT_FALSE(both);
    EXPECT_NE(both.error().text.find("use one of them"), std::string::npos) << both.error().text;
  }
}

TEST_F(RunRedis, check_of_a_new_store_leaves_the_same_keys) {
  const auto keys = [] {
    Lines found = Home::list({"KEYS", "*"});
    std::sort(found.begin(), found.end());
    return found;
  };
  const Lines before = keys();
  const Answer answer = run(counting, {"--check", "-o", "json"});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(answer.json()["store_state"], "none");
  EXPECT_EQ(keys(), before);
  EXPECT_EQ(run(counting).exit_code, 0);
  EXPECT_EQ(run(counting, {"--check", "-o", "json"}).json()["store_state"], "current");
}

TEST_F(RunRedis, command_that_the_server_has_renamed_is_refused_before_anything_runs) {
  std::ofstream(scratch_.path("renamed.conf")) << "rename-command HINCRBY hidden\n";
  // The server may run as another user.
  std::filesystem::permissions(scratch_.directory(), std::filesystem::perms::others_exec,
                               std::filesystem::perm_options::add);
  const LiveServer server("redis", {.settings = {"include=" + scratch_.path("renamed.conf")}});
  ::setenv("RUN_URL", server.url().c_str(), 1);
  for (const Lines& check : {Lines{"--check"}, Lines{}}) {
    const Answer answer = run(counting, check);
    EXPECT_EQ(answer.exit_code, 3) << answer.err;
    EXPECT_NE(answer.err.find("p.toml:14:9: step 1 of [[do]]: "), std::string::npos) << answer.err;
    EXPECT_NE(answer.err.find("the server has no command HINCRBY"), std::string::npos)
        << answer.err;
  }
}

TEST_F(RunRedis, what_cannot_be_part_of_a_transaction_is_refused_before_anything_runs) {
  const auto refused = [&](const std::string& steps, const std::string& part) {
    const Answer answer = run(steps, {"--check"});
    EXPECT_EQ(answer.exit_code, 3) << answer.err;
    EXPECT_NE(answer.err.find(part), std::string::npos) << answer.err;
    EXPECT_NE(answer.err.find("p.toml:14:"), std::string::npos) << answer.err;
  };
  const std::string uses = "[[do]]\nredis = [\"INCRBY\", \"{member}\", \":points\"]\n";
  refused("\n[[do]]\nsql = \"INSERT INTO t VALUES (:member, :points)\"\n", "runs no SQL");
  refused("\n[[do]]\nredis = [\"FLUSHALL\", \"x\"]\n" + uses, "cannot be part of a transaction");
  refused("\n[[do]]\nredis = [\"HINCRBY\", \"x\", \"1\"]\n" + uses, "2 arguments after its key");
}

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::RedisHome::server());
}
