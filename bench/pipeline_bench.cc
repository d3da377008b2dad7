// SPDX-License-Identifier: Apache-2.0
// One id and one change of an account per message, durable: through a pipeline, through the usual
// recipe, and through raw SQLite.
#include <fmt/format.h>

#include <algorithm>

#include "benchmarks.h"
#include "ledger_load.h"
#include "load.h"
#include "raw_sqlite.h"

namespace once::bench {
namespace {

struct Sizes {
  std::size_t messages = 0;         // per round
  std::size_t recipe_messages = 0;  // fewer, for it is slow
};

const char* name_of(IdKind kind) { return kind == IdKind::random ? "random" : "time-ordered"; }

// Each round has new files, so that all begin alike.
double ours(const Settings& settings, IdKind kind, std::size_t count, std::size_t rows) {
  const Workspace workspace(settings);
  return Ledger(workspace.path("once.db")).messages_per_s(kind, count, rows);
}

double raw(const Settings& settings, IdKind kind, std::size_t count, std::size_t rows) {
  const Workspace workspace(settings);
  return RawSqlite(workspace.path("raw.db")).messages_per_s(kind, count, rows);
}

double recipe(const Settings& settings, IdKind kind, std::size_t count) {
  const Workspace workspace(settings);
  return RawSqlite(workspace.path("recipe.db")).recipe_messages_per_s(kind, count);
}

Comparison against_recipe(const Settings& settings, const Sizes& sizes, IdKind kind) {
  return compare(
      settings,
      {.name = fmt::format("SQLite pipeline against the per-message recipe, {} ids, messages/s",
                           name_of(kind)),
       .aim = 12},
      [&] { return ours(settings, kind, sizes.messages, 1000); },
      [&] { return recipe(settings, kind, sizes.recipe_messages); });
}

Comparison against_raw(const Settings& settings, const Sizes& sizes, IdKind kind,
                       std::size_t rows) {
  const std::size_t count = std::min(sizes.messages, 2'000 * rows);  // small transactions are slow
  return compare(
      settings,
      {.name = fmt::format(
           "SQLite pipeline against raw SQLite, {} rows per transaction, {} ids, messages/s", rows,
           name_of(kind)),
       .aim = rows == 1000 ? std::optional(0.8) : std::nullopt},
      [&] { return ours(settings, kind, count, rows); },
      [&] { return raw(settings, kind, count, rows); });
}

}  // namespace

void bench_pipeline(const Settings& settings) {
  const Sizes sizes{.messages = settings.size(100'000, 500),
                    .recipe_messages = settings.size(5'000, 50)};
  std::vector<Comparison> comparisons;
  for (const IdKind kind : {IdKind::uuid7, IdKind::random}) {
    comparisons.push_back(against_recipe(settings, sizes, kind));
    for (const std::size_t rows : {10u, 100u, 1000u, 10'000u})
      comparisons.push_back(against_raw(settings, sizes, kind, rows));
  }
  write_results(settings, "pipeline",
                {{"messages_per_round", sizes.messages},
                 {"messages_per_round_of_the_recipe", sizes.recipe_messages},
                 {"accounts", account_count},
                 {"body_bytes", body_bytes}},
                comparisons);
}

}  // namespace once::bench
