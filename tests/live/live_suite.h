// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <once/once.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "conformance/store_fixture.h"
#include "testing/chaos_proxy.h"
#include "testing/live_server.h"
#include "testing/scratch.h"

namespace once::testing {

// A store on a server of its own, for a suite that breaks the server.
struct LiveKind {
  std::string name;
  LiveServer* server;
  std::function<Result<std::unique_ptr<Store>>(const std::string& url)> open;
  std::string effect_table;  // as StoreUnderTest::effect_table; empty where there are no tables
  std::string commit_mark = "COMMIT";  // the bytes with which the request to commit begins
  // For the suites of live_suite_*.h, which not every store has.
  std::function<void(const std::string& statement, const std::string& url)> administer = {};
  std::function<std::string(const std::string& place, const std::string& url)> in = {};
  LiveServerOptions small_disk = {};
  std::string fill_log = {};      // a statement that fills the server's log, and nothing else
  std::string make_user = {};     // `{}` is its name
  std::string grant_more = {};    // than rights on tables, to `{}`
  std::string verify = {};        // parameters of the URL: trust this authority (`{}`) alone
  std::string require = {};       // parameters of the URL: encrypt, whoever it is
  std::string is_encrypted = {};  // finds a row if the connection is
  std::string other_name = {};    // of the loopback address, not in the certificate
  std::string make_place = {};    // the name follows
  std::vector<std::string> old_schemas = {};  // from version 1 on
  std::string old_ledger_columns = {};
  std::string old_ledger_row = {};  // of `{}` born at `{}` with the offset `{}`
};

// What a home (testing/postgres_home.h) says about itself.
template <class Home>
LiveKind live_kind() {
  LiveKind kind{Home::name, &Home::server(), [](const std::string& url) { return Home::open(url); },
                Home::effect_table, Home::commit_mark};
  kind.administer = Home::administer;
  kind.in = Home::in;
  return kind;
}

inline void PrintTo(const LiveKind& kind, std::ostream* out) { *out << kind.name; }

// Messages from a real log through a pipeline into the store; effects are counted id by id.
class LiveSuite : public ::testing::TestWithParam<LiveKind> {
 protected:
  LiveSuite() {
    EXPECT_TRUE(create_topic(scratch_.directory(), "orders", {}));
    clear_effects();
    scope_ = fmt::format("live {}", ++scopes_);
  }

  LiveServer& server() { return *server_; }

  std::unique_ptr<Store> open(const std::string& url) {
    auto store = GetParam().open(url);
    EXPECT_TRUE(store) << store.error().text;
    return store ? std::move(*store) : nullptr;
  }
  std::unique_ptr<Store> open() { return open(server().url()); }

  void clear_effects() {
    auto store = open();
    const auto write = [&](const auto& work) {
      auto transaction = store->begin("setup").value();
      ASSERT_TRUE(work(*transaction));
      const Status done = transaction->commit();
      ASSERT_TRUE(done) << done.error().text;
    };
    if (!store->traits().sql)
      return write([](Transaction& it) { return it.key_value()->erase("effects"); });
    GetParam().administer("DROP TABLE IF EXISTS effect", server().url());
    GetParam().administer(GetParam().effect_table, server().url());
  }

  void send(int from, int to, const std::string& producer_name = "shop") {
    auto sink = open_log_sink(scratch_.directory(), "orders").value();
    ProducerOptions options;
    options.name = producer_name;
    auto producer = Producer::open(*sink, options).value();
    std::vector<Message> messages;
    for (int i = from; i < to; ++i) {
      Message message;
      message.id = id_of(i);
      message.body = "{}";
      message.timestamp_ms = 1'700'000'000'000 + i;
      messages.push_back(std::move(message));
    }
    ASSERT_TRUE(producer->send(messages));
  }
  static std::string id_of(int i) { return fmt::format("order {:06}", i); }
  static std::vector<std::string> ids_to(int count) {
    std::vector<std::string> ids;
    for (int i = 0; i < count; ++i) ids.push_back(id_of(i));
    return ids;
  }

