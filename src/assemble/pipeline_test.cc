// SPDX-License-Identifier: Apache-2.0
// A pipeline of a file is started without a command line.
#include "assemble/pipeline.h"

#include <gtest/gtest.h>
#include <once/log.h>
#include <once/open.h>
#include <once/producer.h>
#include <once/sql.h>

#include <algorithm>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include "assemble/plans.h"
#include "testing/scratch.h"

namespace once::assemble {
namespace {

class AssembleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(create_topic(directory_.path("log"), "orders", {}));
    const auto sink = open_sink("file:" + directory_.path("log/orders")).value();
    const auto producer = Producer::open(*sink, {}).value();
    std::vector<Message> messages;
    for (const char* id : {"a", "b", "a", "c"})
      messages.push_back({.id = id, .body = "1", .timestamp_ms = 1000});
    ASSERT_TRUE(producer->send(messages));
    const auto store = open_store(store_url()).value();
    auto transaction = store->begin("setup").value();
    ASSERT_TRUE(transaction->sql()->execute("CREATE TABLE paid (n INTEGER PRIMARY KEY, id TEXT)"));
    ASSERT_TRUE(transaction->commit());
  }

  std::string store_url() const { return "sqlite:" + directory_.path("shop.db"); }
  // Of one pipeline, or of two with names.
  std::string write(const std::string& scope, const std::string& more = "") {
    std::ofstream(directory_.path("shop.toml"))
        << "scope = \"" << scope << "\"\nsource = { url = \"file:" << directory_.path("log/orders")
        << "\", id = \"carried\" }\nstore = { url = \"" << store_url()
        << "\" }\nrun = { at_end = \"stop\" }\n[[do]]\n"
        << "sql = \"INSERT INTO paid (id) VALUES (:id)\"\n"
        << more;
    return directory_.path("shop.toml");
  }
  std::vector<std::string> paid() const {
    const auto store = open_store(store_url()).value();
    auto transaction = store->begin("look").value();
    std::vector<std::string> ids;
    const auto rows = transaction->sql()->query("SELECT id FROM paid ORDER BY n").value();
    for (const Row& row : rows) ids.push_back(std::get<std::string>(row.at(0)));
    return ids;
  }
  operate::Member member_of(const Plan& plan, SharedStores& stores) {
    return {.name = plan.name,
            .open = [&plan, &stores](operate::Patience& patience) -> Result<operate::OpenedJob> {
              Opened opened = ONCE_TRY(open(plan, patience, stores));
              return operate::OpenedJob{std::move(opened.parts), std::move(opened.job)};
            },
            .observer =
                [this](const Event& event) {
                  const std::scoped_lock lock(mutex_);
                  told_.push_back(event.kind);
                }};
  }

  testing::Scratch directory_;
  std::mutex mutex_;
  std::vector<EventKind> told_;
};

TEST_F(AssembleTest, a_file_is_run_by_functions_alone) {
  const auto plans = plans_in(write("shop")).value();
  ASSERT_EQ(plans.size(), 1u);
  for (int round = 0; round < 2; ++round) {
    SharedStores stores(SharedStores::to_run);
    std::vector<operate::Member> members;
    members.push_back(member_of(plans[0], stores));
    const auto group = operate::RunnerGroup::open(std::move(members), 0).value();
    ASSERT_TRUE(group->run());
    const auto statistics = group->statistics();
    ASSERT_EQ(statistics.size(), 1u);
    EXPECT_EQ(statistics[0].statistics.pipeline.applied, round == 0 ? 3u : 0u);
  }
  EXPECT_EQ(paid(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_NE(std::find(told_.begin(), told_.end(), EventKind::partitions_assigned), told_.end());
}

TEST_F(AssembleTest, a_check_answers_what_it_found_and_changes_nothing) {
  const auto plan = plans_in(write("shop")).value().front();
  operate::Patience none(0, {});
  SharedStores stores(SharedStores::to_look);
  const Checked checked = check(plan, none, stores).value();
  const operate::Json json = json_of(plan, checked);
  EXPECT_EQ(json["scope"], "shop");
  EXPECT_EQ(json["steps"], 1);
  EXPECT_EQ(json["store_state"], "current");
  EXPECT_NE(json["promise"].get<std::string>().find("effectively once per id"), std::string::npos);
  EXPECT_EQ(paid(), std::vector<std::string>{});
}

TEST_F(AssembleTest, a_rehearsal_answers_what_would_happen_and_keeps_nothing) {
  const auto plan = plans_in(write("shop")).value().front();
  operate::Patience none(0, {});
  SharedStores stores(SharedStores::to_run);
  const auto messages = rehearse(plan, 10, none, stores).value();
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[0].outcome.kind, Outcome::Kind::applied);
  EXPECT_EQ(messages[2].verdict, Verdict::Kind::duplicate);
  EXPECT_EQ(paid(), std::vector<std::string>{});
}

TEST_F(AssembleTest, what_is_wrong_is_an_error_with_its_place) {
  const auto wrong = plans_in(write("shop", "rosw = 1\n"));
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().text.find("shop.toml:"), std::string::npos) << wrong.error().text;
  const auto none = chosen(plans_in(write("shop")).value(), "mail");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().tag, "usage");
  EXPECT_EQ(plans_in(directory_.path("none.toml")).error().tag, "missing");
}

// What pipelines of one store have in common is one store.
TEST_F(AssembleTest, a_store_is_opened_once_for_all_that_use_it) {
  SharedStores stores(SharedStores::to_run);
  const auto first = stores.open(store_url()).value().store;
  EXPECT_EQ(stores.open(store_url()).value().store, first);
  EXPECT_NE(stores.open("memory:").value().store, first);
}

}  // namespace
}  // namespace once::assemble
