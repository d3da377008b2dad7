// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/sqlite.h"

#include <gtest/gtest.h>
#include <once/identity.h>
#include <once/open.h>
#include <once/sql.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "conformance/sqlite_fault.h"
#include "store/sqlite/schema.h"
#include "testing/scratch.h"

namespace once {
namespace {

using testing::Scratch;
using testing::SqliteFault;

Result<std::unique_ptr<SqliteStore>> open(const std::string& path, SqliteOptions options = {}) {
  return SqliteStore::open(path, options, system_clock());
}

// A connection that knows nothing of Once.
class Shell {
 public:
  explicit Shell(const std::string& path) {
    sqlite3_open(path.c_str(), &handle_);
    EXPECT_EQ(add_schema_functions(handle_), SQLITE_OK);
  }
  ~Shell() { sqlite3_close(handle_); }
  int run(const std::string& sql) {
    return sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  }
  std::string ask(const std::string& sql) {
    std::string answer;
    const auto keep = [](void* into, int, char** texts, char**) {
      *static_cast<std::string*>(into) = texts[0] == nullptr ? "NULL" : texts[0];
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(handle_, sql.c_str(), keep, &answer, nullptr), SQLITE_OK) << sql;
    return answer;
  }

 private:
  sqlite3* handle_ = nullptr;
};

Status add(Store& store, std::string_view id) {
  auto transaction = ONCE_TRY(store.begin("shop"));
  const Entry entry{id, {}, 1, "p0", 0};
  ONCE_TRY(transaction->admit(std::span(&entry, 1)));
  return transaction->commit();
}

bool has(Store& store, std::string_view id) {
  return store.records()->find("shop", id).value().has_value();
}

TEST(Sqlite, promises_to_survive_a_power_cut_and_sets_what_that_takes) {
  Scratch scratch;
  auto store = open_sqlite_store(scratch.path("a.db")).value();
  const StoreTraits traits = store->traits();
  EXPECT_EQ(traits.name, "sqlite:" + scratch.path("a.db"));
  EXPECT_EQ(traits.durability, StoreTraits::Durability::power);
  EXPECT_TRUE(traits.sql);
  EXPECT_EQ(Shell(scratch.path("a.db")).ask("PRAGMA journal_mode"), "wal");
}

TEST(Sqlite, refuses_a_mode_that_loses_commits_in_a_power_cut) {
  Scratch scratch;
  for (const char* unsafe : {"OFF", "NORMAL"}) {
    SqliteOptions options;
    options.synchronous = unsafe;
    const auto store = open(scratch.path("a.db"), options);
    ASSERT_FALSE(store) << unsafe;
    EXPECT_EQ(store.error().tag, "unsafe");
    EXPECT_EQ(store.error().remedy, Remedy::stop);
  }
  SqliteOptions options;
  options.synchronous = "EXTRA";
  EXPECT_TRUE(open(scratch.path("a.db"), options));
}

TEST(Sqlite, refuses_paths_that_are_no_files) {
  for (const char* path : {"", ":memory:", "file::memory:"})
    EXPECT_EQ(open_sqlite_store(path).error().tag, "config") << path;
  Scratch scratch;
  const auto directory = open(scratch.directory());
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error().remedy, Remedy::stop);
}

TEST(Sqlite, a_foreign_file_is_refused_and_left_alone) {
  Scratch scratch;
  const std::string path = scratch.path("letter.txt");
  for (const std::string& content : {std::string("Dear Sir"), std::string(5000, 'x')}) {
    std::ofstream(path, std::ios::trunc) << content;
    const auto store = open(path);
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().tag, "foreign");
    EXPECT_EQ(store.error().remedy, Remedy::stop);
    EXPECT_NE(store.error().text.find("letter.txt"), std::string::npos);
    EXPECT_EQ(read_file(system_files(), path).value(), content);
  }
  EXPECT_EQ(system_files().list(scratch.directory()).value(),
            std::vector<std::string>{"letter.txt"});
}

TEST(Sqlite, an_empty_file_becomes_a_store) {
  Scratch scratch;
  std::ofstream(scratch.path("a.db")).flush();
  EXPECT_TRUE(add(*open(scratch.path("a.db")).value(), "x"));
}

