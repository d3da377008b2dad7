// SPDX-License-Identifier: Apache-2.0
// Claims as a person sees and settles them.
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "operator_shop.h"

namespace once {
namespace {

using testing::Answer;
using testing::Json;
using testing::OperatorShop;
using Strings = std::vector<std::string>;

// Claims at a bank: order-1 is done, order-2 is in doubt after a step, order-3 is running.
class OperatorClaims : public OperatorShop {
 protected:
  void SetUp() override {
    OperatorShop::SetUp();
    auto store = open();
    const std::uint64_t first = claim(*store, "order-1", 60'000).record.fence;
    change(*store, {.id = "order-1", .fence = first, .to = ClaimState::done, .result = "tx-1"});
    const std::uint64_t second = claim(*store, "order-2", 1).record.fence;
    const std::vector<StepRecord> steps{{"reserve", "r-2"}};
    change(*store, {.id = "order-2", .fence = second, .to = ClaimState::running, .steps = steps});
    third_ = claim(*store, "order-3", 60'000).record.fence;
    ::usleep(5'000);  // the lease of order-2 runs out
  }
  static ClaimAnswer claim(Store& store, std::string_view id, std::int64_t lease_ms) {
    const ClaimRequest request{.id = id};
    return store.claims()
        ->claim("bank", {"teller", lease_ms, AfterLoss::doubt}, std::span(&request, 1))
        .value()
        .at(0);
  }
  static bool change(Store& store, const ClaimChange& change) {
    return store.claims()->change("bank", std::span(&change, 1)).value().at(0);
  }

  std::uint64_t third_ = 0;  // the fence of order-3
};

TEST_F(OperatorClaims, are_listed_by_state_and_shown_with_their_steps) {
  const Json all = once_json({"claims", "ls"});
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0]["state"], "done");
  EXPECT_EQ(all[0]["result"], "tx-1");
  EXPECT_EQ(all[1]["state"], "in_doubt");
  EXPECT_EQ(all[1]["reason"], "its owner teller was lost");
  EXPECT_EQ(all[2]["state"], "running");
  EXPECT_EQ(all[2]["owner"], "teller");
  for (const Json& one : all) EXPECT_EQ(one["scope"], "bank");
  const Json doubtful = once_json({"claims", "ls", "--state", "in_doubt"});
  ASSERT_EQ(doubtful.size(), 1u);
  EXPECT_EQ(doubtful[0], all[1]);
  const Answer page = once({"claims", "ls", "--limit", "1", "--from", "order-2"});
  EXPECT_EQ(page.lines().size(), 2u) << page.out;
  EXPECT_TRUE(has(page.err, "go on with --scope 'bank' --from 'order-3'")) << page.err;
  const Json shown = once_json({"claims", "show", "order-2"});
  ASSERT_EQ(shown.size(), 1u);
  EXPECT_EQ(shown[0]["steps"], Json::array({{{"name", "reserve"}, {"result", "r-2"}}}));
  const Answer table = once({"claims", "show", "order-2"});
  EXPECT_TRUE(has(table.out, "in_doubt")) << table.out;
  EXPECT_TRUE(has(table.out, "reserve  r-2")) << table.out;
  EXPECT_EQ(once({"claims", "ls", "--state", "rejected"}).out, "");
  expect_error(once({"claims", "ls", "--state", "unsure"}), 2, "usage");
}

TEST_F(OperatorClaims, in_doubt_are_settled_by_hand_and_the_log_says_why) {
  const Json done = once_json({"claims", "settle", "order-2", "--as", "done", "--result", "tx-2",
                               "--reason", "the bank's statement has it"});
  EXPECT_EQ(done["state"], "done");
  EXPECT_EQ(done["result"], "tx-2");
  auto store = open();
  const ClaimAnswer again = claim(*store, "order-2", 1000);
  EXPECT_EQ(again.kind, ClaimAnswer::Kind::settled) << "it does not run again";
  EXPECT_EQ(again.record.result, "tx-2");
  EXPECT_EQ(done_by_hand("bank"), Strings{"claim done order-2: the bank's statement has it"});
}

TEST_F(OperatorClaims, that_somebody_runs_are_fenced_off_and_opened_again) {
  auto store = open();
  const Answer table =
      once({"claims", "settle", "order-3", "--as", "retryable", "--reason", "the teller hangs"});
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_TRUE(has(table.out, "retryable")) << table.out;
  EXPECT_FALSE(change(*store, {.id = "order-3", .fence = third_, .to = ClaimState::done}))
      << "the old owner is too late";
  const ClaimAnswer next = claim(*store, "order-3", 1000);
  EXPECT_EQ(next.kind, ClaimAnswer::Kind::granted);
  EXPECT_EQ(next.record.generation, 2u);
  EXPECT_EQ(once_json({"claims", "settle", "order-3", "--as", "rejected", "--reason",
                       "cancelled"})["state"],
            "rejected");
  EXPECT_EQ(done_by_hand("bank"), (Strings{"claim reopened order-3: the teller hangs",
                                           "claim rejected order-3: cancelled"}));
  const Json trace = once_json({"trace", "order-3"});
  ASSERT_EQ(trace["events"].size(), 3u);
  EXPECT_EQ(trace["events"][0]["record"]["action"], "claim reopened");
}

TEST_F(OperatorClaims, are_not_settled_without_reason_state_or_claim) {
  expect_error(once({"claims", "settle", "order-2", "--as", "done"}), 2, "usage");
  expect_error(once({"claims", "settle", "order-2", "--reason", "r"}), 2, "usage");
  expect_error(once({"claims", "settle", "order-2", "--as", "running", "--reason", "r"}), 2,
               "usage");
  expect_error(
      once({"claims", "settle", "order-2", "--as", "rejected", "--result", "x", "--reason", "r"}),
      2, "usage");
  expect_error(once({"claims", "settle", "order-9", "--as", "done", "--reason", "r"}), 8,
               "not_known");
  EXPECT_EQ(once_json({"claims", "show", "order-2"})[0]["state"], "in_doubt");
  EXPECT_TRUE(done_by_hand("bank").empty());
}

TEST_F(OperatorClaims, in_doubt_stand_in_the_way_of_a_replay_and_the_dry_run_says_so) {
  {
    auto store = open();
    auto transaction = store->begin("bank").value();
    for (const char* id : {"order-2", "order-4"}) {
      Delivery order;
      order.partition = "orders/0";
      order.id = id;
      ASSERT_TRUE(transaction->settle(order, parked("the bank does not answer")));
    }
    ASSERT_TRUE(transaction->commit());
  }
  const std::vector<std::string> words{"park", "replay",  "--all", "--to",
                                       topic_, "--scope", "bank",  "--dry-run"};
  const Json before = once_json(words);
  ASSERT_EQ(before["count"], 2);
  EXPECT_TRUE(has(before["messages"][0]["note"], "its claim is in_doubt")) << before;
  EXPECT_EQ(before["messages"][1]["note"], "");
  ASSERT_EQ(once({"claims", "settle", "order-2", "--as", "retryable", "--reason", "not there",
                  "--scope", "bank"})
                .exit_code,
            0);
  EXPECT_EQ(once_json(words)["messages"][0]["note"], "");
}

// The settling process takes its turn between the transactions of a pipeline on the same file.
TEST_F(OperatorClaims, are_settled_while_a_pipeline_works_on_the_same_file) {
  std::string load;
  for (int i = 100; i < 1100; ++i) load += line(i, "ann", "1");
  send(load);
  auto source = open_source(topic_).value();
  auto store = open();
  PipelineOptions small = options();
  small.batch_count_max = 5;  // many transactions
  auto pipeline = Pipeline::make(*source, *store, pay(), small).value();
  std::thread worker([&] { EXPECT_TRUE(pipeline->run()); });
  const Answer settled = once({"claims", "settle", "order-2", "--as", "done", "--reason",
                               "the bank says so", "--scope", "bank"});
  EXPECT_EQ(settled.exit_code, 0) << settled.err;
  for (int wait = 0; wait < 1000 && pipeline->statistics().applied < 1000; ++wait) ::usleep(5'000);
  pipeline->stop();
  worker.join();
  EXPECT_EQ(claim(*store, "order-2", 1000).kind, ClaimAnswer::Kind::settled);
  pipeline.reset();
  store.reset();
  Strings expected;
  for (int i = 100; i < 1100; ++i) expected.push_back("order-" + std::to_string(i));
  EXPECT_EQ(payments(), expected);
}

}  // namespace
}  // namespace once
