// SPDX-License-Identifier: Apache-2.0
// Positions and horizons in the hands of a person, and topics that are not what they were.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "operator_shop.h"
#include "run_bank.h"

namespace once {
namespace {

using testing::Answer;
using testing::Json;
using testing::OperatorShop;
using testing::run_once;
using testing::RunBank;
using Strings = std::vector<std::string>;

TEST_F(OperatorShop, position_ls_shows_how_far_each_partition_has_come) {
  send_the_usual_orders();
  work();
  const Json all = once_json({"position", "ls"});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0]["scope"], "payments");
  EXPECT_EQ(all[0]["offset"], 6);
  EXPECT_GT(all[0]["settled_ms"].get<std::int64_t>(), 1'600'000'000'000);
  EXPECT_TRUE(all[0]["waiting_ms"].is_null());
  EXPECT_TRUE(has(once({"position", "ls"}).out, "payments"));
}

TEST_F(OperatorShop, position_set_reads_again_and_ids_tell_what_was_handled) {
  send_the_usual_orders();
  work();
  const std::string partition = once_json({"position", "ls"})[0]["partition"];
  const Answer set = once(
      {"position", "set", "--partition", partition, "--to", "first", "--reason", "a look back"});
  ASSERT_EQ(set.exit_code, 0) << set.err;
  const Strings before = payments();
  const Statistics again = work();
  EXPECT_EQ(again.delivered, 6u);
  EXPECT_EQ(again.duplicates, 6u);
  EXPECT_EQ(payments(), before);
  EXPECT_EQ(done_by_hand(), Strings{"set position " + partition + " to -1: a look back"});
}

TEST_F(OperatorShop, position_set_refuses_what_it_cannot_mean) {
  send_the_usual_orders();
  work();
  const std::string partition = once_json({"position", "ls"})[0]["partition"];
  expect_error(once({"position", "set", "--partition", partition, "--to", "-7", "--reason", "x"}),
               2, "usage");
  expect_error(once({"position", "set", "--partition", "no-such", "--to", "3", "--reason", "x"}), 8,
               "not_known");
  expect_error(once({"position", "set", "--partition", partition, "--to", "3", "--reason", " "}), 3,
               "config");
  EXPECT_EQ(once_json({"position", "ls"})[0]["offset"], 6);
}

TEST_F(OperatorShop, what_is_more_likely_a_slip_than_meant_needs_force) {
  send_the_usual_orders();
  work();
  const std::string partition = once_json({"position", "ls"})[0]["partition"];
  const Strings far{"position", "set",   "--partition", partition, "--to", "9223372036854775807",
                    "--reason", "a slip"};
  const std::vector<std::pair<Strings, std::string>> slips{
      {far, "messages ahead"},
      {{"horizon", "set", "--to", "99999999999999", "--reason", "a slip"}, "in the future"},
      {{"horizon", "set", "--to", "1763251200", "--reason", "a slip"}, "1763251200000"}};
  for (auto [words, why] : slips) {
    const Answer refused = once(words);
    expect_error(refused, 2, "usage");
    EXPECT_TRUE(has(refused.err, why) && has(refused.err, "--force")) << refused.err;
  }
  EXPECT_EQ(once_json({"position", "ls"})[0]["offset"], 6);
  EXPECT_EQ(once_json({"horizon", "show"})[0]["horizon_ms"], 0);
  EXPECT_EQ(done_by_hand(), Strings{});
  for (auto [words, why] : slips) {
    words.push_back("--force");
    EXPECT_EQ(once(words).exit_code, 0) << words[0];
  }
  // What is plausible needs none; that messages are skipped is told.
  const Answer skipped =
      once({"position", "set", "--partition", partition, "--to", "first", "--reason", "back"});
  EXPECT_EQ(skipped.exit_code, 0) << skipped.err;
  const Answer ahead =
      once({"position", "set", "--partition", partition, "--to", "8", "--reason", "skip two"});
  EXPECT_EQ(ahead.exit_code, 0) << ahead.err;
  EXPECT_TRUE(has(ahead.err, "offsets 0 to 7 are skipped")) << ahead.err;
  EXPECT_EQ(once({"horizon", "set", "--to", "1763251200000", "--reason", "meant"}).exit_code, 0);
}

