// SPDX-License-Identifier: Apache-2.0
#include "conformance/sqlite_fault.h"
#include "conformance/store_suite.h"
#include "conformance/store_suite_borders.h"
#include "conformance/store_suite_sql.h"
#include "conformance/store_suite_updates.h"
#include "store/sqlite/sqlite.h"
#include "testing/scratch.h"

namespace once::testing {
namespace {

class SqliteUnderTest final : public StoreUnderTest {
 public:
  SqliteUnderTest() {
    SqliteFault::install();
    open();
  }
  ~SqliteUnderTest() override { SqliteFault::next = SqliteFault::Kind::none; }

  Store& store() override { return *store_; }
  void reopen() override {
    store_.reset();
    open();
  }
  std::unique_ptr<Store> open_another() override { return open_here(); }
  void lose_next_commit(bool kept) override {
    SqliteFault::next = kept ? SqliteFault::Kind::wal_sync : SqliteFault::Kind::wal_write;
  }
  void jump_clock(std::int64_t ms) override { clock_.jump(ms); }
  bool has_one_writer() const override { return true; }
  std::string effect_table() const override {
    return "CREATE TABLE effect (number INTEGER PRIMARY KEY AUTOINCREMENT, id BLOB NOT NULL)";
  }
  std::string kinds_table() const override {
    return "CREATE TABLE kinds (a INTEGER, b REAL, c TEXT, d BLOB, e TEXT)";
  }

 private:
  void open() { store_ = open_here(); }
  std::unique_ptr<SqliteStore> open_here() {
    SqliteOptions options;
    options.checkpoint_pages_min = 50;  // checkpoints happen in the tests, too
    options.scan_rows_max = 11;
    auto opened = SqliteStore::open(scratch_.path("store.db"), options, clock_);
    if (!opened) throw std::runtime_error(opened.error().text);
    return std::move(opened).value();
  }

  Scratch scratch_;
  JumpingClock clock_;
  std::unique_ptr<SqliteStore> store_;
};

const StoreFactory sqlite{"sqlite", [] { return std::make_unique<SqliteUnderTest>(); }};

INSTANTIATE_TEST_SUITE_P(Sqlite, StoreSuite, ::testing::Values(sqlite));
INSTANTIATE_TEST_SUITE_P(Sqlite, RepairSuite, ::testing::Values(sqlite));
INSTANTIATE_TEST_SUITE_P(Sqlite, DeferralSuite, ::testing::Values(sqlite));
INSTANTIATE_TEST_SUITE_P(Sqlite, SqlStoreSuite, ::testing::Values(sqlite));
INSTANTIATE_TEST_SUITE_P(Sqlite, BorderSuite, ::testing::Values(sqlite));
INSTANTIATE_TEST_SUITE_P(Sqlite, UpdateSuite, ::testing::Values(sqlite));

}  // namespace
}  // namespace once::testing
