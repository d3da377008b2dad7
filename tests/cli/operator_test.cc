// SPDX-License-Identifier: Apache-2.0
// What a person asks and changes: trace, ledger and park, on a store that a pipeline has filled.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <thread>

#include "operator_shop.h"

namespace once {
namespace {

using testing::Answer;
using testing::Json;
using testing::OperatorShop;
using testing::run_once;
using Strings = std::vector<std::string>;

class Operator : public OperatorShop {
 protected:
  void SetUp() override {
    OperatorShop::SetUp();
    send_the_usual_orders();
    const Statistics statistics = work();
    ASSERT_EQ(statistics.applied, 3u);
    ASSERT_EQ(statistics.parked, 3u);
  }
  Strings replay_words(Strings more) {
    Strings words{"park", "replay", "--to", topic_};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::vector<std::int64_t> parked_numbers() {
    std::vector<std::int64_t> numbers;
    const Json all = once_json({"park", "ls", "--all"});
    for (const Json& message : all) numbers.push_back(message["number"].get<std::int64_t>());
    return numbers;
  }
  std::vector<std::string> kinds_of(const Json& trace) {
    std::vector<std::string> kinds;
    for (const Json& event : trace["events"]) kinds.push_back(event["kind"]);
    return kinds;
  }
};

// --- trace

TEST_F(Operator, trace_tells_the_whole_story_of_an_order_in_the_order_of_time) {
  EXPECT_EQ(kinds_of(once_json({"trace", "order-2"})), (Strings{"ledger", "parked", "operation"}));
  open_account("ben");
  ASSERT_EQ(once(replay_words({"1", "--reason", "ben has an account now"})).exit_code, 0);
  EXPECT_EQ(kinds_of(once_json({"trace", "order-2"})), (Strings{"operation", "operation"}));
  work();
  const Json trace = once_json({"trace", "order-2"});
  EXPECT_EQ(trace["id"], "order-2");
  ASSERT_EQ(kinds_of(trace), (Strings{"operation", "operation", "ledger"}));
  EXPECT_EQ(trace["events"][0]["record"]["action"], "park");
  EXPECT_EQ(trace["events"][0]["record"]["reason"], "no account \"ben\"");
  EXPECT_EQ(trace["events"][1]["record"]["action"], "replay");
  EXPECT_TRUE(has(trace["events"][1]["record"]["reason"], "ben has an account now"));
  EXPECT_EQ(trace["events"][2]["record"]["outcome"], "applied");
  EXPECT_EQ(trace["events"][2]["record"]["detail"], "paid 5");
  EXPECT_EQ(trace["events"][2]["record"]["scope"], "payments");
  std::int64_t last = 0;
  for (const Json& event : trace["events"]) {
    EXPECT_GE(event["at_ms"].get<std::int64_t>(), last);
    last = event["at_ms"].get<std::int64_t>();
  }
  const Answer table = once({"trace", "order-2"});
  EXPECT_EQ(table.exit_code, 0);
  ASSERT_EQ(table.lines().size(), 4u) << table.out;
  EXPECT_TRUE(has(table.lines()[1], "park: no account \"ben\"")) << table.out;
  EXPECT_TRUE(has(table.lines()[3], "applied, result paid 5 (orders/0 offset 6)")) << table.out;
}

TEST_F(Operator, trace_sees_claims_with_steps_and_messages_that_wait_to_be_sent) {
  {
    auto store = open();
    const ClaimRequest request{.id = "order-1"};
    auto answers = store->claims()->claim("bank", {"teller 7", 60'000, AfterLoss::doubt},
                                          std::span(&request, 1));
    const std::vector<StepRecord> steps{{"charge", "tx-9"}};
    const ClaimChange change{.id = "order-1",
                             .fence = answers.value()[0].record.fence,
                             .to = ClaimState::running,
                             .steps = steps};
    ASSERT_TRUE(store->claims()->change("bank", std::span(&change, 1)).value()[0]);
    auto transaction = store->begin("payments").value();
    ASSERT_TRUE(transaction->enqueue("mails", {.id = "order-1", .body = "thank you"}));
    ASSERT_TRUE(transaction->commit());
  }
  const Json trace = once_json({"trace", "order-1"});
  ASSERT_EQ(kinds_of(trace), (Strings{"ledger", "claim", "outbox"}));
  EXPECT_EQ(trace["events"][1]["record"]["steps"],
            Json::array({{{"name", "charge"}, {"result", "tx-9"}}}));
  EXPECT_EQ(trace["events"][1]["record"]["scope"], "bank");
  EXPECT_EQ(trace["events"][2]["record"]["destination"], "mails");
  EXPECT_TRUE(trace["events"][2]["at_ms"].is_null());
  EXPECT_EQ(kinds_of(once_json({"trace", "order-1", "--scope", "payments"})),
            (Strings{"ledger", "outbox"}));
  const Answer table = once({"trace", "order-1"});
  EXPECT_TRUE(has(table.out,
                  "running, generation 1, attempt 1, held by teller 7; "
                  "step charge: tx-9"))
      << table.out;
}

TEST_F(Operator, trace_finds_the_message_in_its_topic_too) {
  const Json trace = once_json({"trace", "order-3", "--source", topic_});
  ASSERT_EQ(kinds_of(trace), (Strings{"source", "ledger"}));
  EXPECT_EQ(trace["events"][0]["record"]["offset"], 2);
  EXPECT_EQ(trace["events"][0]["record"]["body"], "7");
  EXPECT_EQ(kinds_of(once_json({"trace", "ann", "--source", topic_, "--id-from", "key"})),
            (Strings{"source", "source", "source", "source"}));
  send(line(7, "ann", "8"));  // nobody has handled it yet
  const Answer waiting = once({"trace", "order-7", "--source", topic_});
  EXPECT_EQ(waiting.exit_code, 0);
  EXPECT_TRUE(has(waiting.err, "it is in the source")) << waiting.err;
  expect_error(once({"trace", "order-8", "--source", topic_}), 8, "not_known");
  expect_error(once({"trace", "order-8", "--source", scratch_.path("x")}), 2, "url");
  expect_error(once({"trace", "order-8", "--id-from", "jsn:/x"}), 2, "usage");
}

TEST_F(Operator, what_nobody_knows_has_an_exit_code_of_its_own) {
  for (const char* noun : {"ledger", "claims"})
    expect_error(once({noun, "show", "order-99"}), 8, "not_known");
  expect_error(once({"park", "show", "99"}), 8, "not_known");
  const Answer unknown = once({"trace", "order-99", "-o", "json"});
  expect_error(unknown, 8, "not_known");
  EXPECT_EQ(unknown.error()["exit_code"], 8);
  EXPECT_TRUE(has(unknown.err, "\"order-99\" is not known to sqlite:")) << unknown.err;
  const Answer scope = once({"trace", "order-1", "--scope", "paymnets"});
  expect_error(scope, 8, "not_known");
  EXPECT_TRUE(has(scope.err, "it has: once.store, payments")) << scope.err;
}

TEST_F(Operator, not_known_tells_what_may_have_been_forgotten) {
  ASSERT_TRUE(open()->forget("payments", 1'000'000'000'000, 10));
  const Answer unknown = once({"trace", "order-99"});
  expect_error(unknown, 8, "not_known");
  EXPECT_TRUE(has(unknown.err,
                  "scope payments may have forgotten what was born before "
                  "2001-09-09T01:46:40.000Z"))
      << unknown.err;
}

TEST_F(Operator, a_mistyped_store_is_an_error_and_makes_no_new_one) {
  const std::string missing = scratch_.path("shpo.db");
  expect_error(run_once({"trace", "a", "--store", "sqlite:" + missing}), 3, "missing");
  EXPECT_FALSE(std::filesystem::exists(missing));
  expect_error(run_once({"trace", "a", "--store", "sqlit:" + path_}), 2, "url");
  expect_error(run_once({"trace", "a"}), 2, "usage");
  expect_error(run_once({"ledger", "ls", "--store", "memory:", "--scope", "x"}), 8, "not_known");
  ::setenv("ONCE_STORE", store_.c_str(), 1);
  const Answer from_environment = run_once({"trace", "order-1"});
  ::unsetenv("ONCE_STORE");
  EXPECT_EQ(from_environment.exit_code, 0) << from_environment.err;
}

// --- ledger

TEST_F(Operator, ledger_lists_and_shows_ids_with_their_outcomes) {
  const Json all = once_json({"ledger", "ls"});
  ASSERT_EQ(all.size(), 6u);
  for (int i = 0; i < 6; ++i) {
    const Json& record = all[static_cast<std::size_t>(i)];
    EXPECT_EQ(record["id"], "order-" + std::to_string(i + 1));
    EXPECT_EQ(record["offset"], i);
    EXPECT_EQ(record["outcome"], i == 0 || i == 2 || i == 4 ? "applied" : "parked");
  }
  EXPECT_EQ(once({"ledger", "ls", "-o", "jsonl"}).lines().size(), 6u);
  const Answer page = once({"ledger", "ls", "--from", "order-2", "--limit", "2"});
  ASSERT_EQ(page.lines().size(), 3u) << page.out;
  EXPECT_TRUE(has(page.lines()[1], "order-2")) << page.out;
  EXPECT_TRUE(has(page.err, "go on with --scope 'payments' --from 'order-4'")) << page.err;
  EXPECT_EQ(once({"ledger", "ls", "--limit", "6"}).err, "");
  const Json shown = once_json({"ledger", "show", "order-5"});
  ASSERT_EQ(shown.size(), 1u);
  EXPECT_EQ(shown[0], all[4]);
  EXPECT_EQ(shown[0]["detail"], "paid 1");
  const Answer table = once({"ledger", "show", "order-5"});
  EXPECT_TRUE(has(table.out, "paid 1")) << table.out;
  expect_error(once({"ledger", "ls", "--limit", "0"}), 2, "usage");
}

TEST_F(Operator, forced_id_counts_as_new_once_and_the_log_says_why) {
  send(line(1, "ann", "5"));
  work();
  EXPECT_EQ(payments(), (Strings{"order-1", "order-3", "order-5"})) << "a duplicate as yet";
  const Json forced = once_json({"ledger", "force", "order-1", "--reason", "was refunded"});
  EXPECT_EQ(forced["forced"], true);
  EXPECT_EQ(forced["was"]["outcome"], "applied");
  send(line(1, "ann", "5") + line(1, "ann", "5"));
  work();
  EXPECT_EQ(payments(), (Strings{"order-1", "order-3", "order-5", "order-1"}));
  const Answer table = once({"ledger", "force", "order-3", "--reason", "a table, too"});
  EXPECT_TRUE(has(table.out, "\"order-3\" is free in scope payments")) << table.out;
  const Strings lines = done_by_hand();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0].starts_with("force order-1: was refunded (was applied: paid 5;"))
      << lines[0];
  EXPECT_TRUE(lines[1].starts_with("force order-3: a table, too (was applied")) << lines[1];
}

TEST_F(Operator, forcing_needs_a_reason_and_an_id_that_is_there) {
  expect_error(once({"ledger", "force", "order-1"}), 2, "usage");
  expect_error(once({"ledger", "force", "order-1", "--reason", " "}), 3, "config");
  expect_error(once({"ledger", "force", "order-99", "--reason", "why"}), 8, "not_known");
  EXPECT_TRUE(done_by_hand().empty());
  EXPECT_EQ(once_json({"ledger", "ls"}).size(), 6u);
}

TEST_F(Operator, changes_need_a_scope_when_there_are_several) {
  work("points");
  const Answer unclear = once({"ledger", "force", "order-1", "--reason", "why"});
  expect_error(unclear, 2, "usage");
  EXPECT_TRUE(has(unclear.err, "payments, points")) << unclear.err;
  expect_error(once({"park", "drop", "--all", "--reason", "why"}), 2, "usage");
  EXPECT_EQ(once_json({"ledger", "show", "order-1"}).size(), 2u) << "reading shows both";
  EXPECT_EQ(once({"ledger", "force", "order-1", "--reason", "why", "--scope", "points"}).exit_code,
            0);
  const Json left = once_json({"ledger", "show", "order-1"});
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0]["scope"], "payments");
}

