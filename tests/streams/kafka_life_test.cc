// SPDX-License-Identifier: Apache-2.0
// How `once run`, `bridge` and `consume` begin and end with a real Kafka and a real PostgreSQL that
// are killed, frozen or not there yet. Whatever happens, the next run leaves every message with
// exactly one effect, in order.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "cli/program.h"
#include "testing/chaos_proxy.h"
#include "testing/live_server.h"
#include "testing/postgres_home.h"
#include "testing/scratch.h"

namespace once::testing {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

// What every command promises after SIGTERM.
constexpr seconds stop_limit(10);

LiveServer& kafka() {
  static LiveServer made("kafka");
  return made;
}

class KafkaLife : public ::testing::Test {
 protected:
  static constexpr int count = 400;

  void SetUp() override {
    static int tests = 0;
    name_ = fmt::format("life{}", ++tests);
    place_ = PostgresHome::make_place();
    sql("CREATE TABLE effect (number BIGSERIAL PRIMARY KEY, id TEXT NOT NULL)");
    create(topic(), 1);
  }

  std::string topic(const std::string& end = "") const {
    return fmt::format("{}/{}{}", kafka().url(), name_, end);
  }
  std::string source(const std::string& more = "") const {
    return fmt::format("{}?group={}{}", topic(), name_, more);
  }
  std::string store() const { return PostgresHome::in(place_); }
  std::string store_at(std::uint16_t port) const {
    return PostgresHome::in(place_, PostgresHome::server().url_at(port));
  }

  static void create(const std::string& url, int partitions) {
    const Answer made =
        run_once({"topic", "create", url, "--partitions", std::to_string(partitions)});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }

  void send(int from, int to) const {
    std::string lines;
    for (int i = from; i < to; ++i)
      lines += Json{{"id", fmt::format("order {:04}", i)},
                    {"key", fmt::format("customer {}", i % 31)},
                    {"body", "{}"}}
                   .dump() +
               "\n";
    const Answer sent = run_once({"produce", topic(), "--json"}, lines);
    ASSERT_EQ(sent.exit_code, 0) << sent.err;
  }

  void sql(const std::string& statements) const { PostgresHome::administer(statements, store()); }

  std::vector<std::string> effects() const {
    auto admin = PgConnection::open(store(), "admin").value();
    const auto rows = admin->ask("SELECT id FROM effect ORDER BY number").value();
    std::vector<std::string> ids;
    for (int row = 0; row < rows->rows(); ++row) ids.push_back(rows->bytes(row, 0));
    return ids;
  }

  // Whether so many effects are there before the time is up.
  bool reaches(std::size_t wanted, seconds limit) const {
    const auto deadline = Clock::now() + limit;
    while (effects().size() < wanted) {
      if (Clock::now() > deadline) return false;
      std::this_thread::sleep_for(milliseconds(50));
    }
    return true;
  }

  std::string file(const std::string& source_url, const std::string& store_url,
                   const std::string& more = "") {
    const std::string path = scratch_.path(fmt::format("{}.toml", ++files_));
    std::ofstream(path) << "scope = \"life\"\n[source]\nurl = \"" << source_url
                        << "\"\nid = \"carried\"\n[store]\nurl = \"" << store_url
                        << "\"\n[[do]]\nsql = \"INSERT INTO effect (id) VALUES (:id)\"\n"
                        << more;
    return path;
  }

  // SIGTERM, and how long it takes to end: by itself, or killed by that signal, never by a crash.
  static milliseconds stop(Program& program, Answer* answer = nullptr) {
    const auto began = Clock::now();
    EXPECT_EQ(::kill(program.pid(), SIGTERM), 0);
    const Answer ended = program.wait();
    EXPECT_TRUE(ended.exit_code < 128 || ended.exit_code == 128 + SIGTERM)
        << ended.exit_code << ": " << ended.err;
    if (answer != nullptr) *answer = ended;
    return std::chrono::duration_cast<milliseconds>(Clock::now() - began);
  }

  // The next run finishes everything: each message has one effect, and they are in order.
  void expect_all_once(int sent) {
    const std::string path =
        file(source("&session.timeout.ms=6000"), store(), "[run]\nat_end = \"stop\"\n");
    const Answer rest = run_once({"run", path});
    EXPECT_EQ(rest.exit_code, 0) << rest.err;
    std::vector<std::string> wanted;
    for (int i = 0; i < sent; ++i) wanted.push_back(fmt::format("order {:04}", i));
    EXPECT_EQ(effects(), wanted);
  }

