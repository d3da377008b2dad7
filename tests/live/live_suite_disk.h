// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "live/live_suite.h"

namespace once::testing {

// A server whose disk is small, and which somebody fills while a pipeline works.
class FullDisk : public LiveSuite {
 protected:
  void SetUp() override {
    small_ = std::make_unique<LiveServer>(server().kind(), GetParam().small_disk);
    if (!small_->missing().empty()) GTEST_SKIP() << small_->missing();
    server_ = small_.get();
    clear_effects();
    if (GetParam().effect_table.empty()) return;
    GetParam().administer("CREATE TABLE cargo (id VARCHAR(64) NOT NULL, body TEXT NOT NULL)",
                          server().url());
  }

  // Bytes that no database can make smaller.
  static std::string cargo(std::uint64_t seed) {
    std::string made;
    while (made.size() < 40'000) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      made += fmt::format("{:016x}", seed);
    }
    return made;
  }

  // What handlers write beside their effects.
  static Status add_cargo(Transaction& transaction, std::string_view id, std::uint64_t seed) {
    if (SqlTransaction* sql = transaction.sql())
      return sql->execute("INSERT INTO cargo VALUES (?, ?)", {id, cargo(seed)});
    return transaction.key_value()->put("cargo " + std::string(id), cargo(seed));
  }

  // Writes until the disk is full for the store, too; some servers then die. What the store says
  // may neither stop nor park.
  void write_until_full(Store& store) {
    int refusals = 0;
    for (int i = 0; refusals < 3; ++i) {
      ASSERT_LT(i, 2000);
      const auto write = [&]() -> Status {
        auto transaction = ONCE_TRY(store.begin("filler"));
        ONCE_TRY(add_cargo(*transaction, fmt::format("filler {}", i), static_cast<unsigned>(i)));
        return transaction->commit();
      };
      const Status written = write();
      if (written) continue;
      ++refusals;
      EXPECT_TRUE(is_passing(written.error())) << written.error().text;
    }
  }
  static bool is_passing(const Error& error) {
    return error.remedy == Remedy::retry || error.remedy == Remedy::recheck;
  }

  std::vector<std::string> cargoes(int count) {
    const auto store = open();
    auto look = store->begin("look").value();
    std::vector<std::string> ids;
    if (KeyValueTransaction* values = look->key_value()) {
      for (const std::string& id : ids_to(count))
        if (values->get("cargo " + id).value()) ids.push_back(id);
      return ids;
    }
    const Rows found =
        look->sql()->query("SELECT id FROM cargo WHERE id LIKE 'order%' ORDER BY id").value();
    for (const Row& row : found) ids.push_back(std::get<std::string>(row.at(0)));
    return ids;
  }

  // The log of some servers runs full separately, and they do not survive it.
  void fill_log() {
    if (GetParam().fill_log.empty()) return;
    for (int i = 0; i < 100; ++i) {
      try {
        GetParam().administer(GetParam().fill_log, server().url());
      } catch (const std::exception&) {
        return;
      }
    }
    FAIL() << "the log does not run full";
  }

  std::unique_ptr<LiveServer> small_;
};

TEST_P(FullDisk, a_disk_that_runs_full_under_load_loses_and_doubles_nothing) {
  constexpr int count = 400;
  send(0, count);
  send(0, count, "shop again");
  auto store = open();
  std::atomic<bool> halfway = false, is_full = false, is_done = false;
  const auto work = [&](const Delivery& delivery, Transaction& transaction) -> Result<Outcome> {
    ONCE_TRY(add_effect(transaction, delivery.id));
    ONCE_TRY(add_cargo(transaction, delivery.id, static_cast<std::uint64_t>(delivery.offset)));
    if (delivery.offset == count / 4) halfway = true;
    while (halfway && !is_full) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return applied();
  };
  Status consumed;
  std::thread consumer([&] {
    consumed = consume(*store, options(), each(work));
    is_done = true;
  });
  while (!halfway) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  server().fill_disk();
  auto another = open();
  is_full = true;
  write_until_full(*another);
  fill_log();
  EXPECT_FALSE(is_done);
  server().free_disk();
  while (!is_done) {
    if (!server().is_running()) server().start();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  consumer.join();
  ASSERT_TRUE(consumed) << consumed.error().text;
  EXPECT_EQ(effects(), ids_to(count));
  EXPECT_EQ(statistics_.applied, std::uint64_t{count});
  EXPECT_EQ(statistics_.duplicates, std::uint64_t{count});
  EXPECT_GE(statistics_.rolled_back + statistics_.rechecked, 1u);
  EXPECT_EQ(cargoes(count), ids_to(count));
}

}  // namespace once::testing