// One message from the future that an older version believed: the way back.
TEST_F(OperatorShop, horizon_set_repairs_a_horizon_that_went_too_far) {
  ASSERT_TRUE(open()->forget("payments", 4'070'908'800'000, 10));
  send(line(1, "ann", "5"));
  EXPECT_EQ(work().too_old, 1u);
  EXPECT_EQ(payments(), Strings{});
  const Json shown = once_json({"horizon", "show"});
  ASSERT_EQ(shown.size(), 1u);
  EXPECT_EQ(shown[0]["horizon_ms"], 4'070'908'800'000);
  EXPECT_TRUE(has(once({"horizon", "show"}).out, "2099"));
  const Json parked = once_json({"park", "ls", "--all"});
  EXPECT_TRUE(has(parked[0]["reason"], "once horizon show")) << parked;
  // Released where it is, it helps nobody.
  const Answer useless = once({"horizon", "release", "--reason", "a wrong clock"});
  EXPECT_TRUE(has(useless.err, "it is in the future")) << useless.err;
  const Answer set = once({"horizon", "set", "--to", "none", "--reason", "a wrong clock"});
  ASSERT_EQ(set.exit_code, 0);
  EXPECT_TRUE(has(set.err, "has a second effect")) << set.err;
  send(line(2, "ann", "5"));
  EXPECT_EQ(work().applied, 1u);
  EXPECT_EQ(payments(), Strings{"order-2"});
  // It stays until a person releases it, and everybody can see that.
  ASSERT_TRUE(open()->forget("payments", 4'000, 10));
  EXPECT_EQ(once_json({"horizon", "show"})[0]["horizon_ms"], 0);
  EXPECT_EQ(once_json({"horizon", "show"})[0]["held"], true);
  EXPECT_TRUE(has(once({"horizon", "show"}).out, "none, held"));
  EXPECT_TRUE(has(once({"status"}).out, "none, held"));
  const Answer released = once({"horizon", "release", "--reason", "replayed"});
  ASSERT_EQ(released.exit_code, 0) << released.err;
  EXPECT_EQ(once_json({"horizon", "show"})[0]["held"], false);
  ASSERT_TRUE(open()->forget("payments", 4'000, 10));
  EXPECT_EQ(once_json({"horizon", "show"})[0]["horizon_ms"], 4'000);
  EXPECT_EQ(done_by_hand(),
            (Strings{"release horizon payments: a wrong clock", "set horizon 0: a wrong clock",
                     "release horizon payments: replayed"}));
  expect_error(once({"horizon", "set", "--to", "tomorrow", "--reason", "x"}), 2, "usage");
}

// Deleted and created again under the same name: a plain consumer would read it all, and so do we
// once a person has said that this is meant.
TEST_F(RunBank, a_topic_that_was_created_again_is_not_skipped) {
  send_twice(1, 5);
  ASSERT_EQ(run(head() + deposit()).exit_code, 0);
  ASSERT_EQ(run_once({"topic", "delete", topic("deposits")}).exit_code, 0);
  ASSERT_EQ(run_once({"topic", "create", topic("deposits")}).exit_code, 0);
  send_twice(11, 20);
  const Answer other = run(head() + deposit());
  EXPECT_EQ(other.exit_code, 3) << other.err;
  EXPECT_NE(other.err.find("error[gone]"), std::string::npos) << other.err;
  EXPECT_NE(other.err.find("once position set"), std::string::npos) << other.err;
  const std::string store = "sqlite:" + scratch_.path("bank.db");
  const Json positions = run_once({"position", "ls", "--store", store, "-o", "json"}).json();
  const Answer set =
      run_once({"position", "set", "--store", store, "--scope", "deposits", "--partition",
                positions[0]["partition"], "--to", "first", "--reason", "created again"});
  ASSERT_EQ(set.exit_code, 0) << set.err;
  ASSERT_EQ(run(head() + deposit()).exit_code, 0);
  Lines ids;
  for (int i = 1; i < 6; ++i) ids.push_back("deposit-" + std::to_string(i));
  for (int i = 11; i < 31; ++i) ids.push_back("deposit-" + std::to_string(i));
  expect_books(ids);
}

// Nothing comes that would have to be committed, so nothing but a look finds out.
TEST_F(RunBank, a_position_that_is_set_under_an_idle_pipeline_is_noticed_in_seconds) {
  const std::string file = write(
      "scope = \"deposits\"\n"
      "source = { url = \"file:${RUN_DIR}/deposits\", id = \"none\" }\n"
      "store = { url = \"sqlite:${RUN_DIR}/bank.db\" }\n"
      "values = { amount = { json = \"/amount\", type = \"integer\" } }\n"
      "[[do]]\n"
      "sql = \"INSERT INTO flow (amount) VALUES (:amount)\"\n");
  const auto handled = [&] { return sql("SELECT amount FROM flow ORDER BY n"); };
  testing::Program pipeline({"run", file});
  send(line("a", "ann", 1) + line("b", "bob", 2) + line("c", "ann", 3));
  wait_for([&] { return handled().size() == 3; });
  const Answer set = run_once({"position", "set", "--store", store(), "--partition", "deposits/0",
                               "--to", "first", "--reason", "again"});
  ASSERT_EQ(set.exit_code, 0) << set.err;
  const auto since = std::chrono::steady_clock::now();
  wait_for([&] { return handled().size() == 6; });
  EXPECT_LT(std::chrono::steady_clock::now() - since, std::chrono::seconds(5));
  send(line("d", "ann", 4));
  wait_for([&] { return handled().size() == 7; });
  ::kill(pipeline.pid(), SIGTERM);
  const Answer answer = pipeline.wait();
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(handled(), (Lines{"1", "2", "3", "1", "2", "3", "4"})) << answer.err;
}

TEST_F(RunBank, what_is_compared_under_an_id_is_a_key_of_the_file) {
  send(R"({"id":"deposit-1","account":"ann","amount":5,"attempt":1})"
       "\n"
       R"({"id":"deposit-1","account":"ann","amount":5,"attempt":2})"
       "\n");
  const auto with = [&](const std::string& content) {
    std::string text = head() + deposit();
    text.insert(text.find("id = "), "content = \"" + content + "\"\n");
    return text;
  };
  const Answer parked = run(with("json"), {"-o", "json"});
  EXPECT_EQ(parked.json()["mismatched"], 1);
  send(R"({"id":"deposit-2","account":"ann","amount":5,"attempt":1})"
       "\n"
       R"({"id":"deposit-2","account":"ann","amount":5,"attempt":2})"
       "\n");
  const Answer duplicate = run(with("fields:/account,/amount"), {"-o", "json"});
  EXPECT_EQ(duplicate.json()["mismatched"], 0);
  EXPECT_EQ(duplicate.json()["duplicates"], 1);
  expect_books({"deposit-1", "deposit-2"});
  EXPECT_EQ(run(with("body")).exit_code, 3);
}

}  // namespace
}  // namespace once