  static Handler insert_effect() {
    return each([](const Delivery& delivery, Transaction& transaction) -> Result<Outcome> {
      ONCE_TRY(add_effect(transaction, delivery.id));
      return applied();
    });
  }

  PipelineOptions options() const {
    PipelineOptions made;
    made.scope = scope_;
    made.id = IdRule{};
    made.batch_count_max = 20;
    made.retry.backoff_ms_min = 5;
    made.retry.backoff_ms_max = 100;
    return made;
  }

  // A pipeline that takes everything in the log through `handler`, and ends.
  Status consume(Store& store, PipelineOptions chosen, Handler handler = insert_effect()) {
    LogSourceOptions bounded;
    bounded.stop_at_end = true;
    auto source = ONCE_TRY(open_log_source(scratch_.directory(), "orders", bounded));
    auto pipeline = ONCE_TRY(Pipeline::make(*source, store, std::move(handler), chosen));
    Status done = pipeline->run();
    statistics_ = pipeline->statistics();
    return done;
  }

  std::vector<std::string> effects() { return effects_of(*open()); }

  static inline int scopes_ = 0;
  LiveServer* server_ = GetParam().server;
  Scratch scratch_;
  std::string scope_;
  Statistics statistics_;
};

TEST_P(LiveSuite, a_server_that_is_killed_under_load_loses_and_doubles_nothing) {
  constexpr int count = 3000;
  send(0, count);
  send(0, count, "shop again");  // every order is sent twice
  constexpr int kills = 4;
  std::atomic<int> asked = 0, killed = 0;
  std::thread killer([&] {
    for (int i = 1; i <= kills; ++i) {
      while (asked < i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      server().kill();
      ++killed;
      server().start();
    }
  });
  // In the middle of a batch the server is killed, and the handler goes on with a dead connection.
  const auto interrupted = [&](const Delivery& delivery,
                               Transaction& transaction) -> Result<Outcome> {
    ONCE_TRY(add_effect(transaction, delivery.id));
    const int due = static_cast<int>(delivery.offset / (count / (kills + 1)));
    if (due > asked && asked < kills) {
      ++asked;
      while (killed < asked) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return applied();
  };
  auto store = open();
  const Status consumed = consume(*store, options(), each(interrupted));
  killer.join();
  ASSERT_TRUE(consumed) << consumed.error().text;
  EXPECT_EQ(effects(), ids_to(count));
  EXPECT_EQ(statistics_.duplicates, std::uint64_t{count});
  EXPECT_GE(statistics_.rolled_back, std::uint64_t{kills});
}

TEST_P(LiveSuite, a_commit_cut_at_every_byte_happens_once) {
  ChaosProxy proxy(server().port());
  auto store = open(server().url_at(proxy.port()));
  PipelineOptions one_each = options();
  one_each.batch_count_max = 1;
  int sent = 0;
  std::size_t rechecked = 0;
  const auto attempt = [&](const ChaosProxy::Fault& fault) {
    send(sent, sent + 1);
    ++sent;
    bool armed = false;
    // When the handler runs, the next commit is that of its message.
    const auto cut_my_commit = [&](const Delivery& delivery,
                                   Transaction& transaction) -> Result<Outcome> {
      if (!std::exchange(armed, true)) proxy.arm(fault);
      ONCE_TRY(add_effect(transaction, delivery.id));
      return applied();
    };
    const Status consumed = consume(*store, one_each, each(cut_my_commit));
    EXPECT_TRUE(consumed) << consumed.error().text;
    rechecked += statistics_.rechecked;
    const bool was_cut = proxy.fired();
    if (!was_cut) proxy.cut_all();
    return was_cut;
  };
  // Of the request, from the commit on, until it is not cut any more; then of its answer.
  std::size_t bytes = 0;
  const std::string mark = GetParam().commit_mark;
  // A long one is not cut at all of its later bytes, since none of them tells anything new.
  while (attempt({.match = mark, .client_bytes = bytes, .answer_bytes = 0}))
    bytes += bytes < 100 ? 1 : 7;
  EXPECT_GT(bytes, 6u);
  bytes = 0;
  while (attempt({.match = mark, .client_bytes = std::nullopt, .answer_bytes = bytes})) ++bytes;
  EXPECT_GT(bytes, 6u);
  EXPECT_EQ(effects(), ids_to(sent));
  EXPECT_GT(rechecked, 0u);
}

// Nobody may take a connection that breaks among the rows for a table without rows.
TEST_P(LiveSuite, an_answer_cut_at_any_byte_is_an_error_and_not_an_empty_one) {
  ChaosProxy proxy(server().port());
  auto store = open(server().url_at(proxy.port()));
  send(0, 3);
  ASSERT_TRUE(consume(*store, options()));
  const auto offset_in_the_end = [&] {  // the first connection may be one that was cut
    auto found = store->position(scope_, "orders/0");
    for (int i = 0; !found && i < 10; ++i) found = store->position(scope_, "orders/0");
    return found ? found->offset : -1;
  };
  std::size_t bytes = 0;
  for (bool was_cut = true; was_cut; ++bytes) {
    ASSERT_EQ(offset_in_the_end(), 3);
    proxy.arm({.match = "", .client_bytes = std::nullopt, .answer_bytes = bytes});
    const auto found = store->position(scope_, "orders/0");
    EXPECT_TRUE(!found || found->offset == 3) << bytes;
    was_cut = proxy.fired();
    proxy.cut_all();
  }
  EXPECT_GT(bytes, 6u);
}

TEST_P(LiveSuite, a_slow_and_broken_network_loses_and_doubles_nothing) {
  constexpr int count = 400;
  send(0, count);
  ChaosProxy proxy(server().port());
  proxy.delay(1);
  auto store = open(server().url_at(proxy.port()));
  std::atomic<bool> done = false;
  std::thread breaker([&] {
    // Ever more slowly: a busy machine may need longer for one transaction.
    for (int pause_ms = 40; !done; pause_ms += 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
      proxy.cut_all();
    }
  });
  PipelineOptions chosen = options();
  chosen.lanes = 2;
  const Status consumed = consume(*store, chosen);
  done = true;
  breaker.join();
  ASSERT_TRUE(consumed) << consumed.error().text;
  EXPECT_EQ(effects(), ids_to(count));
}

TEST_P(LiveSuite, H18_a_thousand_duplicates_at_once_have_one_effect_and_starve_nobody) {
  auto store = open();
  std::atomic<int> fresh = 0, duplicates = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 50; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20;) {
        const auto handle = [&]() -> Result<Verdict::Kind> {
          auto transaction = ONCE_TRY(store->begin(scope_));
          const Entry entry{"the one", {}, 1, "p0", 0};
          const auto verdicts = ONCE_TRY(transaction->admit(std::span(&entry, 1)));
          if (verdicts[0].kind == Verdict::Kind::fresh)
            ONCE_TRY(add_effect(*transaction, "the one"));
          ONCE_TRY(transaction->commit());
          return verdicts[0].kind;
        };
        const auto kind = handle();
        if (!kind && kind.error().remedy == Remedy::retry) continue;
        ASSERT_TRUE(kind) << kind.error().text;
        ++(*kind == Verdict::Kind::fresh ? fresh : duplicates);
        ++i;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fresh, 1);
  EXPECT_EQ(duplicates, 999);
  EXPECT_EQ(effects(), std::vector<std::string>{"the one"});
}

TEST_P(LiveSuite, H20_of_two_owners_of_one_partition_the_older_is_fenced) {
  constexpr int count = 500;
  send(0, count);
  auto first = open();
  auto second = open();
  std::atomic<bool> running = false;
  Status zombie;
  std::thread older([&] {
    zombie =
        consume(*first, options(),
                each([&](const Delivery& delivery, Transaction& transaction) -> Result<Outcome> {
                  ONCE_TRY(add_effect(transaction, delivery.id));
                  if (delivery.offset == 100) {
                    running = true;
                    std::this_thread::sleep_for(std::chrono::milliseconds(300));
                  }
                  return applied();
                }));
  });
  while (!running) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  LogSourceOptions bounded;
  bounded.stop_at_end = true;
  auto source = open_log_source(scratch_.directory(), "orders", bounded).value();
  auto pipeline = Pipeline::make(*source, *second, insert_effect(), options()).value();
  const Status younger = pipeline->run();
  older.join();
  ASSERT_TRUE(younger) << younger.error().text;
  ASSERT_FALSE(zombie);
  EXPECT_EQ(zombie.error().tag, "fenced");
  EXPECT_EQ(effects(), ids_to(count));
}

// Each transaction makes names and has statements that nobody has seen, for which it must ask while
// it holds the only connection.
TEST_P(LiveSuite, more_threads_than_connections_wait_for_each_other_and_all_is_done) {
  if (!open()->traits().sql) return;  // Redis has one connection to each node
  auto store = open(server().url() + "?connections=1");
  constexpr int threads = 8;
  constexpr int rounds = 10;
  std::vector<std::string> wanted;
  for (int i = 0; i < threads * rounds; ++i) wanted.push_back(id_of(i));
  std::vector<std::thread> running;
  std::atomic<int> failures = 0;
  for (int thread = 0; thread < threads; ++thread)
    running.emplace_back([&, thread] {
      for (int round = 0; round < rounds; ++round) {
        const int number = thread * rounds + round;
        const auto work = [&]() -> Status {
          auto transaction = ONCE_TRY(store->begin(fmt::format("{} {}", scope_, number)));
          ONCE_TRY(
              transaction->sql()->execute(fmt::format("DELETE FROM effect WHERE {} = -1", number)));
          ONCE_TRY(transaction->enqueue(fmt::format("{} to {}", scope_, number), {.body = "x"}));
          ONCE_TRY(add_effect(*transaction, id_of(number)));
          return transaction->commit();
        };
        if (const Status done = work(); !done) ++failures;
      }
    });
  for (std::thread& thread : running) thread.join();
  EXPECT_EQ(failures, 0);
  std::vector<std::string> done = effects();
  std::sort(done.begin(), done.end());
  EXPECT_EQ(done, wanted);
  // The wait has an end, and says which setting it is about.
  auto holding = store->begin(scope_).value();
  const auto refused = store->begin(scope_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().remedy, Remedy::retry);
  EXPECT_EQ(refused.error().tag, "exhausted");
  EXPECT_NE(refused.error().text.find("connections=N"), std::string::npos) << refused.error().text;
  holding.reset();
  EXPECT_TRUE(store->begin(scope_));
  EXPECT_FALSE(GetParam().open(server().url() + "?connections=0"));
}

// As after a restore: the number that the scope had belongs to another name.
TEST_P(LiveSuite, names_are_looked_up_again_when_the_connection_was_lost) {
  ChaosProxy proxy(server().port());
  auto store = open(server().url_at(proxy.port()));
  if (!store->traits().sql) return;  // Redis has names in its keys, and no numbers
  send(0, 10);
  ASSERT_TRUE(consume(*store, options()));
  const std::string other = scope_ + " of another";
  GetParam().administer(
      fmt::format("UPDATE once_name SET name = '{}' WHERE name = '{}'", other, scope_),
      server().url());
  proxy.cut_all();
  const Status again = consume(*store, options());
  ASSERT_TRUE(again) << again.error().text;
  EXPECT_EQ(statistics_.applied, 10u);
  for (const std::string& scope : {scope_, other}) {
    std::vector<std::string> ids;
    const auto looking = open();
    const std::vector<LedgerRecord> records = looking->records()->ledger(scope, "", 100).value();
    for (const LedgerRecord& record : records) ids.push_back(record.id);
    EXPECT_EQ(ids, ids_to(10)) << scope;
  }
}

TEST_P(LiveSuite, a_server_that_is_away_is_waited_for) {
  send(0, 10);
  auto store = open();
  server().stop();
  Status consumed;
  std::thread consumer([&] { consumed = consume(*store, options()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  server().start();
  consumer.join();
  ASSERT_TRUE(consumed) << consumed.error().text;
  EXPECT_EQ(effects(), ids_to(10));
}

}  // namespace once::testing
