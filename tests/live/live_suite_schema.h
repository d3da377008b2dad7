// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "live/live_suite.h"

namespace once::testing {

// Databases that an older Once made, or that nobody has finished making.
class OldSchema : public LiveSuite {
 protected:
  static constexpr std::int64_t first_birth_ms = 1'700'000'000'000;
  static constexpr int handled = 20;   // orders that the older Once handled ...
  static constexpr int position = 10;  // ... and how far it said so

  std::string make_place() {
    const std::string place = fmt::format("old_{}", ++places_);
    run(GetParam().make_place + place, server().url());
    return GetParam().in(place, server().url());
  }
  static void run(const std::string& statement, const std::string& url) {
    GetParam().administer(statement, url);
  }

  // What an older version would have left: a position, ids beyond it, a horizon, a parked message,
  // two in the outbox, of which the second has a route.
  void make_old(std::string_view schema, const std::string& url) {
    std::string_view rest = schema;
    while (!rest.empty()) {
      const std::size_t end = rest.find(";\n");
      run(std::string(rest.substr(0, end)), url);
      rest.remove_prefix(end + 2);
    }
    run("INSERT INTO once_name (name) VALUES ('once.store'), ('old shop'), ('orders/0'), ('mail')",
        url);
    run(fmt::format("INSERT INTO once_position (scope, source_partition, at_offset, fence) "
                    "VALUES (2, 3, {}, 4)",
                    position),
        url);
    run(fmt::format("INSERT INTO once_horizon VALUES (2, {})", first_birth_ms), url);
    run("INSERT INTO once_outbox (destination, id, message_key, body, headers, timestamp_ms) "
        "VALUES (4, 'mail 1', 'key', 'body', '', 7)",
        url);
    run("INSERT INTO once_outbox (destination, id, message_key, body, headers, timestamp_ms, "
        "target_partition, target_sequence) VALUES (4, 'mail 2', 'key', 'body', '', 8, 0, 5)",
        url);
    run("INSERT INTO once_parked (scope, source_partition, at_offset, attempts, parked_ms, reason, "
        "id, message_key, body, headers, timestamp_ms) "
        "VALUES (2, 'orders/0', 3, 1, 5, 'why', 'bad', 'key', 'body', '', 7)",
        url);
    run(GetParam().effect_table, url);
    std::vector<std::string> effects, ledger;
    for (int i = 0; i < handled; ++i) {
      effects.push_back(fmt::format("('{}')", id_of(i)));
      ledger.push_back(
          fmt::format(fmt::runtime(GetParam().old_ledger_row), id_of(i), first_birth_ms + i, i));
    }
    run(fmt::format("INSERT INTO effect (id) VALUES {}", fmt::join(effects, ", ")), url);
    run(fmt::format("INSERT INTO once_ledger ({}) VALUES {}", GetParam().old_ledger_columns,
                    fmt::join(ledger, ", ")),
        url);
  }

  // It knows what it knew, and works.
  void check_memory(Store& store) {
    EXPECT_EQ(store.position("old shop", "orders/0").value(), (Position{position, 4}));
    EXPECT_EQ(store.records()->horizon_ms("old shop").value(), first_birth_ms);
    EXPECT_EQ(store.traits().identity.size(), 32u);
    const auto pending = store.outbox()->pending("mail", 10).value();
    ASSERT_EQ(pending.size(), 2u);
    EXPECT_EQ(pending[0].message.id, "mail 2");
    EXPECT_EQ(pending[0].route, (Route{0, 5}));
    EXPECT_EQ(pending[1].message.id, "mail 1");
    EXPECT_FALSE(pending[1].route);
    const auto known = store.records()->describe("old shop").value();
    ASSERT_EQ(known.partitions.size(), 1u);
    EXPECT_EQ(known.partitions[0].source_identity, "");
    EXPECT_EQ(known.partitions[0].settled_ms, -1);
    EXPECT_EQ(known.partitions[0].position.witness, Witness{});
    EXPECT_EQ(store.records()->parked("old shop", 0, 10)->at(0).message.id, "bad");
    check_waiting(store);
    auto transaction = store.begin("old shop").value();
    const std::vector<Entry> entries{{id_of(handled - 1), {}, first_birth_ms, "orders/0", 99},
                                     {id_of(handled), {}, first_birth_ms, "orders/0", 100},
                                     {"ancient", {}, first_birth_ms - 1, "orders/0", 101}};
    const auto verdicts = transaction->admit(entries);
    ASSERT_TRUE(verdicts) << verdicts.error().text;
    EXPECT_EQ(verdicts->at(0).kind, Verdict::Kind::duplicate);
    EXPECT_EQ(verdicts->at(1).kind, Verdict::Kind::fresh);
    EXPECT_EQ(verdicts->at(2).kind, Verdict::Kind::too_old);
  }

