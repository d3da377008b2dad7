// SPDX-License-Identifier: Apache-2.0
// The binary with a real Mosquitto: pipelines that read and emit, bridges that are killed, and who
// only looks.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "cli/program.h"
#include "streams/mqtt_broker.h"
#include "testing/scratch.h"

namespace once::testing {
namespace {

LiveServer& server() {
  // It writes its state when it ends.
  static LiveServer mosquitto("mosquitto",
                              {.settings = {"autosave_on_changes=false", "autosave_interval=0"}});
  return mosquitto;
}

std::string lines(int from, int to) {
  std::string text;
  for (int i = from; i < to; ++i)
    text += Json{{"id", fmt::format("order {}", i)},
                 {"key", fmt::format("customer {}", i % 13)},
                 {"headers", {{"n", fmt::format("{}", i)}}},
                 {"body", fmt::format(R"({{"order":{}}})", i)}}
                .dump() +
            "\n";
  return text;
}

void send(const std::string& url, int from, int to) {
  const Answer sent = run_once({"produce", url, "--json"}, lines(from, to));
  ASSERT_EQ(sent.exit_code, 0) << sent.err;
}

std::multiset<std::string> ids_in(const Answer& consumed) {
  std::multiset<std::string> found;
  for (const std::string& line : consumed.lines())
    found.insert(Json::parse(line)["id"].get<std::string>());
  return found;
}

std::multiset<std::string> ids(int from, int to) {
  std::multiset<std::string> wanted;
  for (int i = from; i < to; ++i) wanted.insert(fmt::format("order {}", i));
  return wanted;
}

class MqttCli : public ::testing::Test {
 protected:
  void SetUp() override { ::unsetenv("ONCE_POINT"); }
  void TearDown() override { ::unsetenv("ONCE_POINT"); }

  static std::string broker() { return server().url(); }
  std::string state(const std::string& name = "state") const {
    return "sqlite:" + scratch_.path(name + ".db");
  }
  std::string new_log(const std::string& name) const {
    const std::string url = "file:" + scratch_.path(name);
    EXPECT_EQ(run_once({"topic", "create", url}).exit_code, 0);
    return url;
  }

