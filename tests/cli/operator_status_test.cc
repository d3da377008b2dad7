// SPDX-License-Identifier: Apache-2.0
// All pipelines of a store at a glance, scopes that go, and positions measured against a topic.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "operator_shop.h"
#include "run_bank.h"

namespace once {
namespace {

using testing::Answer;
using testing::Json;
using testing::OperatorShop;
using testing::Program;
using testing::run_once;
using testing::RunBank;
using Strings = std::vector<std::string>;

// --- status

TEST_F(OperatorShop, status_shows_every_pipeline_with_what_it_has) {
  send_the_usual_orders();
  work();
  work("audit");
  const Json status = once_json({"status"});
  EXPECT_EQ(status["store"], store_);
  ASSERT_EQ(status["pipelines"].size(), 2u);
  EXPECT_EQ(status["pipelines"][0]["scope"], "audit");
  const Json& payments = status["pipelines"][1];
  EXPECT_EQ(payments["scope"], "payments");
  EXPECT_EQ(payments["parked"], 3);
  EXPECT_EQ(payments["claims_in_doubt"], 0);
  EXPECT_EQ(payments["holder"], "");
  EXPECT_EQ(payments["partitions"][0]["offset"], 6);
  EXPECT_TRUE(payments.contains("progress_ms"));
  EXPECT_EQ(once_json({"status", "--scope", "payments"})["pipelines"].size(), 1u);
  const std::string text = once({"status"}).out;
  for (const char* word : {"payments", "audit", "run by", "orders/0", "none"})
    EXPECT_TRUE(has(text, word)) << text;
}

TEST_F(RunBank, status_names_the_process_that_runs_a_pipeline_and_what_waits_in_the_outbox) {
  const std::string file = write(head("") + deposit() + announcement());
  Program running({"run", file});
  send_twice(1, 3);
  Json status;
  wait_for([&] {
    status = run_once({"status", "--store", store(), "-o", "json"}).json();
    return status.is_object() && status["pipelines"].size() == 1 &&
           status["pipelines"][0]["holder"] != "" && status["destinations"].size() == 1 &&
           status["destinations"][0]["sender"] != "";
  });
  EXPECT_EQ(status["pipelines"][0]["scope"], "deposits");
  EXPECT_EQ(status["pipelines"][0]["holder"], status["destinations"][0]["sender"]);
  // What a process runs is not dropped.
  const Answer refused =
      run_once({"scope", "drop", "deposits", "--reason", "x", "--store", store()});
  EXPECT_EQ(refused.exit_code, 3) << refused.err;
  EXPECT_NE(refused.err.find("error[busy]"), std::string::npos) << refused.err;
  ::kill(running.pid(), SIGTERM);
  EXPECT_EQ(running.wait().exit_code, 0);
}

// --- Looking makes nothing

std::map<std::string, std::string> files_in(const std::string& directory) {
  std::map<std::string, std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.is_directory()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    found[entry.path()] = std::string(std::istreambuf_iterator<char>(file), {});
  }
  return found;
}

const std::vector<Strings> looks{
    {"status"},       {"ledger", "ls"},   {"park", "ls"},          {"claims", "ls"},
    {"outbox", "ls"}, {"position", "ls"}, {"horizon", "show"},     {"scope", "ls"},
    {"trace", "x"},   {"park", "resume"}, {"ledger", "show", "x"}, {"claims", "show", "x"}};

TEST_F(OperatorShop, looking_changes_no_file_of_a_store_that_is_used) {
  send_the_usual_orders();
  work();
  const auto before = files_in(scratch_.directory());
  for (const Strings& words : looks) {
    const Answer answer = once(words);
    EXPECT_TRUE(answer.exit_code == 0 || answer.exit_code == 8) << words[0] << answer.err;
    EXPECT_EQ(files_in(scratch_.directory()), before) << words[0];
  }
}

TEST_F(RunBank, looking_makes_no_tables_in_a_database_that_no_pipeline_has_used) {
  const auto before = files_in(scratch_.directory());
  for (Strings words : looks)
    for (const std::string& path : {scratch_.path("bank.db"), scratch_.path("none.db")}) {
      Strings all = words;
      all.insert(all.end(), {"--store", "sqlite:" + path});
      const Answer answer = run_once(all);
      EXPECT_EQ(answer.exit_code, 3) << words[0] << answer.err;
      EXPECT_NE(answer.err.find("error[missing]"), std::string::npos) << answer.err;
      EXPECT_NE(answer.err.find("no pipeline has used it yet"), std::string::npos) << answer.err;
      EXPECT_EQ(files_in(scratch_.directory()), before) << words[0];
    }
  EXPECT_EQ(sql("SELECT count(*) FROM sqlite_master WHERE name LIKE 'once%'"), Strings{"0"});
}

// --- scope

TEST_F(OperatorShop, scope_ls_counts_what_a_scope_has) {
  send_the_usual_orders();
  work();
  const Json scopes = once_json({"scope", "ls"});
  ASSERT_EQ(scopes.size(), 1u);
  EXPECT_EQ(scopes[0]["scope"], "payments");
  EXPECT_EQ(scopes[0]["partitions"], 1);
  EXPECT_EQ(scopes[0]["ids"], 6);
  EXPECT_EQ(scopes[0]["parked"], 3);
  EXPECT_EQ(scopes[0]["more_ids"], false);
  EXPECT_TRUE(has(once({"scope", "ls"}).out, "payments"));
}

TEST_F(OperatorShop, scope_drop_deletes_a_scope_and_writes_down_why) {
  send_the_usual_orders();
  work();
  work("trial");
  const Json planned = once_json({"scope", "drop", "trial", "--dry-run"});
  EXPECT_EQ(planned["ids"], 6);
  EXPECT_EQ(planned["dry_run"], true);
  ASSERT_EQ(once_json({"scope", "ls"}).size(), 2u);
  expect_error(once({"scope", "drop", "trial"}), 2, "usage");
  expect_error(once({"scope", "drop", "trial", "--reason", " "}), 3, "config");
  expect_error(once({"scope", "drop", "tiral", "--reason", "x"}), 8, "not_known");
  expect_error(once({"scope", "drop", "once.store", "--reason", "x"}), 2, "usage");
  ASSERT_EQ(once_json({"scope", "ls"}).size(), 2u);
  ASSERT_EQ(once({"scope", "drop", "trial", "--reason", "it is over"}).exit_code, 0);
  const Json left = once_json({"scope", "ls"});
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0]["scope"], "payments");
  EXPECT_EQ(done_by_hand(std::string(store_scope)).back(), "drop scope trial: it is over");
  expect_error(once({"scope", "drop", "trial", "--reason", "again"}), 8, "not_known");
  EXPECT_EQ(work("trial").delivered, 6u) << "it begins anew";
}

