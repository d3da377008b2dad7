// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "program.h"
#include "testing/scratch.h"

namespace once {
namespace {

using testing::Answer;
using testing::Json;
using testing::Program;
using testing::run_once;
using testing::Scratch;

// The demo's database, looked at with nothing of ours.
class Sqlite {
 public:
  explicit Sqlite(const std::string& path) {
    sqlite3* raw = nullptr;
    sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr);
    connection_.reset(raw);
    sqlite3_busy_timeout(raw, 10'000);
  }
  // The first field of the first row; -1 when there is none.
  std::int64_t number(const std::string& statement) {
    sqlite3_stmt* raw = nullptr;
    if (sqlite3_prepare_v2(connection_.get(), statement.c_str(), -1, &raw, nullptr) != SQLITE_OK)
      return -1;
    const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> prepared(raw, sqlite3_finalize);
    return sqlite3_step(raw) == SQLITE_ROW ? sqlite3_column_int64(raw, 0) : -1;
  }
  bool run(const std::string& statement) {
    return sqlite3_exec(connection_.get(), statement.c_str(), nullptr, nullptr, nullptr) ==
           SQLITE_OK;
  }

 private:
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> connection_{nullptr, sqlite3_close};
};

// The processes whose parent is `pid`.
int children_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children");
  int count = 0;
  for (std::string child; file >> child;) ++count;
  return count;
}

bool mentions(const std::string& path, const std::string& text) {
  std::ifstream file(path, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return whole.find(text) != std::string::npos;
}

// Living processes of the demo in this directory, found by their command lines.
int players_in(const std::string& directory) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (mentions(entry.path().string() + "/cmdline", directory)) ++count;
  }
  return count;
}

TEST(Demo, small_one_keeps_the_promise_and_its_json_adds_up) {
  const Answer run =
      run_once({"demo", "--messages", "300", "--kills", "8", "--seed", "3", "-o", "json"});
  ASSERT_EQ(run.exit_code, 0) << run.err << run.out;
  const Json result = run.json();
  EXPECT_EQ(result["sent"], 300);
  EXPECT_EQ(result["effects"], 300);
  EXPECT_EQ(result["payments"], 300);
  EXPECT_EQ(result["points"], 300);
  EXPECT_EQ(result["lost"], 0);
  EXPECT_EQ(result["duplicated"], 0);
  EXPECT_EQ(result["out_of_order"], 0);
  EXPECT_EQ(result["balanced"], true);
  EXPECT_EQ(result["kills"], 8);
  EXPECT_GE(result["delivered"], result["in_log"]);
  EXPECT_EQ(result["in_log"].get<int>(),
            300 + result["duplicates"]["on_send_new_stamp"].get<int>());
  EXPECT_GT(result["duplicates"]["on_send_new_stamp"], 0);
  EXPECT_TRUE(result["naive"].contains("lost"));
  EXPECT_TRUE(result["naive"].contains("duplicated"));
  EXPECT_FALSE(std::filesystem::exists(result["directory"].get<std::string>()))
      << "its own directory is gone";
}

TEST(Demo, naive_recipe_breaks_under_the_same_kills) {
  const Answer run = run_once({"demo", "--messages", "300", "--kills", "30", "-o", "json"});
  ASSERT_EQ(run.exit_code, 0) << run.err << run.out;
  const Json naive = run.json()["naive"];
  EXPECT_EQ(naive["kills"], 30);
  EXPECT_GT(naive["lost"].get<int>() + naive["duplicated"].get<int>(), 0) << naive;
  EXPECT_GT(run.json()["fenced"], 0) << "a replaced owner woke up and was refused";
  EXPECT_GT(run.json()["duplicates"]["on_send_same_stamp"], 0);
  EXPECT_GT(run.json()["duplicates"]["on_delivery"], 0);
  EXPECT_GT(run.json()["duplicates"]["on_rebalance"], 0);
}

