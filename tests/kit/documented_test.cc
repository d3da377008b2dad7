// SPDX-License-Identifier: Apache-2.0
// The example in docs/testing_your_handler.md, compiled and run as it stands there, and what it
// takes from its program.
#include <gtest/gtest.h>
#include <once/open.h>
#include <once/pipeline.h>
#include <once/sql.h>

#include <memory>

#include "kit/memory_scratch.h"

namespace {

once::Handler payment_handler() {
  return once::each(
      [](const once::Delivery& order, once::SqlTransaction& sql) -> once::Result<once::Outcome> {
        ONCE_TRY(sql.execute("INSERT INTO payment (order_id, amount) VALUES (?, ?)",
                             {order.id, order.body}));
        return once::applied();
      });
}

once::PipelineOptions payment_options() {
  once::PipelineOptions options;
  options.scope = "payments";
  options.id = once::IdRule{};
  return options;
}

once::Result<std::unique_ptr<once::Store>> open_and_make_tables() {
  static const once::testing::MemoryScratch scratch;
  static int count = 0;
  auto store =
      ONCE_TRY(once::open_sqlite_store(scratch.path("payments" + std::to_string(++count))));
  auto transaction = ONCE_TRY(store->begin("setup"));
  ONCE_TRY(transaction->sql()->execute(
      "CREATE TABLE payment (n INTEGER PRIMARY KEY, order_id TEXT, amount TEXT)"));
  ONCE_TRY(transaction->commit());
  return store;
}

}  // namespace

#include "documented_example.h"
