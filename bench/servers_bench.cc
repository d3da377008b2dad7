// SPDX-License-Identifier: Apache-2.0
// One id and one change of an account per message, durable, on a server: through a pipeline,
// through the usual recipe on one connection and on sixteen, and through set-based SQL by hand.
#include <fmt/format.h>

#include "benchmarks.h"
#include "server_ledger.h"

namespace once::bench {
namespace {

constexpr std::size_t rows = 1000;  // per transaction
constexpr std::size_t many_connections = 16;
constexpr std::size_t many_lanes = 3;

struct Sizes {
  std::size_t messages = 0;         // per round
  std::size_t recipe_messages = 0;  // fewer, for it is slow
};

struct Row {
  Way way;
  std::string_view what;
  double aim = 0;
  std::size_t lanes = 1;
};

Comparison against_recipe(const Settings& settings, const Sizes& sizes, const ServerKind& kind,
                          ServerLedger& ledger, const Row& row, std::size_t connections) {
  const std::size_t recipe_count = sizes.recipe_messages * (connections > 1 ? 4 : 1);
  return compare(
      settings,
      {.name = fmt::format("{}, {}{} against the per-message recipe on {}, messages/s", kind.title,
                           row.what, row.lanes > 1 ? " on three lanes" : "",
                           connections > 1 ? "16 connections" : "one connection"),
       .aim = row.aim},
      [&] {
        return ledger.messages_per_s(row.way, IdKind::uuid7, sizes.messages, rows, row.lanes);
      },
      [&] { return ledger.recipe_messages_per_s(IdKind::uuid7, recipe_count, connections); });
}

Comparison against_set_based(const Settings& settings, const Sizes& sizes, const ServerKind& kind,
                             ServerLedger& ledger, IdKind ids) {
  return compare(
      settings,
      {.name = fmt::format("{}, batch handler against set-based SQL by hand, {} ids, messages/s",
                           kind.title, ids == IdKind::random ? "random" : "time-ordered"),
       .aim = 0.8},
      [&] { return ledger.messages_per_s(Way::batch, ids, sizes.messages, rows); },
      [&] { return ledger.set_based_messages_per_s(ids, sizes.messages, rows); });
}

void measure(const Settings& settings, const Sizes& sizes, const ServerKind& kind,
             std::vector<Comparison>& comparisons) {
  const auto server = Server::start(settings, kind.name);
  if (server == nullptr) return;
  ServerLedger ledger(kind, server->url());
  for (const Row& row : {Row{Way::each, "handler per message", 25},
                         Row{Way::each_expected, "handler per message that expects a row", 25},
                         Row{Way::batch, "batch handler", 50},
                         Row{Way::position_only, "batch handler without ids", 120}})
    for (const std::size_t lanes : {std::size_t{1}, many_lanes})
      comparisons.push_back(
          against_recipe(settings, sizes, kind, ledger, {row.way, row.what, row.aim, lanes}, 1));
  for (const std::size_t lanes : {std::size_t{1}, many_lanes})
    comparisons.push_back(against_recipe(settings, sizes, kind, ledger,
                                         {Way::each, "handler per message", 8, lanes},
                                         many_connections));
  for (const IdKind ids : {IdKind::uuid7, IdKind::random})
    comparisons.push_back(against_set_based(settings, sizes, kind, ledger, ids));
}

}  // namespace

void bench_servers(const Settings& settings) {
  const Sizes sizes{.messages = settings.size(100'000, 1'000),
                    .recipe_messages = settings.size(3'000, 50)};
  std::vector<Comparison> comparisons;
  for (const ServerKind& kind : server_kinds()) measure(settings, sizes, kind, comparisons);
  if (comparisons.empty()) return;
  write_results(settings, "servers",
                {{"messages_per_round", sizes.messages},
                 {"messages_per_round_of_the_recipe", sizes.recipe_messages},
                 {"messages_per_transaction", rows},
                 {"accounts", account_count}},
                comparisons);
}

}  // namespace once::bench
