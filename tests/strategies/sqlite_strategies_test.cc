// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/sqlite.h"
#include "strategies/strategy_races.h"
#include "strategies/strategy_stories.h"
#include "testing/scratch.h"

namespace once::testing {
namespace {

class SqliteGround final : public Ground {
 public:
  std::shared_ptr<Store> open() override {
    auto opened = SqliteStore::open(scratch_.path("store.db"), {}, system_clock());
    return opened ? std::move(*opened) : nullptr;
  }
  bool shared_by_processes() const override { return true; }
  std::string effect_table() const override {
    return "CREATE TABLE effect (number INTEGER PRIMARY KEY AUTOINCREMENT, id BLOB NOT NULL)";
  }

 private:
  Scratch scratch_;
};

const GroundFactory sqlite{"sqlite", [] { return std::make_unique<SqliteGround>(); }};

INSTANTIATE_TEST_SUITE_P(Sqlite, StrategySuite, ::testing::Values(sqlite));
INSTANTIATE_TEST_SUITE_P(Sqlite, StrategyRaces, ::testing::Values(sqlite));
INSTANTIATE_TEST_SUITE_P(Sqlite, StrategyStories, ::testing::Values(sqlite));

}  // namespace
}  // namespace once::testing