TEST(Sqlite, a_truncated_file_is_told) {
  Scratch scratch;
  const std::string path = scratch.path("a.db");
  ASSERT_TRUE(add(*open(path).value(), "x"));
  const auto size = std::filesystem::file_size(path);
  for (const std::uintmax_t left : {size - 4096, size - 1, std::uintmax_t{50}}) {
    std::filesystem::resize_file(path, left);
    const auto store = open(path);
    ASSERT_FALSE(store) << left;
    EXPECT_EQ(store.error().tag, "corrupt") << left;
    EXPECT_EQ(store.error().remedy, Remedy::stop);
  }
}

TEST(Sqlite, a_damaged_page_is_told) {
  Scratch scratch;
  const std::string path = scratch.path("a.db");
  {
    auto store = open(path).value();
    for (int i = 0; i < 300; ++i)
      ASSERT_TRUE(add(*store, std::string(500, 'x') + std::to_string(i)));
  }
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    const auto size = static_cast<std::streamoff>(std::filesystem::file_size(path));
    for (std::streamoff at = 4096; at < size; at += 4096) file.seekp(at) << std::string(64, '\xee');
  }
  auto store = open(path);
  Status status;
  if (store) status = add(**store, "y");
  const Error error = store ? status.error() : store.error();
  EXPECT_EQ(error.tag, "corrupt");
  EXPECT_EQ(error.remedy, Remedy::stop);
}

TEST(Sqlite, lives_beside_the_tables_of_the_user) {
  Scratch scratch;
  const std::string path = scratch.path("shop.db");
  ASSERT_EQ(Shell(path).run("CREATE TABLE account (id INTEGER); INSERT INTO account VALUES (7)"),
            SQLITE_OK);
  ASSERT_TRUE(add(*open(path).value(), "order 100"));
  Shell shell(path);
  EXPECT_EQ(shell.ask("SELECT id FROM account"), "7");
  EXPECT_EQ(shell.ask("SELECT scope || ' ' || id || ' ' || outcome FROM once_ledger_readable"),
            "shop order 100 applied");
}

TEST(Sqlite, shows_every_id_as_it_came) {
  Scratch scratch;
  const std::string path = scratch.path("shop.db");
  const std::vector<std::string> ids = {"01890a5d-ac96-774b-bcce-b302099a8057", "order 100",
                                        "\x01 marked", "01890A5D-AC96-774B-BCCE-B302099A8057"};
  for (const std::string& id : ids) ASSERT_TRUE(add(*open(path).value(), id));
  Shell shell(path);
  for (const std::string& id : ids) {
    EXPECT_EQ(open(path).value()->records()->find("shop", id).value().value().id, id);
    EXPECT_EQ(shell.ask("SELECT count(*) FROM once_ledger_readable WHERE id = '" + id + "'"), "1");
  }
}

TEST(Sqlite, a_schema_of_a_newer_program_is_refused) {
  Scratch scratch;
  const std::string path = scratch.path("a.db");
  open(path).value();
  ASSERT_EQ(Shell(path).run("UPDATE once_schema SET version = 99"), SQLITE_OK);
  const auto store = open(path);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().tag, "newer");
  EXPECT_EQ(store.error().remedy, Remedy::stop);
  EXPECT_NE(store.error().text.find("99"), std::string::npos);
}