// --- park

TEST_F(Operator, alike_failures_fall_together_in_the_list) {
  const Json groups = once_json({"park", "ls"});
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0]["group"], 1);
  EXPECT_EQ(groups[0]["messages"], 2);
  EXPECT_EQ(groups[0]["reason"], "no account \"…\"");
  EXPECT_EQ(groups[0]["example"]["id"], "order-2");
  EXPECT_EQ(groups[1]["group"], 3);
  EXPECT_EQ(groups[1]["messages"], 1);
  EXPECT_EQ(groups[1]["reason"], "amount -# is negative");
  const Answer table = once({"park", "ls"});
  EXPECT_EQ(table.lines().size(), 3u) << table.out;
  const Json each = once_json({"park", "ls", "--all"});
  ASSERT_EQ(each.size(), 3u);
  EXPECT_EQ(each[1]["id"], "order-4");
  EXPECT_EQ(each[1]["reason"], "no account \"eve\"");
  EXPECT_EQ(once({"park", "ls", "--all"}).lines().size(), 4u);
}

TEST_F(Operator, parked_message_is_shown_whole_also_when_it_is_no_text) {
  const std::string bytes = R"({"id":"order-7","key":"bob","headers":{"trace":"x"},"body":"//6A",)"
                            R"("encoding":"base64","timestamp_ms":1700000000000})";
  send(bytes + "\n");
  work();
  const Json shown = once_json({"park", "show", "4"});
  EXPECT_EQ(shown["number"], 4);
  EXPECT_EQ(shown["scope"], "payments");
  EXPECT_EQ(shown["reason"], "no account \"bob\"");
  EXPECT_EQ(shown["offset"], 6);
  EXPECT_EQ(shown["message"],
            Json::parse(R"({"id":"order-7","key":"bob","headers":[{"name":"trace","value":"x"}],)"
                        R"("timestamp_ms":1700000000000,"body":"//6A","encoding":"base64"})"));
  const Answer table = once({"park", "show", "4"});
  EXPECT_TRUE(has(table.out, "base64://6A")) << table.out;
  EXPECT_TRUE(has(table.out, "2023-11-14T22:13:20.000Z")) << table.out;
}

TEST_F(Operator, dry_run_says_what_would_happen_and_changes_nothing) {
  const Json plan = once_json(replay_words({"--group", "1", "--dry-run"}));
  EXPECT_EQ(plan["dry_run"], true);
  EXPECT_EQ(plan["count"], 2);
  EXPECT_EQ(plan["messages"][1]["id"], "order-4");
  EXPECT_EQ(plan["messages"][1]["note"], "");
  const Answer table = once({"park", "drop", "--all", "--dry-run"});
  EXPECT_EQ(table.lines().size(), 4u) << table.out;
  EXPECT_TRUE(has(table.err, "nothing was changed")) << table.err;
  EXPECT_EQ(parked_numbers(), (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(run_once({"consume", topic_}).lines().size(), 6u);
  EXPECT_TRUE(done_by_hand().empty());
}

TEST_F(Operator, dry_run_warns_of_what_would_not_count_as_new) {
  send(line(1, "ann", "6"));  // another amount for the same order: parked as a mismatch
  work();
  const Json mismatch = once_json(replay_words({"4", "--dry-run"}));
  EXPECT_TRUE(has(mismatch["messages"][0]["note"], "in the ledger as applied")) << mismatch;
  const Answer sent = once(replay_words({"4", "--reason", "let us see"}));
  EXPECT_TRUE(has(sent.err, "1 of them may not count as new")) << sent.err;
  work();
  EXPECT_EQ(payments(), (Strings{"order-1", "order-3", "order-5"})) << "not paid twice";
  EXPECT_EQ(parked_numbers(), (std::vector<std::int64_t>{1, 2, 3, 5})) << "parked again";
  ASSERT_TRUE(open()->forget("payments", 4'000'000'000'000, 1));
  const Json old = once_json(replay_words({"1", "--dry-run"}));
  EXPECT_TRUE(has(old["messages"][0]["note"], "older than the horizon")) << old;
}

TEST_F(Operator, H28_replayed_messages_go_through_the_pipeline_exactly_once) {
  open_account("ben");
  open_account("eve");
  const Json replayed = once_json(replay_words({"--group", "1", "--reason", "accounts made"}));
  EXPECT_EQ(replayed["count"], 2);
  EXPECT_EQ(replayed["sent"], 2);
  EXPECT_EQ(replayed["numbers"], Json::array({1, 2}));
  EXPECT_EQ(run_once({"consume", topic_, "--from", "6"}).lines(), (Strings{"5", "9"}));
  expect_error(once(replay_words({"1", "2", "--reason", "asked twice"})), 8, "not_known");
  for (int round = 0; round < 2; ++round) {
    work();
    EXPECT_EQ(payments(), (Strings{"order-1", "order-3", "order-5", "order-2", "order-4"}));
  }
  EXPECT_EQ(parked_numbers(), std::vector<std::int64_t>{3});
  const auto lines = done_by_hand();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0].starts_with("replay order-2: accounts made (parked message 1, to "))
      << lines[0];
  EXPECT_TRUE(lines[1].starts_with("replay order-4: accounts made (parked message 2, to "))
      << lines[1];
}

TEST_F(Operator, replay_can_be_chosen_by_failure_or_all_and_goes_to_any_topic) {
  const std::string other = "file:" + scratch_.path("repaired");
  ASSERT_EQ(run_once({"topic", "create", other, "--partitions", "3"}).exit_code, 0);
  const Answer one =
      once({"park", "replay", "--failure", "negative", "--to", other, "--reason", "r"});
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(one.lines()[1].substr(0, 16), "       1     1  ") << one.out;
  EXPECT_EQ(run_once({"consume", other}).out, "-3\n");
  EXPECT_EQ(once({"park", "replay", "--all", "--to", other, "--reason", "r"}).exit_code, 0);
  std::map<std::string, int> arrived;
  for (const std::string& text : run_once({"consume", other, "-o", "json"}).lines())
    ++arrived[Json::parse(text)["id"]];
  EXPECT_EQ(arrived, (std::map<std::string, int>{{"order-2", 1}, {"order-4", 1}, {"order-6", 1}}));
  EXPECT_EQ(once({"park", "ls"}).out, "");
  EXPECT_EQ(once_json({"park", "ls"}), Json::array());
}

// Sent to another topic by mistake, they would not come back to their pipeline.
TEST_F(Operator, replay_to_a_topic_of_another_name_is_told) {
  const std::string other = "file:" + scratch_.path("repaired");
  ASSERT_EQ(run_once({"topic", "create", other}).exit_code, 0);
  const std::string told = "came from topic orders and goes to topic repaired";
  const Answer plan = once({"park", "replay", "1", "--to", other, "--dry-run", "-o", "json"});
  EXPECT_TRUE(has(plan.err, told)) << plan.err;
  EXPECT_TRUE(has(plan.json()["detour"], told)) << plan.out;
  EXPECT_EQ(once_json(replay_words({"1", "--dry-run"}))["detour"], "");
  const Answer done = once({"park", "replay", "1", "--to", other, "--reason", "r"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(has(done.err, told)) << done.err;
}

// What a killed replay left is sent to the same topic from every directory.
TEST_F(Operator, replay_to_a_relative_path_leads_to_one_topic_from_everywhere) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(scratch_.directory());
  ::setenv("ONCE_POINT", "relay_after_assign", 1);
  const Answer killed = once({"park", "replay", "1", "--to", "file:orders", "--reason", "r"});
  ::unsetenv("ONCE_POINT");
  std::filesystem::current_path(before);
  EXPECT_EQ(killed.exit_code, 128 + 9) << killed.err;
  const Json resumed = once_json({"park", "resume"});
  ASSERT_EQ(resumed.size(), 1u) << resumed;
  EXPECT_EQ(resumed[0]["sent"], 1);
  EXPECT_EQ(run_once({"consume", topic_, "--from", "6"}).lines(), Strings{"5"});
  const Answer missing = once({"park", "replay", "2", "--to", "file:data/calls", "--reason", "r"});
  expect_error(missing, 3, "missing");
  const std::string here = std::filesystem::weakly_canonical(before).string();
  EXPECT_TRUE(has(missing.err, "there is no topic calls in " + here +
                                   "/data; make it first, with "
                                   "`once topic create file:" +
                                   here + "/data/calls`"))
      << missing.err;
  EXPECT_EQ(parked_numbers(), (std::vector<std::int64_t>{2, 3}));
}

TEST_F(Operator, replays_to_one_topic_leave_one_destination_and_one_claim_behind) {
  for (const char* number : {"1", "2", "3"})
    ASSERT_EQ(once(replay_words({number, "--reason", "r"})).exit_code, 0) << number;
  const Json destinations = once_json({"outbox", "ls"});
  ASSERT_EQ(destinations.size(), 1u) << destinations;
  EXPECT_TRUE(destinations[0]["destination"].get<std::string>().starts_with("once.replay/file:"));
  EXPECT_EQ(destinations[0]["pending"], 0);
  EXPECT_EQ(once_json({"claims", "ls", "--scope", "once.relay"}).size(), 1u);
}

TEST_F(Operator, replay_that_cannot_begin_changes_nothing) {
  const std::string nowhere = "file:" + scratch_.path("nowhere");
  expect_error(once({"park", "replay", "1", "--to", nowhere, "--reason", "r"}), 3, "missing");
  expect_error(once({"park", "replay", "1", "--to", "fiel:x", "--reason", "r"}), 2, "url");
  expect_error(once(replay_words({"1"})), 2, "usage");
  expect_error(once(replay_words({"--reason", "r"})), 2, "usage");
  expect_error(once(replay_words({"1", "--all", "--reason", "r"})), 2, "usage");
  expect_error(once(replay_words({"1", "99", "--reason", "r"})), 8, "not_known");
  expect_error(once(replay_words({"--group", "2", "--reason", "r"})), 8, "not_known");
  expect_error(once(replay_words({"--failure", "sunspots", "--reason", "r"})), 8, "not_known");
  {
    testing::Program writer({"produce", topic_});
    writer.feed("mine\n");
    testing::Program reader({"consume", topic_, "--follow", "--count", "7"});
    ASSERT_EQ(reader.wait().lines().size(), 7u) << "the writer has begun";
    expect_error(once(replay_words({"1", "--reason", "r"})), 3, "busy");
  }
  const std::string far = "file:" + std::string(250, 'x');
  EXPECT_NE(once({"park", "replay", "1", "--to", far, "--reason", "r"}).exit_code, 0);
  EXPECT_EQ(parked_numbers(), (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_TRUE(done_by_hand().empty());
  EXPECT_TRUE(open()->outbox()->destinations().value().empty());
}

// The store would keep it, for everybody who may read its outbox.
TEST_F(Operator, replay_to_a_url_with_a_password_is_refused_and_not_shown) {
  const Json before = once_json({"park", "ls", "--all"});
  for (const char* url : {"kafka://me:geheim77@localhost:1/t",
                          "kafka://localhost:1/t?sasl.password=geheim77&sasl.username=me"}) {
    const Answer refused =
        once({"park", "replay", "--all", "--to", url, "--reason", "again", "-o", "json"});
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_TRUE(has(refused.err, "properties=FILE")) << refused.err;
    EXPECT_FALSE(has(refused.err, "geheim77")) << refused.err;
  }
  EXPECT_EQ(once_json({"park", "ls", "--all"}), before);
  EXPECT_EQ(open()->outbox()->destinations().value(), Strings{});
}

// Whatever wrote it there: another version, or a program.
TEST_F(Operator, password_that_is_in_the_store_is_shown_by_no_format) {
  {
    auto store = open();
    auto transaction = store->begin("payments").value();
    ASSERT_TRUE(transaction->enqueue("run/p/kafka://me:geheim77@h/t",
                                     {.id = "kafka://you:of-message@h", .body = "b"}));
    ASSERT_TRUE(transaction->commit());
  }
  for (const char* format : {"json", "jsonl", "table"})
    for (const Strings& words :
         {Strings{"outbox", "ls"}, {"trace", "kafka://you:of-message@h"}, {"status"}}) {
      Strings all = words;
      all.insert(all.end(), {"-o", format});
      const Answer shown = once(all);
      EXPECT_EQ(shown.exit_code, 0) << shown.err;
      EXPECT_FALSE(has(shown.out + shown.err, "geheim77")) << shown.out << shown.err;
    }
  const Json trace = once_json({"trace", "kafka://you:of-message@h"});
  EXPECT_EQ(trace["id"], "kafka://you:of-message@h");
}

TEST_F(Operator, replay_that_was_killed_is_resumed_and_nothing_is_sent_twice) {
  open_account("ben");
  open_account("eve");
  for (const char* point : {"relay_after_assign", "relay_after_append"}) {
    const auto numbers = parked_numbers();
    ::setenv("ONCE_POINT", point, 1);
    const Answer killed =
        once(replay_words({std::to_string(numbers.front()), "--reason", "accounts made"}));
    ::unsetenv("ONCE_POINT");
    EXPECT_EQ(killed.exit_code, 128 + 9) << killed.err;
    EXPECT_EQ(parked_numbers().size(), numbers.size() - 1) << "that is committed";
    const Json resumed = once_json({"park", "resume"});
    ASSERT_EQ(resumed.size(), 1u) << resumed;
    EXPECT_EQ(resumed[0]["sent"], 1);
    EXPECT_EQ(resumed[0]["to"], topic_);
    EXPECT_EQ(once_json({"park", "resume"}), Json::array());
  }
  EXPECT_EQ(run_once({"consume", topic_, "--from", "6"}).lines(), (Strings{"5", "9"}));
  work();
  EXPECT_EQ(payments(), (Strings{"order-1", "order-3", "order-5", "order-2", "order-4"}));
}

TEST_F(Operator, replay_leaves_the_messages_of_other_destinations_to_their_relays) {
  {
    auto store = open();
    auto transaction = store->begin("payments").value();
    for (const char* destination : {"a program's own", "zz"})
      ASSERT_TRUE(transaction->enqueue(destination, {.id = "m", .body = "not yours"}));
    ASSERT_TRUE(transaction->commit());
  }
  ASSERT_EQ(once(replay_words({"--all", "--reason", "r"})).exit_code, 0);
  ASSERT_EQ(once({"park", "resume"}).exit_code, 0);
  EXPECT_EQ(open()->outbox()->destinations().value(), (Strings{"a program's own", "zz"}));
  EXPECT_FALSE(has(run_once({"consume", topic_}).out, "not yours"));
}

TEST_F(Operator, dropped_messages_are_gone_and_their_ids_stay_known) {
  const Json dropped = once_json({"park", "drop", "1", "3", "--reason", "test orders"});
  EXPECT_EQ(dropped["count"], 2);
  EXPECT_EQ(parked_numbers(), std::vector<std::int64_t>{2});
  const Answer table = once({"park", "drop", "--failure", "eve", "--reason", "left"});
  EXPECT_EQ(table.out, "dropped\n      1\n");
  send_the_usual_orders();
  EXPECT_EQ(work().duplicates, 6u);
  EXPECT_EQ(payments(), (Strings{"order-1", "order-3", "order-5"}));
  expect_error(once({"park", "drop", "1", "--reason", "again"}), 8, "not_known");
  EXPECT_EQ(done_by_hand(), (Strings{"drop order-2: test orders (parked message 1)",
                                     "drop order-6: test orders (parked message 3)",
                                     "drop order-4: left (parked message 2)"}));
}

// --- A pipeline is at work on the same file.

TEST_F(Operator, books_are_changed_while_a_pipeline_works_on_them) {
  open_account("ben");
  auto source = open_source(topic_).value();
  auto store = open();
  auto pipeline = Pipeline::make(*source, *store, pay(), options()).value();
  std::thread worker([&] { EXPECT_TRUE(pipeline->run()); });
  const auto until_paid = [&](std::uint64_t count) {
    for (int wait = 0; wait < 1000 && pipeline->statistics().applied < count; ++wait)
      ::usleep(5'000);
    EXPECT_EQ(pipeline->statistics().applied, count);
  };
  std::string load;
  for (int i = 100; i < 1100; ++i) load += line(i, "ann", "1");
  send(load);
  EXPECT_EQ(once({"ledger", "force", "order-1", "--reason", "once more"}).exit_code, 0);
  EXPECT_EQ(once(replay_words({"1", "--reason", "ben has an account"})).exit_code, 0);
  EXPECT_EQ(once({"park", "drop", "2", "--reason", "not ours"}).exit_code, 0);
  send(line(1, "ann", "5") + line(4, "eve", "9"));
  until_paid(1002);
  pipeline->stop();
  worker.join();
  pipeline.reset();
  store.reset();
  std::map<std::string, int> counts;
  for (const std::string& id : payments()) ++counts[id];
  EXPECT_EQ(counts.size(), 1004u);
  for (const auto& [id, count] : counts) EXPECT_EQ(count, id == "order-1" ? 2 : 1) << id;
  EXPECT_EQ(counts.count("order-4"), 0u) << "dropped, and its copy is a duplicate";
  EXPECT_EQ(done_by_hand().size(), 3u);
}

}  // namespace
}  // namespace once
