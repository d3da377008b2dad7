// SPDX-License-Identifier: Apache-2.0
// One id and one change of an account per message, durable: through a pipeline, through the usual
// recipe, and through raw SQLite.
#include <fmt/format.h>

#include "benchmarks.h"
#include "ledger_load.h"
#include "load.h"
#include "raw_sqlite.h"

namespace once::bench {
namespace {

double ours(const Settings& settings, const std::vector<Message>& messages, std::size_t rows) {
  const Workspace workspace(settings);
  const Ledger ledger(workspace.path("once.db"));
  return static_cast<double>(messages.size()) / ledger.seconds_for(messages, rows);
}

double raw(const Settings& settings, std::span<const Message> messages, std::size_t rows) {
  const Workspace workspace(settings);
  RawSqlite database(workspace.path("raw.db"));
  const Stopwatch watch;
  database.batched(messages, rows);
  return static_cast<double>(messages.size()) / watch.seconds();
}

double recipe(const Settings& settings, std::span<const Message> messages) {
  const Workspace workspace(settings);
  RawSqlite database(workspace.path("recipe.db"));
  const Stopwatch watch;
  database.per_message(messages);
  return static_cast<double>(messages.size()) / watch.seconds();
}

}  // namespace

void bench_pipeline(const Settings& settings) {
  const std::size_t count = settings.size(100'000, 2'000);
  const std::size_t recipe_count = settings.size(10'000, 100);
  const std::vector<Message> messages = make_messages(IdKind::uuid7, 0, count);
  std::vector<Comparison> comparisons;

  comparisons.push_back(compare(
      settings, {.name = "SQLite pipeline against the per-message recipe, messages/s", .aim = 12},
      [&] { return ours(settings, messages, 1000); },
      [&] { return recipe(settings, std::span(messages).first(recipe_count)); }));
  for (const std::size_t rows : {10, 100, 1000, 10'000}) {
    const bool has_aim = rows == 1000;
    comparisons.push_back(compare(
        settings,
        {.name = fmt::format(
             "SQLite pipeline against raw SQLite, {} rows per transaction, messages/s", rows),
         .aim = has_aim ? std::optional(0.8) : std::nullopt},
        [&] { return ours(settings, messages, rows); },
        [&] { return raw(settings, messages, rows); }));
  }
  write_results(settings, "pipeline",
                {{"messages_per_round", count},
                 {"messages_per_round_of_the_recipe", recipe_count},
                 {"accounts", account_count},
                 {"body_bytes", body_bytes},
                 {"ids", "UUIDv7"}},
                comparisons);
}

}  // namespace once::bench
