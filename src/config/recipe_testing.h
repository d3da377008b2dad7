// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <once/outbox.h>
#include <once/records.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "config/plan_testing.h"
#include "runtime/lane.h"
#include "store/sqlite/sqlite.h"
#include "testing/scratch.h"

namespace once::testing {

// Runs files against an SQLite store through a real lane, all messages in one batch.
class RecipeBank : public ::testing::Test {
 protected:
  using Lines = std::vector<std::string>;

  void open(std::string_view text) {
    store_ = SqliteStore::open(scratch_.path(std::to_string(++opened_) + ".db"), {}, system_clock())
                 .value();
    plan_ = parsed(text).value();
    const auto recipe = Recipe::make(plan_, {.sql = SqlDialect::sqlite, .redis_commands = true});
    ASSERT_TRUE(recipe) << recipe.error().text;
    handler_.emplace(handler_of(*recipe));
  }

  // What became of each message: "applied", "rejected: why", "parked: why" or "no_effect".
  Lines run(const Lines& bodies, std::string_view key = {}) {
    std::vector<Delivery> deliveries;
    for (const std::string& body : bodies) {
      Delivery delivery = delivery_of(body);
      delivery.key = key;
      deliveries.push_back(delivery);
    }
    return run(std::move(deliveries));
  }

  Lines run(std::vector<Delivery> deliveries) {
    const std::size_t count = deliveries.size();
    Batch batch;
    batch.partition = "0";
    for (Delivery& delivery : deliveries) {
      delivery.partition = "0";
      delivery.offset = offset_++;
    }
    batch.deliveries = std::move(deliveries);
    batch.end_offset = offset_;
    Counters counters;
    Lane lane({.store = *store_,
               .clock = system_clock(),
               .handler = *handler_,
               .options = plan_.options,
               .counters = counters});
    lane.own("0", store_->take(plan_.options.scope, "0").value());
    lane.push(std::move(batch));
    for (int steps = 0; !lane.idle() && steps < 1000; ++steps) {
      const auto step = lane.step();
      EXPECT_TRUE(step) << step.error().text;
      if (!step) break;
    }
    EXPECT_TRUE(lane.idle()) << "the lane does not come to an end";
    return outcomes(offset_ - static_cast<std::int64_t>(count), offset_);
  }

  Lines sql(const std::string& statement) {
    const auto transaction = store_->begin("test").value();
    const auto rows = transaction->sql()->query(statement);
    EXPECT_TRUE(rows) << rows.error().text;
    EXPECT_TRUE(transaction->commit());
    Lines lines;
    if (rows)
      for (const Row& row : *rows) lines.push_back(text_of_field(row.at(0)));
    return lines;
  }

  std::vector<Message> emitted() {
    std::vector<Message> messages;
    const auto destinations = store_->outbox()->destinations().value();
    for (const std::string& destination : destinations) {
      const auto rows = store_->outbox()->pending(destination, 1000).value();
      for (const OutboxRow& row : rows) messages.push_back(row.message);
    }
    return messages;
  }
  // "DESTINATION ID" of each message that was emitted, sorted.
  Lines destinations() {
    Lines found;
    const auto names = store_->outbox()->destinations().value();
    for (const std::string& name : names) {
      const auto rows = store_->outbox()->pending(name, 1000).value();
      for (const OutboxRow& row : rows) found.push_back(name + " " + row.message.id);
    }
    std::sort(found.begin(), found.end());
    return found;
  }
  Lines emitted_bodies() {
    Lines bodies;
    for (const Message& message : emitted()) bodies.push_back(message.body.value_or("(none)"));
    return bodies;
  }
  Lines emitted_ids() {
    Lines ids;
    for (const Message& message : emitted()) ids.push_back(message.id);
    return ids;
  }

 private:
  static std::string text_of_field(const Field& field) {
    if (const auto* text = std::get_if<std::string>(&field)) return *text;
    if (const auto* number = std::get_if<std::int64_t>(&field)) return std::to_string(*number);
    if (const auto* number = std::get_if<double>(&field)) return std::to_string(*number);
    return "NULL";
  }

  Lines outcomes(std::int64_t from, std::int64_t to) {
    std::map<std::int64_t, std::string> known;
    const auto told = [](const std::string& kind, const std::string& detail) {
      return detail.empty() ? kind : kind + ": " + detail;
    };
    const auto ledger = store_->records()->ledger(plan_.options.scope, "", 100'000).value();
    const auto parked = store_->records()->parked(plan_.options.scope, 0, 100'000).value();
    for (const LedgerRecord& record : ledger)
      known[record.offset] = told(name_of(record.outcome.kind), record.outcome.detail);
    for (const ParkedRecord& record : parked) known[record.offset] = told("parked", record.reason);
    Lines lines;
    for (std::int64_t offset = from; offset < to; ++offset)
      lines.push_back(known.contains(offset) ? known[offset] : "no_effect");
    return lines;
  }

  Scratch scratch_;
  int opened_ = 0;
  std::int64_t offset_ = 0;
  std::unique_ptr<SqliteStore> store_;
  Plan plan_;
  std::optional<Handler> handler_;
};

}  // namespace once::testing