TEST(Demo, without_kills_and_copies_both_ways_keep_the_books) {
  const Answer run =
      run_once({"demo", "--messages", "100", "--kills", "0", "--duplicates", "0", "-o", "json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json result = run.json();
  EXPECT_EQ(result["kills"], 0);
  EXPECT_EQ(result["duplicates"]["on_send_new_stamp"], 0);
  EXPECT_EQ(result["naive"]["lost"], 0) << "the naive recipe is not made worse than it is";
  EXPECT_EQ(result["naive"]["duplicated"], 0);
  EXPECT_EQ(result["naive"]["balanced"], true);
}

TEST(Demo, directory_that_was_asked_for_stays_and_ordinary_tools_read_it) {
  Scratch scratch;
  const std::string directory = scratch.path("shop");
  const Answer run = run_once({"demo", "--messages", "200", "--kills", "4", "--dir", directory});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("books balanced"), std::string::npos) << run.out;
  EXPECT_NE(run.err.find("sqlite3 " + directory + "/shop.db"), std::string::npos) << run.err;
  {
    Sqlite shop(directory + "/shop.db");
    EXPECT_EQ(shop.number("SELECT count(*) FROM orders"), 200);
    EXPECT_EQ(shop.number("SELECT count(DISTINCT order_id) FROM points"), 200);
    EXPECT_EQ(shop.number("SELECT sum(amount_cents) FROM payments"),
              shop.number("SELECT balance_cents FROM till"));
    EXPECT_EQ(shop.number("SELECT 5000000 - sum(quantity) FROM stock"),
              shop.number("SELECT sum(quantity) FROM orders"));
  }
  EXPECT_EQ(run_once({"consume", "file:" + directory + "/payments"}).lines().size(), 200u);
  EXPECT_GE(run_once({"consume", "file:" + directory + "/orders"}).lines().size(), 200u);
  EXPECT_EQ(run_once({"topic", "ls", "file:" + directory, "-o", "json"}).json().size(), 3u);
}

TEST(Demo, directory_that_is_not_empty_is_refused_and_left_alone) {
  Scratch scratch;
  std::ofstream(scratch.path("mine")) << "x";
  const Answer run = run_once({"demo", "--dir", scratch.directory()});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_NE(run.err.find("not empty"), std::string::npos) << run.err;
  EXPECT_TRUE(std::filesystem::exists(scratch.path("mine")));
}

// Something outside doubles an effect and takes another away: the audit must see both, or it would
// prove nothing.
TEST(Demo, broken_promise_is_found_and_is_1) {
  Scratch scratch;
  const std::string directory = scratch.path("shop");
  Program demo({"demo", "--messages", "150", "--kills", "0", "--dir", directory, "-o", "json"});
  bool armed = false;
  for (int wait = 0; wait < 1000 && !armed; ++wait) {
    ::usleep(5'000);
    if (!std::filesystem::exists(directory + "/shop.db")) continue;
    Sqlite shop(directory + "/shop.db");
    armed = shop.run(
        "CREATE TRIGGER meddle AFTER INSERT ON points WHEN NEW.order_id = 'order-000149' BEGIN "
        "INSERT INTO points (order_id, points) VALUES ('order-000148', 1); "
        "DELETE FROM points WHERE order_id = 'order-000149'; END");
  }
  ASSERT_TRUE(armed);
  const Answer run = demo.wait();
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_EQ(run.error()["tag"], "broken");
  const Json result = run.json();
  EXPECT_EQ(result["lost"], 1);
  EXPECT_EQ(result["duplicated"], 1);
  EXPECT_EQ(result["ok"], false);
}

TEST(Demo, ctrl_c_ends_the_children_and_says_so) {
  Scratch scratch;
  const std::string directory = scratch.path("shop");
  Program demo({"demo", "--messages", "20000", "--dir", directory});
  for (int wait = 0; wait < 1000 && children_of(demo.pid()) < 4; ++wait) ::usleep(10'000);
  ASSERT_GE(children_of(demo.pid()), 4);
  ::kill(demo.pid(), SIGINT);
  const Answer run = demo.wait();
  EXPECT_EQ(run.exit_code, 130) << run.err;
  EXPECT_NE(run.err.find("all child processes were ended"), std::string::npos) << run.err;
  EXPECT_EQ(players_in(directory), 0);
}

TEST(Demo, children_die_with_a_parent_that_is_killed) {
  Scratch scratch;
  const std::string directory = scratch.path("shop");
  {
    Program demo({"demo", "--messages", "20000", "--dir", directory});
    for (int wait = 0; wait < 1000 && children_of(demo.pid()) < 4; ++wait) ::usleep(10'000);
    ASSERT_GE(children_of(demo.pid()), 4);
  }  // SIGKILL
  for (int wait = 0; wait < 500 && players_in(directory) > 0; ++wait) ::usleep(10'000);
  EXPECT_EQ(players_in(directory), 0);
}

}  // namespace
}  // namespace once