// A claim with a lease is somebody's work.
TEST_F(OperatorShop, scope_drop_refuses_a_scope_whose_claims_are_held) {
  send(line(1, "ann", "5"));
  work();
  const ClaimRequest request{.id = "effect"};
  auto store = open();
  ASSERT_TRUE(store->claims()->claim("payments", {.owner = "teller 1", .lease_ms = 60'000},
                                     std::span(&request, 1)));
  const Answer refused = once({"scope", "drop", "payments", "--reason", "x"});
  expect_error(refused, 3, "busy");
  EXPECT_TRUE(has(refused.err, "teller")) << refused.err;
  EXPECT_EQ(once_json({"ledger", "ls"}).size(), 1u);
}

// --- position

TEST_F(OperatorShop, position_ls_tells_the_lag_of_a_source) {
  send_the_usual_orders();
  work();
  send(line(7, "ann", "5") + line(8, "ann", "5"));
  EXPECT_TRUE(once_json({"position", "ls"})[0]["lag"].is_null());
  EXPECT_EQ(once_json({"position", "ls", "--source", topic_})[0]["lag"], 2);
  EXPECT_EQ(once_json({"position", "ls", "--source", topic_ + "?end=stop"})[0]["lag"], 2);
  const std::string shown =
      once({"position", "show", "--partition", "orders/0", "--source", topic_}).out;
  EXPECT_TRUE(has(shown, "lag")) << shown;
  EXPECT_TRUE(has(shown, "0 to 8")) << shown;
  EXPECT_EQ(once_json({"position", "show", "--partition", "orders/0"})[0]["offset"], 6);
  expect_error(once({"position", "show", "--partition", "no-such"}), 8, "not_known");
  expect_error(once({"position", "ls", "--source", topic_ + "-none"}), 3, "missing");
}

// A lag of 0 would say that all is handled; what comes up to this offset is not.
TEST_F(OperatorShop, a_position_beyond_the_end_is_told) {
  send_the_usual_orders();
  work();
  const Strings set{"position", "set", "--partition", "orders/0", "--reason", "r", "--to"};
  const auto with = [&](Strings more) {
    more.insert(more.begin(), set.begin(), set.end());
    return more;
  };
  const auto listed = [&] { return once_json({"position", "ls", "--source", topic_})[0]; };
  EXPECT_EQ(listed()["beyond_end"], false);
  EXPECT_TRUE(once_json({"position", "ls"})[0]["beyond_end"].is_null());
  expect_error(once(with({"99", "--source", topic_})), 2, "usage");
  const Answer unchecked = once(with({"99"}));
  ASSERT_EQ(unchecked.exit_code, 0) << unchecked.err;
  EXPECT_TRUE(has(unchecked.err, "not checked; with --source")) << unchecked.err;
  EXPECT_EQ(listed()["beyond_end"], true);
  EXPECT_TRUE(has(once({"position", "ls", "--source", topic_}).out, "beyond the end"));
  EXPECT_EQ(once_json(with({"99"}))["checked"], false);
  const Answer checked = once(with({"6", "--source", topic_}));
  EXPECT_FALSE(has(checked.err, "not checked")) << checked.err;
  EXPECT_EQ(listed()["beyond_end"], false);
}

TEST_F(OperatorShop, position_set_goes_to_the_end_an_offset_or_a_time_of_the_topic) {
  const auto at = [&](int order, std::int64_t ms) {
    Json message = Json::parse(line(order, "ann", "5"));
    message["timestamp_ms"] = ms;
    return message.dump() + "\n";
  };
  send(at(1, 1'794'787'200'000) + at(2, 1'794'787'260'000) + at(3, 1'794'787'320'000));
  work();
  const auto set = [&](const std::string& to) {
    return once({"position", "set", "--partition", "orders/0", "--source", topic_, "--to", to,
                 "--reason", "so"});
  };
  const auto offset = [&] { return once_json({"position", "ls"})[0]["offset"].get<int>(); };
  ASSERT_EQ(set("2026-11-16T00:01:00Z").exit_code, 0);
  EXPECT_EQ(offset(), 1);
  ASSERT_EQ(set("2026-11-16T00:01:00.001Z").exit_code, 0);
  EXPECT_EQ(offset(), 2);
  ASSERT_EQ(set("end").exit_code, 0);
  EXPECT_EQ(offset(), 3);
  ASSERT_EQ(set("2").exit_code, 0);
  EXPECT_EQ(offset(), 2);
  ASSERT_EQ(set("2030-01-01T00:00:00Z").exit_code, 0);
  EXPECT_EQ(offset(), 3) << "nothing is that young: the end";
  expect_error(set("4"), 2, "usage");
  expect_error(set("yesterday"), 2, "usage");
  expect_error(once({"position", "set", "--partition", "orders/0", "--to", "end", "--reason", "x"}),
               2, "usage");
  EXPECT_EQ(offset(), 3);
  EXPECT_EQ(done_by_hand().back(), "set position orders/0 to 3: so");
}

// --- trace

TEST_F(OperatorShop, trace_shows_what_the_store_knows_if_the_source_cannot_be_read) {
  send_the_usual_orders();
  work();
  const Answer traced = once({"trace", "order-1", "--source", topic_ + "-none"});
  EXPECT_EQ(traced.exit_code, 3);
  EXPECT_TRUE(has(traced.out, "applied, result paid 5")) << traced.out;
  EXPECT_TRUE(has(traced.err, "error[missing]")) << traced.err;
  const Answer json = once({"trace", "order-1", "--source", topic_ + "-none", "-o", "json"});
  EXPECT_EQ(json.json()["events"][0]["kind"], "ledger");
  EXPECT_TRUE(json.json().contains("source_error"));
}

TEST_F(OperatorShop, trace_shows_what_the_ledger_had_of_an_id_that_was_freed) {
  send_the_usual_orders();
  work();
  ASSERT_EQ(once({"ledger", "force", "order-1", "--reason", "refunded"}).exit_code, 0);
  const Answer traced = once({"trace", "order-1"});
  EXPECT_TRUE(has(traced.out, "force: refunded (was applied: paid 5; orders/0 offset 0"))
      << traced.out;
}

// --- ledger

TEST_F(OperatorShop, ledger_ls_shows_those_with_an_outcome) {
  send_the_usual_orders();
  work();
  const auto ids = [&](Words words) {
    Strings found;
    for (const Json& one : once_json(std::move(words))) found.push_back(one["id"]);
    return found;
  };
  EXPECT_EQ(ids({"ledger", "ls", "--outcome", "parked"}),
            (Strings{"order-2", "order-4", "order-6"}));
  EXPECT_EQ(ids({"ledger", "ls", "--outcome", "applied"}),
            (Strings{"order-1", "order-3", "order-5"}));
  const Answer part = once({"ledger", "ls", "--outcome", "parked", "--limit", "2"});
  EXPECT_TRUE(has(part.err, "--from 'order-6'")) << part.err;
  EXPECT_EQ(ids({"ledger", "ls", "--outcome", "parked", "--from", "order-6"}), Strings{"order-6"});
}

// Bytes that no terminal shows, and ids that look like their text in base64.
TEST_F(OperatorShop, ids_are_taken_as_they_are_shown) {
  for (const char* id : {"AAE=", "/wE=", "/wI=", "YQpi", "Yg==", "YmFzZTY0Oi93RT0="})
    send(Json{{"id_base64", id}, {"key", "ann"}, {"body", "5"}}.dump() + "\n");
  work();
  const Strings all{
      "base64:AAE=", "base64:YQpi", "b", "base64:YmFzZTY0Oi93RT0=", "base64:/wE=", "base64:/wI="};
  Strings paged;
  for (std::string from; paged.size() <= all.size();) {
    const Answer page = once({"ledger", "ls", "--limit", "2", "--from", from});
    const auto lines = page.lines();
    for (std::size_t i = 1; i < lines.size(); ++i)
      paged.push_back(lines[i].substr(10, lines[i].find(' ', 10) - 10));
    const auto next = page.err.find("--from '");
    if (next == std::string::npos) break;
    from = page.err.substr(next + 8, page.err.find('\'', next + 8) - next - 8);
  }
  EXPECT_EQ(paged, all) << "each once, in the store's order";
  for (const std::string& id : all) {
    EXPECT_TRUE(has(once({"ledger", "show", id}).out, id)) << id;
    EXPECT_TRUE(has(once({"trace", id}).out, "applied")) << id;
  }
  EXPECT_EQ(once_json({"ledger", "show", "base64:YmFzZTY0Oi93RT0="})[0]["id"], "base64:/wE=");
  EXPECT_EQ(once({"ledger", "force", "base64:/wE=", "--reason", "x"}).exit_code, 0);
  EXPECT_EQ(once({"ledger", "show", "base64:/wE="}).exit_code, 8);
  EXPECT_EQ(once_json({"ledger", "ls"}).size(), all.size() - 1) << "only that one is free";
  expect_error(once({"trace", "base64:x"}), 2, "usage");
}

}  // namespace
}  // namespace once
