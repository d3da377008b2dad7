// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "live/live_suite.h"

namespace once::testing {

// A pipeline whose user has only the rights that the documents ask for, and loses some of them
// while it works.
class LostRights : public LiveSuite {
 protected:
  void SetUp() override {
    user_ = fmt::format("clerk{}", ++users_);
    (void)open();  // the administrator makes the tables
    administer(fmt::format(fmt::runtime(GetParam().make_user), user_));
    for (const std::string& table : tables()) change_rights("GRANT", "TO", table);
    if (!GetParam().grant_more.empty())
      administer(fmt::format(fmt::runtime(GetParam().grant_more), user_));
  }

  void administer(const std::string& statement) {
    GetParam().administer(statement, server().url());
  }
  void change_rights(const char* verb, const char* preposition, const std::string& table) {
    administer(fmt::format("{} SELECT, INSERT, UPDATE, DELETE ON {} {} {}", verb, table,
                           preposition, user_));
  }

  std::vector<std::string> tables() {
    const auto store = open();
    auto look = store->begin("look").value();
    const Rows found = look->sql()
                           ->query(
                               "SELECT DISTINCT table_name FROM information_schema.tables "
                               "WHERE table_type = 'BASE TABLE' AND table_name LIKE 'once%'")
                           .value();
    std::vector<std::string> names{"effect"};
    for (const Row& row : found) names.push_back(std::get<std::string>(row.at(0)));
    return names;
  }

  std::unique_ptr<Store> open_as_user() {
    std::string url = server().url();
    const std::string administrator = "once:once-test-secret@";
    url.replace(url.find(administrator), administrator.size(), user_ + ":only-for-clerks@");
    return open(url);
  }

  static inline int users_ = 0;
  std::string user_;
};

TEST_P(LostRights, stop_the_pipeline_and_given_back_let_it_go_on) {
  const std::vector<std::string> lost{"effect", "once_ledger", "once_position"};
  constexpr int step = 100;
  const int count = step * static_cast<int>(lost.size() + 1);
  send(0, count);
  send(0, count, "shop again");
  auto store = open_as_user();
  ASSERT_NE(store, nullptr);
  std::size_t round = 0;
  const auto work = [&](const Delivery& delivery, SqlTransaction& sql) -> Result<Outcome> {
    ONCE_TRY(add_effect(sql, delivery.id));
    // In the middle of a batch, and of what is queued for it.
    if (round < lost.size() &&
        delivery.offset == step * static_cast<std::int64_t>(round) + step / 2)
      change_rights("REVOKE", "FROM", lost[round]);
    return applied();
  };
  for (; round < lost.size(); ++round) {
    const Status stopped = consume(*store, options(), each(work));
    ASSERT_FALSE(stopped) << lost[round];
    EXPECT_EQ(stopped.error().remedy, Remedy::stop);
    EXPECT_EQ(stopped.error().tag, "denied") << stopped.error().text;
    EXPECT_NE(stopped.error().text.find(lost[round]), std::string::npos) << stopped.error().text;
    EXPECT_EQ(stopped.error().text.find("only-for-clerks"), std::string::npos);
    const int done = static_cast<int>(effects().size());
    EXPECT_GE(done, step * static_cast<int>(round));
    EXPECT_LE(done, step * static_cast<int>(round) + step);
    EXPECT_EQ(effects(), ids_to(done));
    change_rights("GRANT", "TO", lost[round]);
  }
  const Status consumed = consume(*store, options(), each(work));
  ASSERT_TRUE(consumed) << consumed.error().text;
  EXPECT_EQ(effects(), ids_to(count));
  EXPECT_EQ(statistics_.duplicates, static_cast<std::uint64_t>(count));
}

}  // namespace once::testing
