// SPDX-License-Identifier: Apache-2.0
// What is emitted: several processes, stores and destinations that go back, what can never be sent.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <memory>

#include "run_bank.h"

namespace once::testing {
namespace {

class OutboxCli : public RunBank {
 protected:
  std::string announced_run() const { return head() + deposit() + announcement(); }
  std::string endless_run() const { return head("") + deposit() + announcement(); }
  std::string destination() const { return "run/deposits/file:${RUN_DIR}/done"; }

  void copy_bank(const std::string& from, const std::string& to) {
    for (const char* end : {"", "-wal", "-shm"}) {
      std::filesystem::remove(scratch_.path(to) + end);
      if (std::filesystem::exists(scratch_.path(from) + end))
        std::filesystem::copy_file(scratch_.path(from) + end, scratch_.path(to) + end);
    }
  }
  Json outbox(Lines words) {
    Lines all{"outbox"};
    all.insert(all.end(), words.begin(), words.end());
    for (const char* word : {"--store", "-o"}) all.emplace_back(word);
    all.insert(all.end() - 1, store());
    all.emplace_back("json");
    const Answer answer = run_once(all);
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    return answer.json();
  }
  std::size_t announced_count() {
    return run_once({"consume", topic("done"), "-o", "json"}).lines().size();
  }
};

TEST_F(OutboxCli, a_file_pipeline_that_is_started_twice_stands_by_and_takes_over) {
  const std::string file = write(endless_run());
  auto first = std::make_unique<Program>(Lines{"run", file});
  send(line("deposit-0", "ann", 1));
  wait_for([&] { return announced_count() == 1; });
  Program second({"run", file});
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  send(line("deposit-1", "ann", 1));
  wait_for([&] { return announced_count() == 2; });
  EXPECT_EQ(::kill(first->pid(), 0), 0) << "the first one still runs";
  ::kill(first->pid(), SIGTERM);
  EXPECT_EQ(first->wait().exit_code, 0) << "it was not thrown out";
  send(line("deposit-2", "ann", 1));
  wait_for([&] { return announced_count() == 3; });
  ::kill(second.pid(), SIGTERM);
  const Answer answer = second.wait();
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_NE(answer.err.find("runs the scope \"deposits\"; standing by"), std::string::npos)
      << answer.err;
  expect_books({"deposit-0", "deposit-1", "deposit-2"});
  expect_announced({"deposit-0", "deposit-1", "deposit-2"});
}

// Frozen for longer than its lease, it is replaced; when it comes back, it is one that stands by.
TEST_F(OutboxCli, a_file_pipeline_that_was_frozen_and_replaced_stands_by_again) {
  const std::string file = write(endless_run());
  Program first({"run", file});
  send(line("deposit-0", "ann", 1));
  wait_for([&] { return announced_count() == 1; });
  auto second = std::make_unique<Program>(Lines{"run", file});
  ::kill(first.pid(), SIGSTOP);
  send(line("deposit-1", "ann", 1));
  wait_for([&] { return sql("SELECT count(*) FROM flow") == Lines{"2"}; });
  ::kill(first.pid(), SIGCONT);
  wait_for([&] { return announced_count() == 2; });  // the frozen one could not let go of the topic
  send(line("deposit-2", "ann", 1));
  wait_for([&] { return announced_count() == 3; });
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  ASSERT_EQ(::kill(first.pid(), 0), 0) << "it has ended";
  ::kill(second->pid(), SIGTERM);
  EXPECT_EQ(second->wait().exit_code, 0);
  send(line("deposit-3", "ann", 1));
  wait_for([&] { return announced_count() == 4; });
  ::kill(first.pid(), SIGTERM);
  const Answer answer = first.wait();
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_NE(answer.err.find("another process has taken the partition"), std::string::npos)
      << answer.err;
  EXPECT_NE(answer.err.find("; standing by"), std::string::npos) << answer.err;
  const Lines all{"deposit-0", "deposit-1", "deposit-2", "deposit-3"};
  expect_books(all);
  expect_announced(all);
}

// One that stands by asks the store all the time: that it cannot is told, and that it can again.
TEST_F(OutboxCli, one_that_stands_by_tells_that_its_store_is_away_and_back) {
  const std::string file = write(endless_run());
  Program first({"run", file});
  send(line("deposit-0", "ann", 1));
  wait_for([&] { return announced_count() == 1; });
  Program second({"run", file, "--log", "json"});
  std::this_thread::sleep_for(std::chrono::milliseconds(1'000));
  const rlimit few{3, 1024};
  ASSERT_EQ(::prlimit(second.pid(), RLIMIT_NOFILE, &few, nullptr), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(2'500));
  const rlimit enough{1024, 1024};
  ASSERT_EQ(::prlimit(second.pid(), RLIMIT_NOFILE, &enough, nullptr), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(1'000));
  ::kill(second.pid(), SIGTERM);
  const Answer answer = second.wait();
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  const auto standing_by = answer.err.find("\"kind\":\"standing_by\"");
  const auto away = answer.err.find("\"kind\":\"store_away\"");
  const auto back = answer.err.find("\"kind\":\"store_back\"");
  EXPECT_TRUE(standing_by < away && away < back && back != std::string::npos) << answer.err;
  ::kill(first.pid(), SIGTERM);
  EXPECT_EQ(first.wait().exit_code, 0);
  expect_announced({"deposit-0"});
}

TEST_F(OutboxCli, one_that_stands_by_ends_when_it_is_told) {
  const std::string file = write(endless_run());
  Program first({"run", file});
  send(line("deposit-0", "ann", 1));
  wait_for([&] { return announced_count() == 1; });
  Program second({"run", file});
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  ::kill(second.pid(), SIGTERM);
  const auto told = std::chrono::steady_clock::now();
  EXPECT_EQ(second.wait().exit_code, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - told, std::chrono::seconds(5));
}

TEST_F(OutboxCli, processes_that_are_killed_again_and_again_announce_each_deposit_once) {
  const std::string file = write(endless_run());
  std::vector<std::unique_ptr<Program>> members(3);
  for (auto& member : members) member = std::make_unique<Program>(Lines{"run", file});
  Lines ids;
  for (int round = 0; round < 12; ++round) {
    std::string lines;
    for (int i = 0; i < 20; ++i) {
      ids.push_back("deposit-" + std::to_string(ids.size()));
      lines += line(ids.back(), i % 2 == 0 ? "ann" : "bob", 1);
    }
    send(lines);
    std::this_thread::sleep_for(std::chrono::milliseconds(30 * (round % 5)));
    auto& victim = members[static_cast<std::size_t>(round) % members.size()];
    ::kill(victim->pid(), SIGKILL);
    EXPECT_EQ(victim->wait().exit_code, 128 + SIGKILL) << "no member ends by itself";
    victim = std::make_unique<Program>(Lines{"run", file});
  }
  wait_for([&] { return announced_count() >= ids.size(); });
  for (auto& member : members) ::kill(member->pid(), SIGTERM);
  for (auto& member : members) {
    const Answer answer = member->wait();
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
  }
  expect_books(ids);
  expect_announced(ids);
}

TEST_F(OutboxCli, a_destination_that_a_relay_is_sending_to_is_not_restarted_by_mistake) {
  Program program({"run", write(endless_run())});
  send(line("deposit-0", "ann", 1));
  wait_for([&] { return announced_count() == 1; });
  const Lines words{"outbox",  "restart", destination(), "--reason", "by mistake",
                    "--store", store(),   "-o",          "json"};
  const Answer refused = run_once(words);
  EXPECT_EQ(refused.exit_code, 3) << refused.out;
  EXPECT_EQ(refused.error()["tag"], "busy") << refused.err;
  EXPECT_EQ(outbox({"ls"})[0]["restarts"], 0);
  Lines forced = words;
  forced.emplace_back("--force");
  EXPECT_EQ(run_once(forced).exit_code, 0);
  EXPECT_EQ(outbox({"ls"})[0]["restarts"], 1);
  ::kill(program.pid(), SIGTERM);
  EXPECT_EQ(program.wait().exit_code, 0);
}

TEST_F(OutboxCli, a_destination_that_has_not_diverged_is_not_restarted_by_mistake) {
  send(line("deposit-0", "ann", 1));
  ASSERT_EQ(run(announced_run()).exit_code, 0);  // no relay runs any more
  const Lines words{"outbox",  "restart", destination(), "--reason", "by mistake",
                    "--store", store(),   "-o",          "json"};
  const Answer refused = run_once(words);
  EXPECT_EQ(refused.exit_code, 3) << refused.out;
  EXPECT_EQ(refused.error()["tag"], "healthy") << refused.err;
  EXPECT_EQ(outbox({"ls"})[0]["restarts"], 0);
  EXPECT_EQ(outbox({"ls"})[0]["trouble"], "");
  Lines forced = words;
  forced.emplace_back("--force");
  EXPECT_EQ(run_once(forced).exit_code, 0);
  EXPECT_EQ(outbox({"ls"})[0]["restarts"], 1);
}

// A person who looks sees what waits, and why it does not leave.
TEST_F(OutboxCli, a_missing_destination_with_pending_rows_is_shown_until_it_is_there_again) {
  send(line("deposit-0", "ann", 1) + line("deposit-1", "bob", 1));
  ::setenv("ONCE_POINT", "relay_after_assign", 1);
  ASSERT_EQ(run(announced_run()).exit_code, 128 + SIGKILL);
  ::unsetenv("ONCE_POINT");
  const Json waiting = outbox({"show", "--pending"});
  ASSERT_EQ(waiting.size(), 2u) << waiting;
  EXPECT_EQ(waiting[0]["message"]["id"], "deposit-0");
  EXPECT_EQ(waiting[1]["sequence"], 1);
  EXPECT_EQ(outbox({"show", "--pending", "--limit", "1", "--destination", destination()}).size(),
            1u);
  ASSERT_EQ(run_once({"topic", "delete", topic("done")}).exit_code, 0);
  EXPECT_NE(run(announced_run()).exit_code, 0);
  EXPECT_NE(outbox({"ls"})[0]["trouble"].get<std::string>().find("there is no topic done"),
            std::string::npos);
  const Answer status = run_once({"status", "--store", store()});
  EXPECT_NE(status.out.find("there is no topic done"), std::string::npos) << status.out;
  const Answer restart =
      run_once({"outbox", "restart", destination(), "--reason", "r", "--store", store()});
  EXPECT_NE(restart.err.find("error[healthy]"), std::string::npos) << restart.err;
  ASSERT_EQ(run_once({"topic", "create", topic("done")}).exit_code, 0);
  ASSERT_EQ(run(announced_run()).exit_code, 0);
  EXPECT_EQ(outbox({"ls"})[0]["trouble"], "");
  EXPECT_EQ(outbox({"show", "--pending"}).size(), 0u);
  expect_books({"deposit-0", "deposit-1"});
  expect_announced({"deposit-0", "deposit-1"});
}

TEST_F(OutboxCli, a_change_that_selects_nothing_says_so_and_changes_nothing) {
  send(line("deposit-0", "ann", 1));
  ASSERT_EQ(run(announced_run()).exit_code, 0);
  for (Lines words : {Lines{"outbox", "drop", "--all"},
                      {"outbox", "retry", "--all"},
                      {"outbox", "retry", "--destination", destination()},
                      {"outbox", "drop", "--pending", "--destination", destination()},
                      {"later", "now", "--all"},
                      {"later", "drop", "--all"},
                      {"park", "drop", "--all"},
                      {"park", "drop", "--failure", "sunspots"},
                      {"park", "replay", "--all", "--to", topic("deposits")}}) {
    for (const char* word : {"--reason", "r", "--store"}) words.emplace_back(word);
    words.push_back(store());
    const Answer answer = run_once(words);
    EXPECT_EQ(answer.exit_code, 8) << words[0] << words[1] << answer.err << answer.out;
    EXPECT_NE(answer.err.find("error[not_known]"), std::string::npos) << answer.err;
    EXPECT_NE(answer.err.find("nothing was changed"), std::string::npos) << answer.err;
  }
  const Answer logged = run_once({"operations", "--store", store(), "-o", "json"});
  EXPECT_EQ(logged.json(), Json::array()) << "nothing was changed by hand";
}

TEST_F(OutboxCli, the_reasons_of_corrections_are_found_in_the_operation_log) {
  send(line("deposit-0", "ann", 1));
  ASSERT_EQ(run(announced_run()).exit_code, 0);
  const auto change = [&](Lines words, const std::string& reason) {
    for (const std::string& word :
         {std::string("--reason"), reason, std::string("--store"), store()})
      words.push_back(word);
    const Answer answer = run_once(words);
    ASSERT_EQ(answer.exit_code, 0) << answer.err;
  };
  change({"position", "set", "--partition", "deposits/0", "--to", "first"}, "read it again");
  change({"horizon", "set", "--to", "1000", "--force"}, "a wrong clock");
  change({"outbox", "restart", destination(), "--force"}, "restored");
  const Json logged = run_once({"operations", "--store", store(), "-o", "json"}).json();
  Lines found;
  for (const Json& one : logged)
    found.push_back(one["scope"].get<std::string>() + ": " + one["action"].get<std::string>() +
                    " " + one["subject"].get<std::string>() + ", " +
                    one["reason"].get<std::string>());
  EXPECT_EQ(found, (Lines{"deposits: set position deposits/0 to -1, read it again",
                          "deposits: set horizon 1000, a wrong clock",
                          "once.relay: restart destination " + destination() + ", restored"}));
  const Json all = run_once({"operations", "--store", store(), "--all", "-o", "json"}).json();
  EXPECT_GT(all.size(), 3u) << "takes and the making of the tables, too";
  EXPECT_EQ(run_once({"operations", "--store", store(), "--limit", "1", "-o", "json"}).json()[0],
            logged[2]);
  EXPECT_EQ(run_once({"operations", "--scope", "deposits", "--store", store()}).lines().size(), 3u);
}

TEST_F(OutboxCli, a_destination_that_is_replaced_under_a_live_relay_loses_nothing_in_silence) {
  Program program({"run", write(endless_run())});
  send(line("deposit-0", "ann", 1));
  wait_for([&] { return announced_count() == 1; });
  std::filesystem::remove_all(scratch_.path("done"));
  ASSERT_EQ(run_once({"topic", "create", topic("done")}).exit_code, 0);
  send(line("deposit-1", "ann", 1));
  std::this_thread::sleep_for(std::chrono::milliseconds(3000));
  ::kill(program.pid(), SIGTERM);
  const Answer ended = program.wait();
  EXPECT_EQ(ended.exit_code, 3) << ended.err;
  EXPECT_NE(ended.err.find("error[diverged]"), std::string::npos) << ended.err;
  EXPECT_EQ(outbox({"ls"})[0]["pending"], 1) << "what was not sent waits";
  EXPECT_EQ(announced_count(), 0u);
}

TEST_F(OutboxCli, a_store_that_was_restored_is_an_error_with_a_repair_and_nothing_is_lost) {
  send(line("deposit-0", "ann", 1) + line("deposit-1", "ann", 1));
  ASSERT_EQ(run(announced_run()).exit_code, 0);
  copy_bank("bank.db", "backup.db");
  send(line("deposit-2", "ann", 1));
  ASSERT_EQ(run(announced_run()).exit_code, 0);
  copy_bank("backup.db", "bank.db");
  send(line("deposit-3", "ann", 1));
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Answer refused = run(announced_run());
    EXPECT_EQ(refused.exit_code, 3);
    EXPECT_NE(refused.err.find("error[diverged]"), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("the destination is ahead"), std::string::npos) << refused.err;
  }
  expect_announced({"deposit-0", "deposit-1", "deposit-2"});
  const Json checked = run(announced_run(), {"--check", "-o", "json"}).json();
  ASSERT_EQ(checked["warnings"].size(), 1u) << checked;
  EXPECT_NE(checked["warnings"][0].get<std::string>().find("the destination is ahead"),
            std::string::npos)
      << checked;
  const Json listed = outbox({"ls"});
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0]["destination"], destination());
  EXPECT_EQ(listed[0]["pending"], 2);
  EXPECT_NE(listed[0]["trouble"].get<std::string>().find("is ahead"), std::string::npos);
  const Answer status = run_once({"status", "--store", store()});
  EXPECT_NE(status.out.find("trouble"), std::string::npos) << status.out;
  EXPECT_NE(status.out.find("diverged"), std::string::npos) << status.out;
  EXPECT_EQ(outbox({"restart", destination(), "--reason", "restored"})["restarts"], 1);
  EXPECT_EQ(run(announced_run()).exit_code, 0);
  // What was sent since the backup and is produced again is sent again; the rest is there once.
  expect_announced({"deposit-0", "deposit-1", "deposit-2", "deposit-2", "deposit-3"});
  expect_books({"deposit-0", "deposit-1", "deposit-2", "deposit-3"});
}

TEST_F(OutboxCli, a_destination_that_was_created_again_is_an_error_with_a_repair) {
  send(line("deposit-0", "ann", 1));
  ASSERT_EQ(run(announced_run()).exit_code, 0);
  ASSERT_EQ(run_once({"topic", "delete", topic("done")}).exit_code, 0);
  ASSERT_EQ(run_once({"topic", "create", topic("done")}).exit_code, 0);
  send(line("deposit-1", "ann", 1));
  const Answer refused = run(announced_run());
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_NE(refused.err.find("the destination is behind"), std::string::npos) << refused.err;
  expect_announced({});
  outbox({"restart", destination(), "--reason", "created again"});
  EXPECT_EQ(run(announced_run()).exit_code, 0);
  expect_announced({"deposit-1"});
}

// Two destinations, one of which was created again. Effects and the other destination go on, and
// when somebody has decided, so does this one, in the same run.
TEST_F(OutboxCli, a_destination_that_needs_a_person_holds_up_nothing_else) {
  ASSERT_EQ(run_once({"topic", "create", topic("copy")}).exit_code, 0);
  const std::string emit_copy = "[[emit]]\nto = \"file:${RUN_DIR}/copy\"\n";
  const auto copies = [&] { return run_once({"consume", topic("copy"), "-o", "json"}).lines(); };
  send(line("deposit-0", "ann", 1));
  ASSERT_EQ(run(announced_run() + emit_copy).exit_code, 0);
  ASSERT_EQ(run_once({"topic", "delete", topic("copy")}).exit_code, 0);
  ASSERT_EQ(run_once({"topic", "create", topic("copy")}).exit_code, 0);

  Program program({"run", write(endless_run() + emit_copy), "--quiet"});
  Lines ids{"deposit-0"};
  for (int i = 1; i < 4; ++i) {
    ids.push_back("deposit-" + std::to_string(i));
    send(line(ids.back(), "ann", 1));
    wait_for([&] { return announced_count() == ids.size(); });
  }
  expect_announced(ids);
  expect_books(ids);
  EXPECT_TRUE(copies().empty());
  const auto takes = [&] {
    return sql("SELECT count(*) FROM once_operation WHERE action = 'take'");
  };
  const Lines taken = takes();
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  EXPECT_EQ(takes(), taken) << "trying again leaves no lines in the operation log";
  outbox({"restart", "run/deposits/file:${RUN_DIR}/copy", "--reason", "created again"});
  wait_for([&] { return copies().size() == 3; });
  ::kill(program.pid(), SIGTERM);
  const Answer answer = program.wait();
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_NE(answer.err.find("error[diverged]"), std::string::npos) << answer.err;
  EXPECT_NE(answer.err.find("the rest goes on"), std::string::npos) << answer.err;
  Lines copied;
  for (const std::string& text : copies()) copied.push_back(Json::parse(text)["id"]);
  EXPECT_EQ(copied, (Lines{"deposit-1", "deposit-2", "deposit-3"}));
}

// A slip in its name would be noticed by nobody.
TEST_F(OutboxCli, a_destination_that_was_never_there_ends_the_run_before_anything_is_handled) {
  send(line("deposit-0", "ann", 1));
  for (const char* destination :
       {"[[emit]]\nto = \"file:${RUN_DIR}/copy\"\n", "[park]\nto = \"file:${RUN_DIR}/copy\"\n"})
    for (const Lines& check : {Lines{"--check"}, Lines{}}) {
      const Answer answer = run(announced_run() + destination, check);
      EXPECT_EQ(answer.exit_code, 3) << answer.err;
      EXPECT_NE(answer.err.find("error[missing]"), std::string::npos) << answer.err;
      EXPECT_NE(answer.err.find(".toml:"), std::string::npos) << answer.err;
    }
  expect_books({});
  EXPECT_EQ(announced_count(), 0u);
}

// Messages wait for it, so that it was there: it is treated as one that is deleted later.
TEST_F(OutboxCli, a_destination_that_is_missing_at_the_start_holds_up_nothing_else) {
  const std::string emit_copy = "[[emit]]\nto = \"file:${RUN_DIR}/copy\"\n";
  const std::string copy = "run/deposits/file:${RUN_DIR}/copy";
  const auto copies = [&] {
    Lines ids;
    for (const std::string& text : run_once({"consume", topic("copy"), "-o", "json"}).lines())
      ids.push_back(Json::parse(text)["id"]);
    return ids;
  };
  ASSERT_EQ(run_once({"topic", "create", topic("copy")}).exit_code, 0);
  send(line("deposit-0", "ann", 1));
  ASSERT_EQ(run(announced_run() + emit_copy).exit_code, 0);
  ASSERT_EQ(copies(), Lines{"deposit-0"});
  send(line("deposit-1", "ann", 1));
  ::setenv("ONCE_POINT", "lane_after_commit", 1);
  ASSERT_EQ(run(announced_run() + emit_copy).exit_code, 128 + SIGKILL);
  ::unsetenv("ONCE_POINT");
  ASSERT_EQ(run_once({"topic", "delete", topic("copy")}).exit_code, 0);
  Program program({"run", write(endless_run() + emit_copy)});
  send(line("deposit-2", "ann", 1));
  wait_for([&] { return announced_count() == 3; });

  // Gone for good: what waits is given up, and what comes later is sent again from 0.
  const Json would =
      outbox({"drop", "--pending", "--destination", copy, "--reason", "switched off", "--dry-run"});
  EXPECT_EQ(would["pending"], 2);
  EXPECT_EQ(would["dry_run"], true);
  const Json dropped =
      outbox({"drop", "--pending", "--destination", copy, "--reason", "switched off"});
  EXPECT_EQ(dropped["pending"], 2);
  EXPECT_EQ(dropped["destination"], copy);
  const Answer trace = run_once({"trace", "deposit-1", "--store", store()});
  EXPECT_NE(trace.out.find("switched off (pending for \"" + copy + "\")"), std::string::npos)
      << trace.out << trace.err;
  for (const Json& one : outbox({"ls"})) EXPECT_EQ(one["pending"], 0) << one;
  EXPECT_EQ(run_once({"outbox", "drop", "--pending", "--destination", copy, "--reason", "again",
                      "--store", store()})
                .exit_code,
            8);
  ASSERT_EQ(run_once({"topic", "create", topic("copy")}).exit_code, 0);
  send(line("deposit-3", "ann", 1));
  wait_for([&] { return copies() == Lines{"deposit-3"}; });
  ::kill(program.pid(), SIGTERM);
  const Answer answer = program.wait();
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_NE(answer.err.find("error[missing]"), std::string::npos) << answer.err;
  EXPECT_NE(answer.err.find("the rest goes on"), std::string::npos) << answer.err;
  expect_announced({"deposit-0", "deposit-1", "deposit-2", "deposit-3"});
  expect_books({"deposit-0", "deposit-1", "deposit-2", "deposit-3"});
}

TEST_F(OutboxCli, a_new_store_is_not_taken_for_an_old_one_of_the_same_name) {
  send(line("deposit-0", "ann", 1));
  ASSERT_EQ(run(announced_run()).exit_code, 0);
  for (const char* end : {"", "-wal", "-shm"})
    std::filesystem::remove(scratch_.path("bank.db") + end);
  sql("CREATE TABLE flow (n INTEGER PRIMARY KEY, id TEXT UNIQUE, account TEXT, amount INTEGER)");
  sql("CREATE TABLE account (name TEXT PRIMARY KEY, balance INTEGER NOT NULL)");
  sql("INSERT INTO account VALUES ('ann', 0), ('bob', 0)");
  const Answer ran = run(announced_run());
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  expect_announced({"deposit-0", "deposit-0"});  // another store, another life
}

TEST_F(OutboxCli, what_can_never_be_sent_is_parked_and_the_others_leave) {
  const std::string twice = R"toml(
[values]
account = { json = "/account" }
amount = { json = "/amount", type = "integer" }
[[do]]
sql = "INSERT INTO flow (id, account, amount) VALUES (:id, :account, :amount)"
[[emit]]
to = "file:${RUN_DIR}/done"
body = { one = "account", two = "account" }
)toml";
  const std::string large(9 << 20, 'x');
  send(line("deposit-0", "ann", 1) + line("deposit-1", large, 1) + line("deposit-2", "bob", 1));
  const Answer ran = run(head() + twice, {"-o", "json"});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.json()["emitted"], 2);
  EXPECT_EQ(ran.json()["emits_parked"], 1);
  EXPECT_NE(ran.err.find("once outbox show"), std::string::npos) << ran.err;
  expect_announced({"deposit-0", "deposit-2"});
  EXPECT_EQ(outbox({"ls"})[0]["parked"], 1);
  EXPECT_TRUE(run_once({"park", "ls", "--store", store(), "-o", "json"}).json().empty())
      << "what cannot be sent is the outbox's, not a scope's";
  const Json rows = outbox({"show"});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["partition"], destination());
  EXPECT_EQ(rows[0]["message"]["id"], "deposit-1");
  const std::string number = std::to_string(rows[0]["number"].get<int>());
  EXPECT_EQ(outbox({"retry", number, "--reason", "perhaps now"})["count"], 1);
  EXPECT_EQ(run(head() + twice).exit_code, 0);
  EXPECT_EQ(outbox({"drop", "--all", "--reason", "a test"})["count"], 1);
  EXPECT_EQ(outbox({"show"}).size(), 0u);
  expect_announced({"deposit-0", "deposit-2"});
}

TEST_F(OutboxCli, what_is_not_known_or_not_said_is_refused) {
  send(line("deposit-0", "ann", 1));
  ASSERT_EQ(run(announced_run()).exit_code, 0);
  const auto code = [&](Lines words) {
    words.insert(words.begin(), "outbox");
    words.insert(words.end(), {"--store", store()});
    return run_once(words).exit_code;
  };
  EXPECT_EQ(code({"restart", "nowhere", "--reason", "x"}), 8);
  EXPECT_EQ(code({"restart", destination()}), 2);
  EXPECT_EQ(code({"drop", "7", "--reason", "x"}), 8);
  EXPECT_EQ(code({"drop", "--all"}), 2);
  EXPECT_EQ(code({"retry", "--reason", "x"}), 2);
  EXPECT_EQ(code({"show", "7"}), 8);
  EXPECT_EQ(code({"drop", "--pending", "--reason", "x"}), 2);
  EXPECT_EQ(code({"drop", "--pending", "--all", "--reason", "x"}), 2);
  EXPECT_EQ(code({"drop", "--pending", "--destination", destination()}), 2);
  EXPECT_EQ(code({"drop", "--pending", "--destination", "nowhere", "--reason", "x"}), 8);
  EXPECT_EQ(code({"ls"}), 0);
}

}  // namespace
}  // namespace once::testing
