// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "store/postgres/postgres.h"
#include "strategies/strategy_races.h"
#include "strategies/strategy_stories.h"
#include "testing/live_server.h"

namespace once::testing {
namespace {

LiveServer& server() {
  static LiveServer made("postgresql");
  return made;
}

// Each test has a schema of its own.
class PostgresGround final : public Ground {
 public:
  PostgresGround() : schema_(fmt::format("ground_{}", ++schemas_)) {
    auto admin = PgConnection::open(server().url(), "admin").value();
    if (const Status made = admin->script("CREATE SCHEMA " + schema_); !made)
      throw std::runtime_error(made.error().text);
  }
  std::shared_ptr<Store> open() override {
    auto opened = PostgresStore::open(server().url() + "?options=-csearch_path%3D" + schema_, {});
    return opened ? std::move(*opened) : nullptr;
  }
  bool shared_by_processes() const override { return true; }
  std::string effect_table() const override {
    return "CREATE TABLE effect (number BIGSERIAL PRIMARY KEY, id BYTEA NOT NULL)";
  }

 private:
  static inline int schemas_ = 0;
  const std::string schema_;
};

const GroundFactory postgres{"postgres", [] { return std::make_unique<PostgresGround>(); }};

INSTANTIATE_TEST_SUITE_P(Postgres, StrategySuite, ::testing::Values(postgres));
INSTANTIATE_TEST_SUITE_P(Postgres, StrategyRaces, ::testing::Values(postgres));
INSTANTIATE_TEST_SUITE_P(Postgres, StrategyStories, ::testing::Values(postgres));

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::server());
}