  const Scratch scratch_;
};

TEST_F(MqttCli, who_only_looks_leaves_the_session_alone) {
  const std::string url = broker() + "/looked/at";
  const std::string session = url + "?client=looked";
  subscribe_mqtt(session);
  send(url, 0, 5);
  send(url + "?retain=yes", 5, 6);
  for (const std::string& command : {std::string("consume"), std::string("audit")}) {
    const Answer looked = run_once({command, session, "-o", "json"});
    EXPECT_EQ(looked.exit_code, 0) << looked.err;
    EXPECT_NE(looked.err.find("is a queue"), std::string::npos) << looked.err;
    if (command == "consume")
      EXPECT_EQ(ids_in(looked), ids(5, 6)) << "what is retained";
    else
      EXPECT_EQ(looked.json()["messages"], 1);
  }
  const Answer offsets = run_once({"consume", session, "--last", "1"});
  EXPECT_EQ(offsets.exit_code, 2) << offsets.err;
  const std::string to = new_log("to");
  const Answer copied =
      run_once({"bridge", session, to, "--id", "carried", "--state", state("b"), "-o", "json"});
  EXPECT_EQ(copied.exit_code, 0) << copied.err;
  EXPECT_EQ(copied.json(), (Json{{"compared", false}, {"parked", 0}, {"ok", true}}));
  EXPECT_EQ(ids_in(run_once({"consume", to, "-o", "json"})), ids(0, 6)) << "all were still there";
  const Answer traced =
      run_once({"trace", "order 5", "--store", state("b"), "--source", session, "-o", "json"});
  EXPECT_NE(traced.out.find("\"source\""), std::string::npos) << traced.out << traced.err;
}

TEST_F(MqttCli, a_bridge_from_mqtt_goes_on_after_every_kill) {
  const std::string url = broker() + "/bridged";
  const std::string session = url + "?client=bridge";
  const std::string to = new_log("to");
  const std::vector<std::string> bridge{"bridge",  session,   to,     "--id",
                                        "carried", "--state", state()};
  ASSERT_EQ(run_once(bridge).exit_code, 0) << "there is a session now";
  send(url, 0, 500);
  for (const char* point : {"lane_before_commit", "lane_after_commit", "relay_after_append"}) {
    ::setenv("ONCE_POINT", point, 1);
    EXPECT_EQ(run_once(bridge).exit_code, 128 + SIGKILL) << point;
    ::unsetenv("ONCE_POINT");
  }
  send(url, 400, 700);
  const Answer rest = run_once(bridge);
  EXPECT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_EQ(ids_in(run_once({"consume", to, "-o", "json"})), ids(0, 700));
}

// A copy that a crash leaves has the id of its original.
TEST_F(MqttCli, a_bridge_into_mqtt_loses_nothing_by_a_kill) {
  const std::string from = new_log("from");
  ASSERT_EQ(run_once({"produce", from, "--json"}, lines(0, 300)).exit_code, 0);
  const std::string url = broker() + "/copied";
  const std::string to = new_log("to");
  const std::vector<std::string> back{"bridge",  url + "?client=back", to, "--id", "carried",
                                      "--state", state("back")};
  ASSERT_EQ(run_once(back).exit_code, 0);
  const std::vector<std::string> bridge{"bridge", from, url, "--state", state()};
  ::setenv("ONCE_POINT", "relay_after_append", 1);
  EXPECT_EQ(run_once(bridge).exit_code, 128 + SIGKILL);
  ::unsetenv("ONCE_POINT");
  const Answer rest = run_once(bridge);
  EXPECT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_NE(rest.err.find("does not recognise resends"), std::string::npos) << rest.err;
  ASSERT_EQ(run_once(back).exit_code, 0);
  EXPECT_EQ(ids_in(run_once({"consume", to, "-o", "json"})), ids(0, 300));
}

TEST_F(MqttCli, a_run_reads_and_emits) {
  const std::string orders = broker() + "/run/orders";
  const std::string paid = broker() + "/run/paid";
  const std::string file = scratch_.path("run.toml");
  std::ofstream(file) << fmt::format(R"(
scope = "shop"
[source]
url = "{}?client=shop&qos=2&end=stop"
id = "carried"
[store]
url = "{}"
[[emit]]
to = "mqtt://once:${{MQTT_PASSWORD}}@127.0.0.1:{}/run/paid?qos=2"
)",
                                     orders, state(), server().port());
  ::setenv("MQTT_PASSWORD", "once-test-secret", 1);
  subscribe_mqtt(paid + "?client=till");
  const Answer checked = run_once({"run", file, "--check"});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_NE((checked.out + checked.err).find("effectively once per id (carried)"),
            std::string::npos)
      << checked.out << checked.err;
  EXPECT_NE((checked.out + checked.err).find("QoS 2 is exactly once only"), std::string::npos);
  ASSERT_EQ(run_once({"run", file}).exit_code, 0) << "there is a session now";
  send(orders, 0, 50);
  send(orders, 20, 60);
  const Answer ran = run_once({"run", file});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  const std::string to = new_log("to");
  const Answer copied =
      run_once({"bridge", paid + "?client=till", to, "--id", "carried", "--state", state("till")});
  EXPECT_EQ(copied.exit_code, 0) << copied.err;
  EXPECT_EQ(ids_in(run_once({"consume", to, "-o", "json"})).size(), 60u);
}

TEST_F(MqttCli, what_cannot_be_promised_is_refused_before_anything_runs) {
  const std::string to = new_log("to");
  const Answer no_id = run_once({"bridge", broker() + "/a?client=x", to, "--state", state()});
  EXPECT_NE(no_id.exit_code, 0);
  EXPECT_NE(no_id.err.find("id rule"), std::string::npos) << no_id.err;
  const Answer no_client = run_once({"bridge", broker() + "/a", to, "--state", state()});
  EXPECT_EQ(no_client.exit_code, 2);
  EXPECT_NE(no_client.err.find("client=NAME"), std::string::npos) << no_client.err;
  const Answer no_place = run_once({"produce", broker() + "/a?version=3"}, "x\n");
  EXPECT_EQ(no_place.exit_code, 2);
  EXPECT_NE(no_place.err.find("id=body"), std::string::npos) << no_place.err;
  for (const Answer& answer : {no_id, no_client, no_place})
    EXPECT_EQ(answer.err.find("once-test-secret"), std::string::npos) << answer.err;
}

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::server());
}
