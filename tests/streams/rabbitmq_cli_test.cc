// SPDX-License-Identifier: Apache-2.0
// The binary with RabbitMQ: topics, looking, copying, parking, and who may connect.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <thread>

#include "cli/program.h"
#include "streams/rabbitmq_home.h"
#include "testing/scratch.h"

namespace once::testing {
namespace {

using Words = std::vector<std::string>;
using Counts = std::map<std::string, int>;

Counts once_each(int from, int to) {
  Counts counts;
  for (int i = from; i < to; ++i) counts[fmt::format("order {}", i)] = 1;
  return counts;
}

void send(const std::string& url, int from, int to) {
  std::string lines;
  for (int i = from; i < to; ++i)
    lines += fmt::format(
        "{{\"id\": \"order {0}\", \"key\": \"k\", \"body\": \"{{\\\"n\\\": {0}}}\"}}\n", i);
  const Answer sent = run_once({"produce", url, "--json"}, lines);
  ASSERT_EQ(sent.exit_code, 0) << sent.err;
}

// What is in a queue, which keeps it.
std::vector<Json> in(const std::string& url) {
  const Answer looked = run_once({"consume", url + "&look=requeue", "-o", "json"});
  EXPECT_EQ(looked.exit_code, 0) << looked.err;
  std::vector<Json> messages;
  for (const std::string& line : looked.lines()) messages.push_back(Json::parse(line));
  return messages;
}
Counts ids_in(const std::string& url) {
  Counts counts;
  for (const Json& message : in(url)) ++counts[message["id"].get<std::string>()];
  return counts;
}

void expect_error(const Words& command, int exit_code, const std::string& tag,
                  const std::string& says) {
  Words words = command;
  words.insert(words.end(), {"-o", "json"});
  const Answer refused = run_once(words, "x\n");
  EXPECT_EQ(refused.exit_code, exit_code) << command[0] << refused.err;
  EXPECT_EQ(refused.error()["tag"], tag) << command[0] << refused.err;
  EXPECT_NE(refused.err.find(says), std::string::npos) << command[0] << refused.err;
  EXPECT_EQ(refused.err.find("-secret"), std::string::npos) << command[0] << refused.err;
}

class RabbitCli : public ::testing::Test {
 protected:
  // The password is not part of a file: the store would keep it.
  void SetUp() override {
    ::setenv("RABBIT_USER", "once:once-test-secret", 1);
    ASSERT_EQ(run_once({"topic", "create", queue("in") + "&type=" + type_}).exit_code, 0);
    ASSERT_EQ(run_once({"topic", "create", queue("out") + "&type=classic"}).exit_code, 0);
  }
  static std::string name(const std::string& what) {
    return fmt::format("{}_{}", what,
                       ::testing::UnitTest::GetInstance()->current_test_info()->name());
  }
  static std::string queue(const std::string& what) {
    return rabbitmq_server().url() + "?queue=" + name(what);
  }
  static std::string in_file(std::string url) {
    const std::string user = "once:once-test-secret";
    return url.replace(url.find(user), user.size(), "${RABBIT_USER}");
  }
  std::string pipeline(const std::string& more) const {
    const std::string path = scratch_.path("pipeline.toml");
    std::ofstream(path) << fmt::format(
        "scope = \"shop\"\n[source]\nurl = \"{}&end=stop\"\nid = \"carried\"\n"
        "[store]\nurl = \"sqlite:{}\"\n[run]\nretention = \"forever\"\nparked_max = \"none\"\n{}",
        in_file(queue("in")), scratch_.path("shop.db"), more);
    return path;
  }

