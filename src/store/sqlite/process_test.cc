// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <once/sql.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <vector>

#include "store/sqlite/sqlite.h"
#include "testing/scratch.h"

// Several processes on one file. Every child opens the store itself: SQLite must not cross a fork.

namespace once {
namespace {

using testing::Scratch;

pid_t spawn(const std::function<bool()>& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work() ? 0 : 1);
  return child;
}

int wait_for(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

std::unique_ptr<SqliteStore> open(const std::string& path) {
  return SqliteStore::open(path, {}, system_clock()).value();
}

void make_effects(const std::string& path) {
  auto store = open(path);
  auto transaction = store->begin("setup").value();
  ASSERT_TRUE(transaction->sql()->execute(
      "CREATE TABLE effect (number INTEGER PRIMARY KEY AUTOINCREMENT, id BLOB NOT NULL)"));
  ASSERT_TRUE(transaction->commit());
}

std::map<std::string, int> effects(Store& store) {
  auto transaction = store.begin("look").value();
  const Rows found = transaction->sql()->query("SELECT id FROM effect").value();
  std::map<std::string, int> counts;
  for (const Row& row : found) ++counts[std::get<std::string>(row[0])];
  return counts;
}

// Admits one id and gives it an effect if it is fresh.
Status handle(Transaction& transaction, const std::string& id) {
  const Entry entry{id, {}, 1, "p0", 0};
  const auto verdicts = ONCE_TRY(transaction.admit(std::span(&entry, 1)));
  if (verdicts[0].kind != Verdict::Kind::fresh) return {};
  return transaction.sql()->execute("INSERT INTO effect (id) VALUES (?)", {Blob{id}}, rows(1));
}

TEST(SqliteProcesses, two_that_write_the_same_ids_lose_and_double_nothing) {
  Scratch scratch;
  const std::string path = scratch.path("a.db");
  make_effects(path);
  constexpr int ids = 150;
  std::vector<pid_t> children;
  for (int c = 0; c < 3; ++c)
    children.push_back(spawn([&, c] {
      SqliteOptions options;
      options.checkpoint_pages_min = 20;  // often, against each other
      auto store = SqliteStore::open(path, options, system_clock()).value();
      for (int i = 0; i < ids; ++i) {
        auto transaction = store->begin("shop").value();
        const int number = c == 1 ? ids - 1 - i : i;
        if (!handle(*transaction, "m" + std::to_string(number))) return false;
        if (!transaction->commit()) return false;
      }
      return true;
    }));
  for (const pid_t child : children) EXPECT_EQ(wait_for(child), 0);
  std::map<std::string, int> expected;
  for (int i = 0; i < ids; ++i) expected["m" + std::to_string(i)] = 1;
  auto store = open(path);
  EXPECT_EQ(effects(*store), expected);
  auto transaction = store->begin("look").value();
  const Rows check = transaction->sql()->query("SELECT count(*) FROM once_ledger").value();
  EXPECT_EQ(std::get<std::int64_t>(check[0][0]), ids);
}

TEST(SqliteProcesses, H02_one_killed_in_the_middle_of_a_transaction_leaves_nothing) {
  Scratch scratch;
  const std::string path = scratch.path("a.db");
  make_effects(path);
  std::map<std::string, int> expected;
  for (int round = 0; round < 5; ++round) {
    const std::string before = "before" + std::to_string(round);
    const std::string during = "during" + std::to_string(round);
    const pid_t child = spawn([&] {
      auto store = open(path);
      {
        auto transaction = store->begin("shop").value();
        if (!handle(*transaction, before) || !transaction->commit()) return false;
      }
      auto transaction = store->begin("shop").value();
      if (!transaction->advance("p0", store->position("shop", "p0").value(), round + 1))
        return false;
      for (int i = 0; i < 2000; ++i)  // more than the page cache's first pages
        if (!handle(*transaction, during + std::to_string(i))) return false;
      ::kill(::getpid(), SIGKILL);
      return true;
    });
    const int status = wait_for(child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    auto store = open(path);  // at once: the dead one's turn is over
    expected[before] = 1;
    EXPECT_EQ(effects(*store), expected);
    EXPECT_EQ(store->position("shop", "p0").value(), Position{});
    EXPECT_FALSE(store->records()->find("shop", during + "0").value());
  }
}

TEST(SqliteProcesses, one_without_rights_is_told_so) {
  Scratch scratch;
  const std::string path = scratch.path("a.db");
  open(path);
  ASSERT_EQ(::chmod(scratch.directory().c_str(), 0555), 0);
  ASSERT_EQ(::chmod(path.c_str(), 0444), 0);
  ASSERT_EQ(::chmod((path + "-lock").c_str(), 0444), 0);
  const pid_t child = spawn([&] {
    constexpr uid_t nobody = 65534;
    if (::geteuid() == 0 && ::setuid(nobody) != 0) return false;
    const auto existing = SqliteStore::open(path, {}, system_clock());
    const auto missing = SqliteStore::open(scratch.path("b.db"), {}, system_clock());
    return !existing && existing.error().tag == "denied" &&
           existing.error().remedy == Remedy::stop && !missing && missing.error().tag == "denied";
  });
  EXPECT_EQ(wait_for(child), 0);
  ::chmod(scratch.directory().c_str(), 0755);
}

TEST(SqliteProcesses, one_whose_files_may_not_grow_loses_nothing_it_committed) {
  Scratch scratch;
  const std::string path = scratch.path("a.db");
  make_effects(path);
  const pid_t child = spawn([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{400'000, 400'000};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
    auto store = open(path);
    int committed = 0;
    for (; committed < 1000; ++committed) {
      auto transaction = store->begin("shop");
      if (!transaction) break;
      if (!handle(**transaction, std::string(800, 'x') + std::to_string(committed))) break;
      if (!(*transaction)->commit()) break;
    }
    if (committed == 0 || committed == 1000) return false;
    const std::string report = std::to_string(committed);
    return replace_file(system_files(), scratch.path("report"), report).has_value();
  });
  ASSERT_EQ(wait_for(child), 0);
  const int committed = std::stoi(read_file(system_files(), scratch.path("report")).value());
  auto store = open(path);
  const auto found = effects(*store);
  for (int i = 0; i < committed; ++i)
    EXPECT_EQ(found.count(std::string(800, 'x') + std::to_string(i)), 1u) << i;
  // The last one was in doubt: it is there or not, with its record, and never twice.
  EXPECT_LE(found.size(), static_cast<std::size_t>(committed) + 1);
  for (const auto& [id, count] : found) {
    EXPECT_EQ(count, 1);
    EXPECT_TRUE(store->records()->find("shop", id).value());
  }
}

TEST(SqliteProcesses, one_can_read_while_another_has_a_transaction_open) {
  Scratch scratch;
  const std::string path = scratch.path("a.db");
  make_effects(path);
  auto store = open(path);
  const Position taken = store->take("shop", "p0").value();
  auto transaction = store->begin("shop").value();
  ASSERT_TRUE(handle(*transaction, "open"));
  const pid_t child = spawn([&] {
    // Opening needs a turn at writing; reading does not.
    SqliteOptions options;
    options.busy_ms_max = 50;
    const auto other = SqliteStore::open(path, options, system_clock());
    return !other && other.error().tag == "busy" && other.error().remedy == Remedy::retry;
  });
  EXPECT_EQ(wait_for(child), 0);
  EXPECT_EQ(store->position("shop", "p0").value(), taken);
  ASSERT_TRUE(transaction->commit());
}

}  // namespace
}  // namespace once