TEST(Sqlite, a_schema_of_every_older_version_is_migrated_and_keeps_its_rows) {
  for (std::size_t version = 1; version < schema_steps.size(); ++version) {
    Scratch scratch;
    const std::string path = scratch.path("a.db");
    {
      Shell shell(path);
      for (std::size_t step = 0; step < version; ++step)
        ASSERT_EQ(shell.run(std::string(schema_steps[step])), SQLITE_OK);
      ASSERT_EQ(shell.run("INSERT INTO once_name VALUES (1, 'shop'), (2, 'p0');"
                          "INSERT INTO once_ledger VALUES (1, x'61', NULL, 5, 6, 1, 2, 7, x'6e6f'),"
                          "(1, CAST('01890a5d-ac96-774b-bcce-b302099a8057' AS BLOB), "
                          "NULL, 6, 6, 0, 2, 8, NULL);"
                          "INSERT INTO once_position (scope, partition, offset, fence) "
                          "VALUES (1, 2, 8, 3);"
                          "INSERT INTO once_outbox (destination, id, key, body, headers, "
                          "timestamp_ms, partition, sequence) VALUES "
                          "(2, x'31', x'6b', x'62', x'', 7, NULL, NULL), "
                          "(2, x'32', x'6b', x'62', x'', 8, 3, 5);"
                          "INSERT INTO once_parked (scope, partition, offset, attempts, parked_ms, "
                          "reason, id, key, body, headers, timestamp_ms) "
                          "VALUES (1, 'p0', 4, 2, 9, 'why', x'62', x'6b', x'63', x'', 7)"),
                SQLITE_OK);
      // Of the user: one that no longer compiles, and one over a table of ours.
      ASSERT_EQ(shell.run("CREATE TABLE gone (x); CREATE VIEW broken AS SELECT x FROM gone;"
                          "DROP TABLE gone;"
                          "CREATE VIEW reasons AS SELECT reason, offset AS at FROM once_parked"),
                SQLITE_OK);
    }
    auto store = open(path).value();
    const auto record = store->records()->find("shop", "a").value().value();
    EXPECT_EQ(record.outcome, rejected("no"));
    EXPECT_EQ(record.born_ms, 5);
    const auto other = store->records()->find("shop", "01890a5d-ac96-774b-bcce-b302099a8057");
    EXPECT_EQ(other.value().value().born_ms, 6);
    EXPECT_EQ(store->position("shop", "p0").value(), (Position{8, 3}));
    const Position taken = store->take("shop", "p0", "topic").value();
    EXPECT_EQ(taken.offset, 8);
    EXPECT_GT(taken.fence, 3u);
    const std::string identity = store->traits().identity;
    EXPECT_EQ(identity.size(), 32u);
    EXPECT_TRUE(make_segment_ids(*store, {"orders", 10}).value()->next());
    EXPECT_EQ(store->deferrals()->due("shop", 1).value().wait_ms, -1);
    const auto pending = store->outbox()->pending("p0", 10).value();
    ASSERT_EQ(pending.size(), 2u);
    EXPECT_EQ(pending[0].message.id, "2");
    EXPECT_EQ(pending[0].route, (Route{3, 5}));
    EXPECT_EQ(pending[1].message.key, "k");
    EXPECT_FALSE(pending[1].route);
    const auto parked = store->records()->parked("shop", 0, 10).value();
    ASSERT_EQ(parked.size(), 1u);
    EXPECT_EQ(parked[0].partition, "p0");
    EXPECT_EQ(parked[0].offset, 4);
    EXPECT_EQ(parked[0].message.body, "c");
    EXPECT_EQ(Shell(path).ask("SELECT at || reason FROM reasons"), "4why");
    EXPECT_EQ(Shell(path).ask("SELECT offset FROM once_ledger_readable WHERE id = 'a'"), "7");
    EXPECT_EQ(Shell(path).ask("SELECT sql FROM sqlite_master WHERE name = 'broken'"),
              "CREATE VIEW broken AS SELECT x FROM gone");
    const auto operations = store->records()->operations("once.store", 0, 10).value();
    ASSERT_EQ(operations.size(), 1u);
    EXPECT_EQ(operations[0].action, "migrate");
    store.reset();
    store = open(path).value();  // once
    EXPECT_EQ(store->traits().identity, identity);
    EXPECT_EQ(store->records()->operations("once.store", 0, 10).value().size(), 1u);
  }
}

TEST(Sqlite, a_migration_that_fails_changes_nothing) {
  Scratch scratch;
  const std::string path = scratch.path("a.db");
  {
    Shell shell(path);
    ASSERT_EQ(shell.run(std::string(schema_steps[0])), SQLITE_OK);
    // In the way of step 2, after its first statement.
    ASSERT_EQ(shell.run("CREATE TABLE once_counter (x)"), SQLITE_OK);
  }
  EXPECT_FALSE(open(path));
  EXPECT_EQ(Shell(path).ask("SELECT version FROM once_schema"), "1");
}

