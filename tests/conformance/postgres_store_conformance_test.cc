// SPDX-License-Identifier: Apache-2.0
// The suite of all stores, on a real PostgreSQL. Every test has a schema of its own.
#include <fmt/format.h>

#include "conformance/store_suite.h"
#include "conformance/store_suite_sql.h"
#include "store/postgres/postgres.h"
#include "testing/chaos_proxy.h"
#include "testing/live_server.h"

namespace once::testing {
namespace {

LiveServer& server() {
  static LiveServer made("postgresql");
  return made;
}

ChaosProxy& proxy() {
  static ChaosProxy made(server().port());
  return made;
}

class PostgresUnderTest final : public StoreUnderTest {
 public:
  PostgresUnderTest() : schema_(fmt::format("test_{}", ++schemas_)) {
    auto admin = PgConnection::open(server().url(), "admin").value();
    if (const Status made = admin->script("CREATE SCHEMA " + schema_); !made)
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
    return "CREATE TABLE effect (number BIGSERIAL PRIMARY KEY, id BYTEA NOT NULL)";
  }
  std::string kinds_table() const override {
    return "CREATE TABLE kinds (a BIGINT, b DOUBLE PRECISION, c TEXT, d BYTEA, e TEXT)";
  }

 private:
  void open() {
    ServerStoreOptions options;
    options.clock_skew_ms = [this] { return skew_ms_.load(); };
    auto opened = PostgresStore::open(
        server().url_at(proxy().port()) + "?options=-csearch_path%3D" + schema_, options);
    if (!opened) throw std::runtime_error(opened.error().text);
    store_ = std::move(opened).value();
  }

  static inline int schemas_ = 0;
  const std::string schema_;
  std::atomic<std::int64_t> skew_ms_{0};
  std::unique_ptr<PostgresStore> store_;
};

const StoreFactory postgres{"postgres", [] { return std::make_unique<PostgresUnderTest>(); }};

INSTANTIATE_TEST_SUITE_P(Postgres, StoreSuite, ::testing::Values(postgres));
INSTANTIATE_TEST_SUITE_P(Postgres, RepairSuite, ::testing::Values(postgres));
INSTANTIATE_TEST_SUITE_P(Postgres, SqlStoreSuite, ::testing::Values(postgres));

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::server());
}
