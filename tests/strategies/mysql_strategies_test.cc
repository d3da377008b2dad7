// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "store/mysql/mysql.h"
#include "strategies/strategy_races.h"
#include "strategies/strategy_stories.h"
#include "testing/live_server.h"

namespace once::testing {
namespace {

LiveServer& server() {
  static LiveServer made("mariadb");
  return made;
}

// Each test has a database of its own.
class MysqlGround final : public Ground {
 public:
  MysqlGround() : database_(fmt::format("ground_{}", ++databases_)) {
    auto admin = MysqlConnection::open(MysqlAddress::parse(server().url()).value()).value();
    if (const auto made = admin->ask("CREATE DATABASE " + database_); !made)
      throw std::runtime_error(made.error().text);
  }
  std::shared_ptr<Store> open() override {
    std::string url = server().url();
    url.replace(url.rfind("/once"), 5, "/" + database_);
    auto opened = MysqlStore::open(url, {});
    return opened ? std::move(*opened) : nullptr;
  }
  bool shared_by_processes() const override { return true; }
  std::string effect_table() const override {
    return "CREATE TABLE effect (number BIGINT AUTO_INCREMENT PRIMARY KEY, "
           "id VARBINARY(1024) NOT NULL)";
  }

 private:
  static inline int databases_ = 0;
  const std::string database_;
};

const GroundFactory mysql{"mysql", [] { return std::make_unique<MysqlGround>(); }};

INSTANTIATE_TEST_SUITE_P(Mysql, StrategySuite, ::testing::Values(mysql));
INSTANTIATE_TEST_SUITE_P(Mysql, StrategyRaces, ::testing::Values(mysql));
INSTANTIATE_TEST_SUITE_P(Mysql, StrategyStories, ::testing::Values(mysql));

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::server());
}