TEST(Sqlite, a_full_disk_refuses_and_loses_nothing) {
  SqliteFault::install();
  Scratch scratch;
  auto store = open(scratch.path("a.db")).value();
  ASSERT_TRUE(add(*store, "before"));
  SqliteFault::next = SqliteFault::Kind::wal_full;
  const auto full = add(*store, "x");
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().tag, "full");
  EXPECT_EQ(full.error().remedy, Remedy::retry);
  EXPECT_FALSE(has(*store, "x"));
  EXPECT_TRUE(add(*store, "x"));
  store.reset();
  store = open(scratch.path("a.db")).value();
  EXPECT_TRUE(has(*store, "before"));
  EXPECT_TRUE(has(*store, "x"));
}

TEST(Sqlite, a_failed_sync_is_a_doubt_that_the_file_settles) {
  SqliteFault::install();
  Scratch scratch;
  auto store = open(scratch.path("a.db")).value();
  ASSERT_TRUE(add(*store, "before"));
  SqliteFault::next = SqliteFault::Kind::wal_sync;
  const auto doubt = add(*store, "x");
  ASSERT_FALSE(doubt);
  EXPECT_EQ(doubt.error().remedy, Remedy::recheck);
  EXPECT_EQ(doubt.error().tag, "io");
  const bool kept = has(*store, "x");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(has(*store, "x"), kept);  // the answer does not change
  store.reset();
  store = open(scratch.path("a.db")).value();
  EXPECT_EQ(has(*store, "x"), kept);
  EXPECT_TRUE(has(*store, "before"));
}

TEST(Sqlite, a_restored_file_does_not_give_an_owner_of_before_its_fence_again) {
  Scratch scratch;
  const std::string path = scratch.path("a.db"), backup = scratch.path("backup.db");
  open(path).value()->take("shop", "p0").value();
  std::filesystem::copy_file(path, backup);
  const Position zombie = open(path).value()->take("shop", "p0").value();
  std::filesystem::copy_file(backup, path, std::filesystem::copy_options::overwrite_existing);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  auto store = open(path).value();
  const Position owner = store->take("shop", "p0").value();
  EXPECT_GT(owner.fence, zombie.fence);
  const Status moved = store->begin("shop").value()->advance("p0", zombie, 1);
  ASSERT_FALSE(moved);
  EXPECT_EQ(moved.error().tag, "fenced");
}

TEST(Sqlite, one_thread_cannot_wait_for_itself) {
  Scratch scratch;
  auto store = open(scratch.path("a.db")).value();
  auto first = store->begin("shop").value();
  const auto second = store->begin("shop");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().tag, "nested");
  EXPECT_EQ(store->take("shop", "p0").error().tag, "nested");
  EXPECT_TRUE(store->position("shop", "p0"));  // reading does not wait
  first.reset();
  EXPECT_TRUE(store->begin("shop"));
}

TEST(Sqlite, another_thread_waits_for_its_turn_up_to_a_limit) {
  Scratch scratch;
  SqliteOptions options;
  options.busy_ms_max = 50;
  auto store = open(scratch.path("a.db"), options).value();
  auto first = store->begin("shop").value();
  std::thread([&] {
    const auto second = store->begin("shop");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().tag, "busy");
    EXPECT_EQ(second.error().remedy, Remedy::retry);
  }).join();
  std::thread waiting([&] { EXPECT_TRUE(add(*store, "waited")); });
  first.reset();
  waiting.join();
  EXPECT_TRUE(has(*store, "waited"));
}

TEST(Sqlite, a_stranger_who_writes_is_waited_for_up_to_a_limit) {
  Scratch scratch;
  SqliteOptions options;
  options.busy_ms_max = 50;
  auto store = open(scratch.path("a.db"), options).value();
  Shell stranger(scratch.path("a.db"));
  ASSERT_EQ(stranger.run("BEGIN IMMEDIATE"), SQLITE_OK);
  const auto busy = store->begin("shop");
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().tag, "busy");
  EXPECT_EQ(busy.error().remedy, Remedy::retry);
  EXPECT_TRUE(store->position("shop", "p0"));
  ASSERT_EQ(stranger.run("COMMIT"), SQLITE_OK);
  EXPECT_TRUE(store->begin("shop"));
}

