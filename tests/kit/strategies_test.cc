// SPDX-License-Identifier: Apache-2.0
// The strategies of once/strategies.h under the kit, where they alone tell duplicates.
#include <gtest/gtest.h>
#include <once/strategies.h>

#include "kit/plans.h"

namespace once::testing {
namespace {

// Tables for the strategies, beside the one that would show a doubled effect.
void also(SqlitePlan& sqlite, const char* statement) {
  sqlite.plan().fresh_store = [fresh = sqlite.plan().fresh_store,
                               statement]() -> Result<std::unique_ptr<Store>> {
    auto store = ONCE_TRY(fresh());
    auto transaction = ONCE_TRY(store->begin("setup"));
    ONCE_TRY(transaction->sql()->execute(statement));
    ONCE_TRY(transaction->commit());
    return store;
  };
}

TEST(Strategy, unique_tells_resends_without_a_ledger) {
  SqlitePlan sqlite([] {
    return each([](const Delivery& delivery, SqlTransaction& sql) -> Result<Outcome> {
      if (ONCE_TRY(unique(sql, "flow", {{"id", delivery.id}})) == UniqueAnswer::present)
        return rejected("done before");
      ONCE_TRY(sql.execute("INSERT INTO effect (id, what) VALUES (?, '')", {delivery.id}));
      return applied();
    });
  });
  also(sqlite, "CREATE TABLE flow (id TEXT PRIMARY KEY)");
  sqlite.plan().options.id.reset();
  const Report report = check(sqlite.plan());
  EXPECT_TRUE(report.ok()) << report.text();
}

// The same without the key: an index that is not unique tells nothing.
TEST(Strategy, that_looks_where_others_do_not_write_is_found) {
  SqlitePlan sqlite([] {
    return each([](const Delivery& delivery, SqlTransaction& sql) -> Result<Outcome> {
      const Rows seen = ONCE_TRY(sql.query("SELECT 1 FROM flow WHERE id = ?", {delivery.id}));
      if (!seen.empty()) return rejected("done before");
      ONCE_TRY(sql.execute("INSERT INTO effect (id, what) VALUES (?, '')", {delivery.id}));
      return applied();
    });
  });
  also(sqlite, "CREATE TABLE flow (id TEXT)");
  sqlite.plan().options.id.reset();
  const Report report = run_twice(sqlite.plan());
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.findings[0].kind, Finding::Kind::doubled);
}

TEST(Strategy, a_state_machine_that_holds_early_messages_takes_them_in_any_order) {
  StateMachineOptions options;
  options.hold_table = "hold";
  const auto machine =
      StateMachine::make({"a", "b", "c", "d"}, {{"a", "b"}, {"b", "c"}, {"c", "d"}}, options);
  ASSERT_TRUE(machine) << machine.error().text;
  SqlitePlan sqlite([&] {
    return each([&](const Delivery& delivery, SqlTransaction& sql) -> Result<Outcome> {
      const Move move = ONCE_TRY(machine->move(sql, "ride", {{"id", "r"}}, delivery.id));
      for (const std::string& state : move.reached)
        ONCE_TRY(sql.execute("INSERT INTO effect (id, what) VALUES (?, '')", {state}));
      return outcome_of(move, delivery.attempt);
    });
  });
  also(sqlite, "CREATE TABLE ride (id TEXT PRIMARY KEY, state TEXT)");
  also(sqlite, "CREATE TABLE hold (id TEXT, state TEXT, PRIMARY KEY (id, state))");
  sqlite.plan().messages = {{.id = "a"}, {.id = "b"}, {.id = "c"}, {.id = "d"}};
  sqlite.plan().options.id.reset();
  sqlite.plan().any_order = true;
  sqlite.plan().reorders = 30;
  const Report report = check(sqlite.plan());
  EXPECT_TRUE(report.ok()) << report.text();
}

}  // namespace
}  // namespace once::testing