  // Older versions had no messages that wait.
  static void check_waiting(Store& store) {
    EXPECT_EQ(store.deferrals()->due("new shop", 10).value().wait_ms, -1);
    Delivery delivery;
    delivery.partition = "orders/0";
    delivery.id = "waits";
    delivery.attempt = 1;
    const Entry entry{.id = delivery.id,
                      .fingerprint = {},
                      .born_ms = first_birth_ms,
                      .partition = delivery.partition,
                      .offset = 0};
    auto transaction = store.begin("new shop").value();
    ASSERT_TRUE(transaction->admit(std::span(&entry, 1)));
    ASSERT_TRUE(transaction->settle(delivery, later("not yet", 0)));
    ASSERT_TRUE(transaction->commit());
    const auto due = store.deferrals()->due("new shop", 10).value();
    ASSERT_EQ(due.messages.size(), 1u);
    EXPECT_EQ(due.messages[0].message.id, "waits");
  }

  static inline int places_ = 0;
};

TEST_P(OldSchema, of_every_older_version_is_migrated_and_forgets_nothing) {
  constexpr int count = 30;
  send(0, count);
  for (const std::string& schema : GetParam().old_schemas) {
    const std::string url = make_place();
    make_old(schema, url);
    std::string identity;
    {
      auto store = open(url);
      ASSERT_NE(store, nullptr);
      check_memory(*store);
      identity = store->traits().identity;
      PipelineOptions chosen = options();
      chosen.scope = "old shop";
      const Status consumed = consume(*store, chosen);
      ASSERT_TRUE(consumed) << consumed.error().text;
      EXPECT_EQ(effects_of(*store), ids_to(count));
      EXPECT_EQ(statistics_.duplicates, std::uint64_t{handled - position});
      EXPECT_EQ(statistics_.applied, std::uint64_t{count - handled});
    }
    auto again = open(url);
    EXPECT_EQ(again->position("old shop", "orders/0").value().offset, count);
    EXPECT_EQ(again->traits().identity, identity);
  }
}

TEST_P(OldSchema, whose_migration_was_killed_is_finished_by_the_next_program) {
  for (const int delay_ms : {4, 9, 24, 49}) {
    const bool is_new = delay_ms % 2 == 0;  // then all tables are to be made
    const std::string url = make_place();
    if (!is_new) make_old(GetParam().old_schemas.back(), url);
    std::thread killed([&] {
      const auto interrupted = GetParam().open(url);
      if (interrupted) return;
      EXPECT_NE(interrupted.error().remedy, Remedy::park) << interrupted.error().text;
      EXPECT_NE(interrupted.error().remedy, Remedy::stop) << interrupted.error().text;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
    server().kill();
    killed.join();
    server().start();
    auto store = open(url);
    ASSERT_NE(store, nullptr) << delay_ms;
    if (!is_new) check_memory(*store);
    EXPECT_TRUE(store->take("shop", "p0"));
  }
}

}  // namespace once::testing