TEST(Sqlite, the_write_ahead_log_stays_short_while_a_stranger_reads) {
  Scratch scratch;
  const std::string path = scratch.path("a.db");
  SqliteOptions options;
  options.checkpoint_pages_min = 20;
  auto store = open(path, options).value();
  const auto write_some = [&](const std::string& prefix) {
    for (int i = 0; i < 100; ++i)
      ASSERT_TRUE(add(*store, prefix + std::string(900, 'x') + std::to_string(i)));
  };
  write_some("a");
  EXPECT_LT(std::filesystem::file_size(path + "-wal"), 100u * 4096);
  {
    Shell stranger(path);
    ASSERT_EQ(stranger.run("BEGIN; SELECT count(*) FROM once_ledger"), SQLITE_OK);
    write_some("b");  // the log has to grow while somebody needs its old pages
    ASSERT_EQ(stranger.run("COMMIT"), SQLITE_OK);
  }
  const auto grown = std::filesystem::file_size(path + "-wal");
  write_some("c");
  write_some("d");
  EXPECT_LE(std::filesystem::file_size(path + "-wal"), grown + 100u * 4096);
  Shell shell(path);
  EXPECT_EQ(shell.ask("SELECT count(*) FROM once_ledger"), "400");
  EXPECT_EQ(shell.ask("PRAGMA integrity_check"), "ok");
}

TEST(Sqlite, more_statements_than_the_cache_holds_still_work) {
  Scratch scratch;
  auto store = open(scratch.path("a.db")).value();
  auto transaction = store->begin("shop").value();
  SqlTransaction& sql = *transaction->sql();
  ASSERT_TRUE(sql.execute("CREATE TABLE t (n INTEGER)"));
  std::string text;  // one buffer for all: the address alone must not decide
  for (int i = 0; i < 600; ++i) {
    text = "INSERT INTO t VALUES (" + std::to_string(i % 300) + ")";
    ASSERT_TRUE(sql.execute(text, {}, rows(1)));
  }
  const Rows sum = sql.query("SELECT sum(n), count(*) FROM t").value();
  EXPECT_EQ(sum[0], (Row{std::int64_t{299 * 300}, std::int64_t{600}}));
}

TEST(Sqlite, a_table_that_changes_under_a_cached_statement_is_no_harm) {
  Scratch scratch;
  auto store = open(scratch.path("a.db")).value();
  for (int round = 0; round < 3; ++round) {
    auto transaction = store->begin("shop").value();
    SqlTransaction& sql = *transaction->sql();
    ASSERT_TRUE(sql.execute("CREATE TABLE t (n INTEGER)"));
    ASSERT_TRUE(sql.execute("INSERT INTO t VALUES (?)", {round}, rows(1)));
    ASSERT_TRUE(sql.execute("ALTER TABLE t ADD COLUMN m INTEGER"));
    ASSERT_EQ(sql.query("SELECT * FROM t").value()[0].size(), 2u);
    ASSERT_TRUE(sql.execute("DROP TABLE t"));
    ASSERT_TRUE(transaction->commit());
  }
}

// Somebody makes the database anew while it is in use: what is written into the old file is lost.
TEST(SqliteStore, a_file_that_is_deleted_or_replaced_is_not_written_any_more) {
  Scratch scratch;
  const std::string path = scratch.path("shop.db");
  auto store = open(path).value();
  ASSERT_TRUE(add(*store, "order 1"));
  std::filesystem::rename(path, path + ".old");
  const Status deleted = add(*store, "order 2");
  ASSERT_FALSE(deleted);
  EXPECT_EQ(deleted.error().tag, "gone");
  EXPECT_EQ(deleted.error().remedy, Remedy::stop);
  EXPECT_NE(deleted.error().text.find("shop.db"), std::string::npos) << deleted.error().text;
  std::filesystem::copy_file(path + ".old", path);
  EXPECT_EQ(add(*store, "order 2").error().tag, "gone") << "another file is in its place";
  std::filesystem::rename(path + ".old", path);
  EXPECT_TRUE(add(*store, "order 2"));
  EXPECT_TRUE(has(*store, "order 1"));
}

}  // namespace
}  // namespace once
