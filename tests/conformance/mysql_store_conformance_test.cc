// SPDX-License-Identifier: Apache-2.0
// The suite of all stores, on a real MariaDB. Every test has a database of its own.
#include <fmt/format.h>

#include "conformance/store_suite.h"
#include "conformance/store_suite_sql.h"
#include "store/mysql/mysql.h"
#include "testing/chaos_proxy.h"
#include "testing/live_server.h"

namespace once::testing {
namespace {

LiveServer& server() {
  static LiveServer made("mariadb");
  return made;
}

ChaosProxy& proxy() {
  static ChaosProxy made(server().port());
  return made;
}

class MysqlUnderTest final : public StoreUnderTest {
 public:
  MysqlUnderTest() : database_(fmt::format("test_{}", ++databases_)) {
    auto admin = MysqlConnection::open(MysqlAddress::parse(server().url()).value()).value();
    if (const auto made = admin->ask("CREATE DATABASE " + database_); !made)
      throw std::runtime_error(made.error().text);
    open();
  }

  Store& store() override { return *store_; }
  void reopen() override {
    store_.reset();
    open();
  }
  void lose_next_commit(bool kept) override {
    if (kept)
      proxy().arm({.match = "COMMIT", .client_bytes = std::nullopt, .answer_bytes = 0});
    else
      proxy().arm({.match = "COMMIT", .client_bytes = 0, .answer_bytes = 0});
  }
  void jump_clock(std::int64_t ms) override { skew_ms_ += ms; }
  std::string effect_table() const override {
    return "CREATE TABLE effect (number BIGINT AUTO_INCREMENT PRIMARY KEY, "
           "id VARBINARY(1024) NOT NULL)";
  }
  std::string kinds_table() const override {
    return "CREATE TABLE kinds (a BIGINT, b DOUBLE, c TEXT, d BLOB, e TEXT)";
  }

 private:
  void open() {
    ServerStoreOptions options;
    options.clock_skew_ms = [this] { return skew_ms_.load(); };
    std::string url = server().url_at(proxy().port());
    url.replace(url.rfind("/once"), 5, "/" + database_);
    auto opened = MysqlStore::open(url, options);
    if (!opened) throw std::runtime_error(opened.error().text);
    store_ = std::move(opened).value();
  }

  static inline int databases_ = 0;
  const std::string database_;
  std::atomic<std::int64_t> skew_ms_{0};
  std::unique_ptr<MysqlStore> store_;
};

const StoreFactory mysql{"mysql", [] { return std::make_unique<MysqlUnderTest>(); }};

INSTANTIATE_TEST_SUITE_P(Mysql, StoreSuite, ::testing::Values(mysql));
INSTANTIATE_TEST_SUITE_P(Mysql, RepairSuite, ::testing::Values(mysql));
INSTANTIATE_TEST_SUITE_P(Mysql, SqlStoreSuite, ::testing::Values(mysql));

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::server());
}