  std::string type_ = "quorum";
  Scratch scratch_;
};

// RabbitMQ 3.10 finds no leader for a quorum queue that is killed within a second of its birth.
class RabbitKilled : public RabbitCli {
 protected:
  RabbitKilled() { type_ = "classic"; }
};

TEST_F(RabbitCli, topics_are_created_shown_and_deleted) {
  const std::string url = queue("in");
  EXPECT_EQ(run_once({"topic", "create", url}).exit_code, 0) << "again";
  expect_error({"topic", "create", url + "&type=classic"}, 3, "exists", "inequivalent arg");
  expect_error({"topic", "create", queue("x") + "&type=odd"}, 3, "config", "invalid");
  expect_error({"topic", "create", queue("x"), "--partitions", "2"}, 3, "config", "one partition");
  expect_error({"topic", "create", queue("x") + "&max_length=many"}, 3, "config", "a number");
  expect_error({"topic", "create", rabbitmq_server().url()}, 2, "url", "?queue=NAME");
  expect_error({"topic", "ls", rabbitmq_server().url()}, 3, "config", "rabbitmqctl list_queues");
  send(url, 0, 3);
  const Json shown = run_once({"topic", "show", url, "-o", "json"}).json();
  EXPECT_EQ(shown["topic"], name("in"));
  EXPECT_EQ(shown["messages_at_most"], 3);
  EXPECT_EQ(run_once({"topic", "delete", url}).exit_code, 0);
  EXPECT_EQ(run_once({"topic", "delete", url}).exit_code, 0) << "again";
  expect_error({"topic", "show", url}, 3, "missing", "create the queue first");
}

TEST_F(RabbitCli, looking_needs_leave_and_takes_nothing_out) {
  const std::string url = queue("in");
  send(url, 0, 5);
  expect_error({"consume", url}, 3, "config", "look=requeue");
  expect_error({"audit", url}, 3, "config", "look=requeue");
  expect_error({"consume", url + "&look=requeue", "--from", "3"}, 2, "usage", "no offsets");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ids_in(url), once_each(0, 5));
  const Json audit = run_once({"audit", url + "&look=requeue", "-o", "json"}).json();
  EXPECT_EQ(audit["messages"], 5);
}

TEST_F(RabbitCli, a_queue_is_copied_into_the_log_and_back_with_its_ids) {
  send(queue("in"), 0, 40);
  send(queue("in"), 0, 40);  // resends, which RabbitMQ does not recognise
  const std::string log = "file:" + scratch_.path("log");
  ASSERT_EQ(run_once({"topic", "create", log}).exit_code, 0);
  const std::string state = "sqlite:" + scratch_.path("bridge.db");
  const Answer there =
      run_once({"bridge", queue("in"), log, "--state", state, "--id", "carried", "-o", "json"});
  EXPECT_EQ(there.exit_code, 0) << there.err;
  EXPECT_EQ(there.json()["compared"], false) << there.out;
  Counts copied;
  for (const std::string& line : run_once({"consume", log, "-o", "json"}).lines())
    ++copied[Json::parse(line)["id"].get<std::string>()];
  EXPECT_EQ(copied, once_each(0, 40));
  const Answer back =
      run_once({"bridge", log, queue("out"), "--state", state, "--id", "carried", "-o", "json"});
  EXPECT_EQ(back.exit_code, 0) << back.err;
  EXPECT_EQ(ids_in(queue("out")), once_each(0, 40));
  EXPECT_TRUE(in(queue("in")).empty());
  expect_error({"bridge", queue("in"), queue("in"), "--state", state}, 2, "usage", "same topic");
}

TEST_F(RabbitCli, a_run_emits_with_the_promise_of_its_weakest_sink) {
  send(queue("in"), 0, 20);
  const std::string path =
      pipeline(fmt::format("[values]\nid = {{ id = true }}\n[[emit]]\nto = \"{}\"\nbody = \"id\"\n",
                           in_file(queue("out"))));
  const Answer checked = run_once({"run", path, "--check"});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_NE(checked.out.find("does not recognise resends: a crash can leave a copy there, which "
                             "has the same id"),
            std::string::npos)
      << checked.out;
  const Answer ran = run_once({"run", path});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ids_in(queue("out")), once_each(0, 20));
  EXPECT_TRUE(in(queue("in")).empty()) << "all were acknowledged";
}

TEST_F(RabbitCli, without_an_id_rule_a_queue_is_refused) {
  const std::string path = pipeline("[[do]]\nsql = \"SELECT 1\"\n");
  std::ifstream file(path);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::string rule = "id = \"carried\"";
  std::ofstream(path) << text.replace(text.find(rule), rule.size(), "id = \"none\"");
  expect_error({"run", path, "--check"}, 3, "config", "only an id tells");
}

// What a pipeline parks goes to an exchange, and from there to the queues that are bound to it.
TEST_F(RabbitCli, parked_messages_go_to_a_dead_letter_exchange) {
  ASSERT_EQ(run_once({"topic", "create",
                      queue("dead") + "&exchange=" + name("dlx") + "&exchange_type=fanout"})
                .exit_code,
            0);
  send(queue("in"), 0, 3);
  const std::string path = pipeline(fmt::format(
      "[values]\nm = {{ json = \"/m\", type = \"integer\" }}\n[[do]]\nsql = \"SELECT :m\"\n"
      "[park]\nto = \"{}?exchange={}\"\n",
      in_file(rabbitmq_server().url()), name("dlx")));
  const Answer ran = run_once({"run", path});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  const std::vector<Json> dead = in(queue("dead"));
  ASSERT_EQ(dead.size(), 3u);
  for (const Json& message : dead)
    EXPECT_NE(message.dump().find("once-parked-reason"), std::string::npos) << message.dump();
  EXPECT_EQ(ids_in(queue("dead")), once_each(0, 3));
}