  const Scratch scratch_;
  std::string name_;
  std::string place_;
  int files_ = 0;
};

// --- SIGTERM, in every state

TEST_F(KafkaLife, sigterm_while_it_works_drains_and_leaves) {
  send(0, count);
  Program run({"run", file(source(), store())});
  ASSERT_TRUE(reaches(count, seconds(60)));
  Answer ended;
  EXPECT_LT(stop(run, &ended), seconds(5));
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  expect_all_once(count);
}

TEST_F(KafkaLife, sigterm_while_kafka_is_gone) {
  send(0, count);
  create("file:" + scratch_.path("copy"), 1);
  Program run({"run", file(source(), store())});
  Program bridge({"bridge", topic(), "file:" + scratch_.path("copy"), "--state",
                  "sqlite:" + scratch_.path("state.db"), "--follow"});
  Program consume({"consume", source("2"), "--follow"}, "/dev/null");
  ASSERT_TRUE(reaches(count, seconds(60)));
  kafka().kill();
  std::this_thread::sleep_for(seconds(2));
  EXPECT_LT(stop(run), stop_limit);
  EXPECT_LT(stop(bridge), stop_limit);
  EXPECT_LT(stop(consume), stop_limit);
  kafka().start();
  send(count, 2 * count);
  expect_all_once(2 * count);
}

TEST_F(KafkaLife, sigterm_while_kafka_is_frozen) {
  send(0, count);
  Program run({"run", file(source(), store())});
  Program consume({"consume", source("2"), "--follow"}, "/dev/null");
  ASSERT_TRUE(reaches(count, seconds(60)));
  kafka().freeze();
  std::this_thread::sleep_for(seconds(2));
  EXPECT_LT(stop(run), stop_limit);
  EXPECT_LT(stop(consume), stop_limit);
  kafka().thaw();
  send(count, 2 * count);
  expect_all_once(2 * count);
}

TEST_F(KafkaLife, sigterm_while_the_store_is_gone) {
  send(0, count);
  Program run({"run", file(source(), store())});
  ASSERT_TRUE(reaches(count, seconds(60)));
  PostgresHome::server().kill();
  send(count, 2 * count);
  std::this_thread::sleep_for(seconds(1));
  EXPECT_LT(stop(run), stop_limit);
  PostgresHome::server().start();
  expect_all_once(2 * count);
}

TEST_F(KafkaLife, sigterm_while_the_store_is_frozen) {
  send(0, count);
  Program run({"run", file(source(), store())});
  ASSERT_TRUE(reaches(count, seconds(60)));
  PostgresHome::server().freeze();
  send(count, 2 * count);
  std::this_thread::sleep_for(seconds(1));
  Answer ended;
  EXPECT_LT(stop(run, &ended), stop_limit);
  EXPECT_EQ(ended.exit_code, 128 + SIGTERM) << ended.err;
  EXPECT_NE(ended.err.find("ending as after a crash"), std::string::npos) << ended.err;
  PostgresHome::server().thaw();
  expect_all_once(2 * count);
}

TEST_F(KafkaLife, sigterm_while_kafka_and_the_store_are_frozen) {
  send(0, count);
  Program run({"run", file(source(), store())});
  ASSERT_TRUE(reaches(1, seconds(60)));
  PostgresHome::server().freeze();
  kafka().freeze();
  std::this_thread::sleep_for(seconds(1));
  EXPECT_LT(stop(run), stop_limit);
  PostgresHome::server().thaw();
  kafka().thaw();
  expect_all_once(count);
}

TEST_F(KafkaLife, sigterm_in_the_middle_of_a_commit) {
  sql("CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS "
      "$$ BEGIN PERFORM pg_sleep(60); RETURN NULL; END $$;"
      "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON effect DEFERRABLE INITIALLY DEFERRED "
      "FOR EACH ROW EXECUTE FUNCTION pause()");
  send(0, count);
  Program run({"run", file(source(), store())});
  auto admin = PgConnection::open(store(), "admin").value();
  const auto committing = [&] {
    return admin->ask("SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep'").value();
  };
  const auto deadline = Clock::now() + seconds(60);
  while (committing()->rows() == 0 && Clock::now() < deadline)
    std::this_thread::sleep_for(milliseconds(50));
  ASSERT_EQ(committing()->rows(), 1);
  EXPECT_LT(stop(run), stop_limit);
  sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep';"
      "DROP TRIGGER late ON effect");
  expect_all_once(count);
}

