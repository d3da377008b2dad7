// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/open.h>
#include <once/testing.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kit/memory_scratch.h"

namespace once::testing {

// "m0", "m1", ...: of two keys, in turn.
inline std::vector<Message> some_messages(std::size_t count) {
  std::vector<Message> messages;
  for (std::size_t i = 0; i < count; ++i) {
    Message message;
    message.id = "m" + std::to_string(i);
    message.key = i % 2 == 0 ? "even" : "odd";
    message.body = std::to_string(i);
    messages.push_back(std::move(message));
  }
  return messages;
}

// A list of effects under one key: a line each, id and what.
inline Status append_effect(KeyValueTransaction& transaction, std::string_view id,
                            std::string_view what = {}) {
  std::string list = ONCE_TRY(transaction.get("effects")).value_or("");
  list.append(id).append("\t").append(what).append("\n");
  return transaction.put("effects", list);
}

inline Result<std::vector<Effect>> listed_effects(Store& store) {
  auto transaction = ONCE_TRY(store.begin("test"));
  const std::string list = ONCE_TRY(transaction->key_value()->get("effects")).value_or("");
  std::vector<Effect> effects;
  for (std::size_t from = 0; from < list.size();) {
    const std::size_t tab = list.find('\t', from);
    const std::size_t end = list.find('\n', from);
    effects.push_back({list.substr(from, tab - from), list.substr(tab + 1, end - tab - 1)});
    from = end + 1;
  }
  return effects;
}

// A plan on memory stores, whose effects are such a list.
inline Plan memory_plan(std::function<Handler()> handler) {
  Plan plan;
  plan.handler = std::move(handler);
  plan.messages = some_messages(10);
  plan.options.scope = "kit test";
  plan.options.id = IdRule{};
  plan.options.retry.backoff_ms_max = 20;
  plan.fresh_store = open_memory_store;
  plan.effects = listed_effects;
  return plan;
}

// A plan on SQLite files with a table "effect" that would show a doubled row.
class SqlitePlan {
 public:
  explicit SqlitePlan(std::function<Handler()> handler) : plan_(memory_plan(std::move(handler))) {
    plan_.messages = some_messages(4);
    plan_.failures = 20;
    plan_.reorders = 3;
    plan_.fresh_store = [this] { return fresh(); };
    plan_.effects = rows_of("SELECT id, what FROM effect ORDER BY n");
  }
  Plan& plan() { return plan_; }
  // Of the present schedule.
  const std::string& path() const { return path_; }

 private:
  Result<std::unique_ptr<Store>> fresh() {
    path_ = scratch_.path("kit" + std::to_string(++count_) + ".db");
    auto store = ONCE_TRY(open_sqlite_store(path_));
    auto transaction = ONCE_TRY(store->begin("setup"));
    ONCE_TRY(transaction->sql()->execute(
        "CREATE TABLE effect (n INTEGER PRIMARY KEY, id TEXT NOT NULL, what TEXT NOT NULL)"));
    ONCE_TRY(transaction->commit());
    return store;
  }

  MemoryScratch scratch_;
  std::string path_;
  int count_ = 0;
  Plan plan_;
};

}  // namespace once::testing