// What RabbitMQ itself gives up on is read from the queue of its dead-letter exchange; why it is
// there is a header.
TEST_F(RabbitCli, what_the_broker_has_dead_lettered_is_read_with_its_reason) {
  ASSERT_EQ(run_once({"topic", "create",
                      queue("dead") + "&exchange=" + name("dlx") + "&exchange_type=fanout"})
                .exit_code,
            0);
  ASSERT_EQ(run_once({"topic", "create",
                      queue("short") + "&type=classic&dead_letter_exchange=" + name("dlx"),
                      "--retention-ms", "1"})
                .exit_code,
            0);
  send(queue("short"), 0, 3);
  for (int i = 0; i < 100 && in(queue("dead")).size() < 3; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(ids_in(queue("dead")), once_each(0, 3));
  for (const Json& message : in(queue("dead"))) {
    EXPECT_NE(message.dump().find("x-first-death-reason"), std::string::npos) << message.dump();
    EXPECT_NE(message.dump().find("expired"), std::string::npos) << message.dump();
  }
}

TEST_F(RabbitCli, what_is_wrong_is_named_at_once) {
  const std::string url = queue("in");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = url;
    return changed.replace(changed.find(from), from.size(), to);
  };
  for (const Words& command : {Words{"consume"}, Words{"produce"}, Words{"topic", "show"}}) {
    const auto on = [&](const std::string& wrong) {
      Words words = command;
      words.push_back(wrong);
      return words;
    };
    expect_error(on(with("once-test-secret", "wrong-secret")), 3, "denied",
                 "check user and password");
    expect_error(on(with("/once?", "/nowhere?")), 3, "missing", "create the virtual host");
    expect_error(on(with(name("in"), "nowhere")), 3, "missing", "create the queue first");
    expect_error(on(with("queue=", "qeue=")), 2, "url", "has no parameter \"qeue\"");
  }
}

// A broker that is away at the start is waited for.
TEST_F(RabbitKilled, a_run_waits_for_its_broker) {
  send(queue("in"), 0, 5);
  const std::string path =
      pipeline(fmt::format("[values]\nid = {{ id = true }}\n[[emit]]\nto = \"{}\"\nbody = \"id\"\n",
                           in_file(queue("out"))));
  rabbitmq_server().kill();
  expect_error({"run", path, "--wait", "0"}, 4, "away", "is the broker up");
  Program run({"run", path});
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  rabbitmq_server().start();
  const Answer ran = run.wait();
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ids_in(queue("out")), once_each(0, 5));
}

// --- Who may connect

class RabbitSecurity : public ::testing::Test {
 protected:
  static LiveServer& secure() {
    static LiveServer made("rabbitmq",
                           {.settings = {"ssl_options.fail_if_no_peer_cert=true"}, .tls = true});
    return made;
  }
  static std::string file(const std::string& name) { return secure().path("tls/" + name); }
  static std::string url(const std::string& authority, const std::string& client = "client") {
    const std::string pair =
        client.empty()
            ? ""
            : fmt::format("&certfile={}&keyfile={}", file(client + ".pem"), file(client + ".key"));
    return fmt::format("{}?queue=orders&cacertfile={}{}", secure().url(), file(authority), pair);
  }
  static void expect_refused(const std::string& wrong, const std::string& reason) {
    for (const Words& command :
         {Words{"consume", wrong}, Words{"produce", wrong}, Words{"topic", "show", wrong}}) {
      const auto began = std::chrono::steady_clock::now();
      expect_error(command, 3, "denied", reason);
      EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(6)) << command[0];
    }
  }
};

TEST_F(RabbitSecurity, certificates_of_both_sides_let_messages_through) {
  ASSERT_EQ(run_once({"topic", "create", url("ca.pem")}).exit_code, 0);
  send(url("ca.pem"), 0, 20);
  EXPECT_EQ(ids_in(url("ca.pem")), once_each(0, 20));
}

TEST_F(RabbitSecurity, what_nobody_vouches_for_is_refused) {
  expect_refused(url("other_ca.pem"), "certificate: ");
  expect_refused(secure().url() + "?queue=orders", "certificate: ");
  std::string other_name = url("ca.pem");
  other_name.replace(other_name.find("127.0.0.1"), 9, "localhost");
  expect_refused(other_name, "hostname mismatch");
  expect_refused(url("ca.pem", ""), "certfile");
  expect_refused(url("missing.pem"), "cannot read cacertfile");
}

TEST_F(RabbitSecurity, the_wrong_port_is_suspected) {
  std::string plain = secure().url() + "?queue=orders";
  plain.replace(0, 5, "amqp");
  const Answer away = run_once({"topic", "show", plain, "-o", "json"});
  EXPECT_EQ(away.error()["tag"], "away") << away.err;
  EXPECT_NE(away.err.find("amqps://?"), std::string::npos) << away.err;
  std::string encrypted = url("ca.pem");
  const std::string port = std::to_string(secure().port());
  encrypted.replace(encrypted.find(port), port.size(), std::to_string(rabbitmq_server().port()));
  expect_refused(encrypted, "check the port");
}

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::rabbitmq_server());
}