// A member that does not answer keeps the others from joining until its session is over.
TEST_F(KafkaLife, sigterm_during_the_first_join) {
  send(0, count);
  Program first({"run", file(source("&session.timeout.ms=30000"), store())});
  ASSERT_TRUE(reaches(count, seconds(60)));
  ASSERT_EQ(::kill(first.pid(), SIGSTOP), 0);
  Program second({"run", file(source(), store())});
  std::this_thread::sleep_for(seconds(4));
  EXPECT_LT(stop(second), stop_limit);
  ASSERT_EQ(::kill(first.pid(), SIGCONT), 0);
  send(count, 2 * count);
  EXPECT_TRUE(reaches(2 * count, seconds(20))) << "the first member is held up";
  EXPECT_LT(stop(first), stop_limit);
  expect_all_once(2 * count);
}

TEST_F(KafkaLife, sigterm_while_the_relay_waits) {
  create(topic("_out"), 1);
  send(0, count);
  const std::string emit = fmt::format("[[emit]]\nto = \"{}\"\n", topic("_out"));
  const std::string from = "file:" + scratch_.path("from");
  create(from, 1);
  Program run({"run", file(from, store(), emit)});
  ASSERT_EQ(run_once({"produce", from, "--json"}, R"({"id":"a","body":"{}"})"
                                                  "\n")
                .exit_code,
            0);
  ASSERT_TRUE(reaches(1, seconds(60)));
  kafka().freeze();
  ASSERT_EQ(run_once({"produce", from, "--json"}, R"({"id":"b","body":"{}"})"
                                                  "\n")
                .exit_code,
            0);
  ASSERT_TRUE(reaches(2, seconds(60)));
  std::this_thread::sleep_for(seconds(1));
  EXPECT_LT(stop(run), stop_limit);
  kafka().thaw();
  const Answer rest = run_once({"run", file(from, store(), emit + "[run]\nat_end = \"stop\"\n")});
  EXPECT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_EQ(effects(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(run_once({"consume", topic("_out")}).lines().size(), 2u);
}

TEST_F(KafkaLife, sigterm_while_the_source_is_opened) {
  kafka().freeze();
  Program run({"run", file(source(), store())});
  Program bridge({"bridge", topic(), "file:" + scratch_.path("copy"), "--state",
                  "sqlite:" + scratch_.path("state.db")});
  Program consume({"consume", topic()});
  std::this_thread::sleep_for(seconds(1));
  EXPECT_LT(stop(run), seconds(2));
  EXPECT_LT(stop(bridge), seconds(2));
  EXPECT_LT(stop(consume), seconds(2));
  kafka().thaw();
}

TEST_F(KafkaLife, a_second_signal_ends_at_once) {
  send(0, count);
  Program run({"run", file(source(), store())});
  ASSERT_TRUE(reaches(count, seconds(60)));
  PostgresHome::server().freeze();
  send(count, 2 * count);
  std::this_thread::sleep_for(seconds(1));
  ASSERT_EQ(::kill(run.pid(), SIGTERM), 0);
  std::this_thread::sleep_for(milliseconds(500));
  EXPECT_LT(stop(run), seconds(2));
  PostgresHome::server().thaw();
  expect_all_once(2 * count);
}

// --- The place in the group

// Its store does not answer, so that nothing can be finished; the others must not wait for the end
// of its session.
TEST_F(KafkaLife, a_member_that_cannot_finish_still_leaves_its_group) {
  ChaosProxy proxy(PostgresHome::server().port());
  create(topic("_two"), 2);
  const std::string from =
      fmt::format("{}?group={}_two&session.timeout.ms=45000", topic("_two"), name_);
  Program stuck({"run", file(from, store_at(proxy.port()))});
  Program other({"run", file(from, store())});
  const auto tell = [&](int from_id, int to_id) {
    std::string lines;
    for (int i = from_id; i < to_id; ++i)
      lines +=
          Json{{"id", fmt::format("{}", i)}, {"key", fmt::format("{}", i)}, {"body", "{}"}}.dump() +
          "\n";
    ASSERT_EQ(run_once({"produce", topic("_two"), "--json"}, lines).exit_code, 0);
  };
  tell(0, 100);
  ASSERT_TRUE(reaches(100, seconds(60)));
  std::this_thread::sleep_for(seconds(8));  // until both have their share
  proxy.stall(true);
  tell(100, 200);
  std::this_thread::sleep_for(seconds(1));
  EXPECT_LT(stop(stuck), stop_limit);
  proxy.stall(false);
  EXPECT_TRUE(reaches(200, seconds(15))) << "the group waits for the one that has gone";
  EXPECT_LT(stop(other), stop_limit);
  EXPECT_EQ(effects().size(), 200u);
}

TEST_F(KafkaLife, checking_or_trying_a_file_does_not_disturb_the_group) {
  send(0, count);
  const std::string path = file(source(), store());
  Program run({"run", path, "--stats-every", "1"});
  ASSERT_TRUE(reaches(count, seconds(60)));
  const auto taken = [&] {
    auto admin = PgConnection::open(store(), "admin").value();
    const auto row = admin->ask("SELECT max(fence) FROM once_position").value();
    return row->number(0, 0);
  };
  const auto before = taken();
  EXPECT_EQ(run_once({"run", path, "--check"}).exit_code, 0);
  send(count, 2 * count);
  const Answer tried = run_once({"run", path, "--try", "20"});
  EXPECT_EQ(tried.exit_code, 0) << tried.err;
  EXPECT_TRUE(reaches(2 * count, seconds(30)));
  EXPECT_EQ(taken(), before) << "a partition changed its owner";
  EXPECT_LT(stop(run), stop_limit);
}

// --- A member that comes back

class KafkaReturn : public KafkaLife {
 protected:
  // Kills a member and starts it again; how long it takes until its messages have effects.
  milliseconds back_after(int how, const std::string& more) {
    send(0, count);
    const std::string path = file(source(more), store());
    {
      Program run({"run", path});
      EXPECT_TRUE(reaches(count, seconds(60)));
      std::this_thread::sleep_for(seconds(1));
      EXPECT_EQ(::kill(run.pid(), how), 0);
      (void)run.wait();
    }
    send(count, 2 * count);
    const auto began = Clock::now();
    Program again({"run", path});
    EXPECT_TRUE(reaches(2 * count, seconds(60)));
    const auto took = std::chrono::duration_cast<milliseconds>(Clock::now() - began);
    EXPECT_LT(stop(again), stop_limit);
    std::vector<std::string> wanted;
    for (int i = 0; i < 2 * count; ++i) wanted.push_back(fmt::format("order {:04}", i));
    EXPECT_EQ(effects(), wanted);
    return took;
  }
};

TEST_F(KafkaReturn, a_static_member_is_back_at_once_after_kill_9) {
  EXPECT_LT(back_after(SIGKILL, "&member=one"), seconds(6));
}

TEST_F(KafkaReturn, a_static_member_is_back_at_once_after_sigterm) {
  EXPECT_LT(back_after(SIGTERM, "&member=one"), seconds(6));
}

TEST_F(KafkaReturn, a_dynamic_member_is_back_at_once_after_sigterm) {
  EXPECT_LT(back_after(SIGTERM, "&session.timeout.ms=45000"), seconds(6));
}

TEST_F(KafkaReturn, a_dynamic_member_is_back_after_its_session_when_it_was_killed) {
  EXPECT_LT(back_after(SIGKILL, ""), seconds(20));
}

TEST_F(KafkaReturn, two_processes_with_one_member_name_are_told) {
  send(0, count);
  const std::string path = file(source("&member=one"), store());
  Program first({"run", path, "-o", "json"});
  ASSERT_TRUE(reaches(count, seconds(60)));
  Program second({"run", path});
  const Answer ended = first.wait();
  EXPECT_EQ(ended.exit_code, 3) << ended.err;
  EXPECT_EQ(ended.error()["tag"], "fenced") << ended.err;
  EXPECT_LT(stop(second), stop_limit);
}

// --- Away at the start

class KafkaAway : public KafkaLife {
 protected:
  static constexpr const char* nobody = "kafka://127.0.0.1:1/orders?group=g";
};

TEST_F(KafkaAway, a_limit_of_nothing_ends_with_code_4) {
  for (const std::string& path :
       {file(nobody, store()), file(source(), "postgresql://127.0.0.1:1/once"),
        file("file:" + scratch_.path("from"), store(),
             "[[emit]]\nto = \"kafka://127.0.0.1:1/orders\"\n")}) {
    if (path.ends_with("3.toml")) create("file:" + scratch_.path("from"), 1);
    const auto began = Clock::now();
    const Answer ended = run_once({"run", path, "--wait", "0", "-o", "json"});
    EXPECT_EQ(ended.exit_code, 4) << ended.err;
    EXPECT_EQ(ended.error()["tag"], "away") << ended.err;
    EXPECT_EQ(ended.err.find("waiting for"), std::string::npos) << ended.err;
    EXPECT_LT(Clock::now() - began, seconds(8));
  }
  EXPECT_EQ(run_once({"run", file(nobody, store()), "--check"}).exit_code, 4);
}

TEST_F(KafkaAway, a_limit_is_kept_and_what_is_missing_is_named) {
  const auto began = Clock::now();
  const Answer ended = run_once({"run", file(nobody, store()), "--wait", "5"});
  EXPECT_EQ(ended.exit_code, 4) << ended.err;
  EXPECT_NE(ended.err.find("waiting for the source: kafka://127.0.0.1:1/orders"), std::string::npos)
      << ended.err;
  EXPECT_GT(Clock::now() - began, seconds(5));
  EXPECT_LT(Clock::now() - began, seconds(14));
}

TEST_F(KafkaAway, sigterm_ends_the_waiting_at_once) {
  Program run({"run", file(nobody, store())});
  std::this_thread::sleep_for(seconds(5));
  Answer ended;
  EXPECT_LT(stop(run, &ended), seconds(2));
  EXPECT_EQ(ended.exit_code, 128 + SIGTERM);
  EXPECT_NE(ended.err.find("waiting for the source"), std::string::npos) << ended.err;
}

TEST_F(KafkaAway, a_store_and_a_broker_that_come_later_are_waited_for) {
  send(0, count);
  PostgresHome::server().kill();
  kafka().kill();
  Program run({"run", file(source(), store())});
  std::this_thread::sleep_for(seconds(6));
  kafka().start();
  std::this_thread::sleep_for(seconds(3));
  PostgresHome::server().start();
  EXPECT_TRUE(reaches(count, seconds(60)));
  Answer ended;
  EXPECT_LT(stop(run, &ended), stop_limit);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_NE(ended.err.find("waiting for the source"), std::string::npos) << ended.err;
  expect_all_once(count);
}

TEST_F(KafkaAway, what_waiting_does_not_cure_ends_at_once) {
  std::string wrong = store();
  wrong.replace(wrong.find("once-test-secret"), 16, "wrong-secret-word");
  const Answer denied = run_once({"run", file(source(), wrong), "-o", "json"});
  EXPECT_EQ(denied.exit_code, 3) << denied.err;
  EXPECT_EQ(denied.error()["tag"], "denied") << denied.err;
  const Answer missing =
      run_once({"run", file(topic("_none") + "?group=g", store()), "-o", "json"});
  EXPECT_EQ(missing.exit_code, 3) << missing.err;
  EXPECT_EQ(missing.error()["tag"], "missing") << missing.err;
  const Answer url = run_once({"run", file(topic() + "?gruop=g", store()), "-o", "json"});
  EXPECT_EQ(url.exit_code, 2) << url.err;
}

// A broker or a proxy that is starting hangs up as one does that speaks another protocol.
TEST_F(KafkaAway, a_broker_that_hangs_up_for_two_seconds_is_not_called_denied) {
  send(0, 3);
  ChaosProxy proxy(kafka().port());
  proxy.hang_up(true);
  std::thread later([&] {
    std::this_thread::sleep_for(seconds(2));
    proxy.hang_up(false);
  });
  const Answer read =
      run_once({"consume", fmt::format("kafka://127.0.0.1:{}/{}", proxy.port(), name_)});
  later.join();
  EXPECT_EQ(read.exit_code, 0) << read.err;
  EXPECT_EQ(read.lines().size(), 3u);
}

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (!once::testing::PostgresHome::server().missing().empty())
    return once::testing::run_all_on(once::testing::PostgresHome::server());
  return once::testing::run_all_on(once::testing::kafka());
}
