// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include "conformance/store_fixture.h"

namespace once::testing {

// Names of partitions and destinations are no scopes, whatever numbers they are kept under.
TEST_P(StoreSuite, every_scope_that_holds_anything_is_listed_by_name_and_nothing_else) {
  ASSERT_EQ(kind_of(entry("a"), "ledger"), Kind::fresh);
  ASSERT_TRUE(store().take("position", "p0"));
  for (int i = 0; i < 10; ++i) {
    auto transaction = begin("parked");
    Delivery bare;
    bare.partition = "p1";
    ASSERT_TRUE(transaction->settle(bare, parked("broken")));
    ASSERT_TRUE(transaction->enqueue("next", {.id = "m"}));
    ASSERT_TRUE(transaction->commit());
  }
  { auto rolled_back = begin("rolled back")->admit(std::vector{entry("a")}); }
  reopen();
  std::vector<std::string> names = records().scopes().value();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  std::erase_if(names, [](const std::string& name) { return name.starts_with("once."); });
  EXPECT_EQ(names, (std::vector<std::string>{"ledger", "parked", "position"}));
}

TEST_P(StoreSuite, the_ledger_is_read_in_pages_that_miss_and_repeat_nothing) {
  std::set<std::string> expected{"0190f3c2-7b1e-7abc-8def-0123456789ab", std::string("\0x", 2)};
  for (int i = 0; i < 25; ++i) expected.insert("order " + std::to_string(i));
  std::vector<Entry> batch;
  for (const std::string& id : expected) batch.push_back(entry(id));
  ASSERT_TRUE(handle(batch));
  ASSERT_EQ(kind_of(entry("of another"), "other"), Kind::fresh);
  reopen();
  std::set<std::string> seen;
  std::string from;
  while (true) {  // a page begins with the last record of the one before it
    const auto page = records().ledger("shop", from, 4).value();
    const std::size_t repeated = !page.empty() && page.front().id == from ? 1 : 0;
    if (page.size() == repeated) break;
    for (std::size_t i = repeated; i < page.size(); ++i)
      EXPECT_TRUE(seen.insert(page[i].id).second) << page[i].id;
    from = page.back().id;
  }
  EXPECT_EQ(seen, expected);
  for (const std::string& id : expected) EXPECT_EQ(records().find("shop", id).value()->id, id);
  EXPECT_FALSE(records().find("shop", "order 2x").value());
  EXPECT_FALSE(records().find("other", "order 2").value());
  EXPECT_FALSE(records().find("nobody", "order 2").value());
}

TEST_P(StoreSuite, the_operation_log_is_read_in_its_order_and_in_pages) {
  for (int round = 0; round < 5; ++round) {
    ASSERT_TRUE(store().take("shop", "p" + std::to_string(round)));
    ASSERT_TRUE(store().take("other", "p0"));
  }
  reopen();
  const auto all = records().operations("shop", 0, 100).value();
  ASSERT_EQ(all.size(), 5u);
  std::int64_t last = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_GT(all[i].number, last);
    last = all[i].number;
    EXPECT_EQ(all[i].action, "take");
    EXPECT_EQ(all[i].subject, "p" + std::to_string(i));
    EXPECT_GT(all[i].at_ms, 0);
  }
  const auto page = records().operations("shop", all[1].number, 2).value();
  ASSERT_EQ(page.size(), 2u);
  EXPECT_EQ(page[0].subject, "p2");
  EXPECT_EQ(page[1].subject, "p3");
  EXPECT_TRUE(records().operations("nobody", 0, 10).value().empty());
}

}  // namespace once::testing
