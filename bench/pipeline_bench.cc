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

// The sizes of one round. Every file starts with ids of earlier messages.
struct Sizes {
  std::size_t history = 0;
  std::size_t messages = 0;
  std::size_t recipe_messages = 0;
};

const char* name_of(IdKind kind) { return kind == IdKind::random ? "random" : "time-ordered"; }

// All comparisons with ids of one kind. The files grow from round to round, all alike.
void compare_with(const Settings& settings, const Sizes& sizes, IdKind kind,
                  std::vector<Comparison>& comparisons) {
  const Workspace workspace(settings);
  Ledger ours(workspace.path("once.db"));
  RawSqlite recipe(workspace.path("recipe.db"));
  RawSqlite raw(workspace.path("raw.db"));
  ours.fill(kind, sizes.history);
  recipe.fill(kind, sizes.history);
  raw.fill(kind, sizes.history);
  comparisons.push_back(compare(
      settings,
      {.name = fmt::format("SQLite pipeline against the per-message recipe, {} ids, messages/s",
                           name_of(kind)),
       .aim = 12},
      [&] { return ours.messages_per_s(kind, sizes.messages, 1000); },
      [&] { return recipe.recipe_messages_per_s(kind, sizes.recipe_messages); }));
  for (const std::size_t rows : {10u, 100u, 1000u, 10'000u})
    comparisons.push_back(compare(
        settings,
        {.name = fmt::format(
             "SQLite pipeline against raw SQLite, {} rows per transaction, {} ids, messages/s",
             rows, name_of(kind)),
         .aim = rows == 1000 ? std::optional(0.8) : std::nullopt},
        [&] { return ours.messages_per_s(kind, sizes.messages, rows); },
        [&] { return raw.messages_per_s(kind, sizes.messages, rows); }));
}

}  // namespace

void bench_pipeline(const Settings& settings) {
  const Sizes sizes{.history = settings.size(1'000'000, 1'000),
                    .messages = settings.size(30'000, 500),
                    .recipe_messages = settings.size(2'000, 50)};
  std::vector<Comparison> comparisons;
  for (const IdKind kind : {IdKind::uuid7, IdKind::random})
    compare_with(settings, sizes, kind, comparisons);
  write_results(settings, "pipeline",
                {{"ids_at_start", sizes.history},
                 {"messages_per_round", sizes.messages},
                 {"messages_per_round_of_the_recipe", sizes.recipe_messages},
                 {"accounts", account_count},
                 {"body_bytes", body_bytes}},
                comparisons);
}

}  // namespace once::bench
