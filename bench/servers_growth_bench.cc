// SPDX-License-Identifier: Apache-2.0
// What a message costs on a server whose ledger is small and on one whose ledger is large, and
// whether forgetting disturbs those who work.
#include <fmt/format.h>

#include "benchmarks.h"
#include "server_ledger.h"

namespace once::bench {
namespace {

constexpr std::size_t rows = 1000;  // per transaction

struct Sizes {
  std::uint64_t small = 0;
  std::uint64_t large = 0;
  std::size_t messages = 0;      // per round
  std::size_t transactions = 0;  // per round, for latencies
};

// A large ledger does not fit into these, as it would not in production.
std::vector<std::string> settings_of(const ServerKind& kind) {
  if (kind.name == "postgresql")
    return {"shared_buffers=2GB", "max_wal_size=16GB", "maintenance_work_mem=1GB",
            "checkpoint_timeout=30min"};
  return {"innodb_buffer_pool_size=2G", "innodb_log_file_size=4G"};
}

std::string with_database(const std::string& url, const std::string& name) {
  return url.substr(0, url.rfind('/') + 1) + name;
}

void measure(const Settings& settings, const Sizes& sizes, const ServerKind& kind, IdKind ids,
             std::vector<Comparison>& comparisons) {
  const auto server = Server::start(settings, kind.name, settings_of(kind));
  if (server == nullptr) return;
  for (const char* const database : {"small", "large"})
    kind.connect(server->url())->run(fmt::format("CREATE DATABASE {}", database));
  ServerLedger small(kind, with_database(server->url(), "small"));
  ServerLedger large(kind, with_database(server->url(), "large"));
  small.fill(ids, sizes.small);
  large.fill(ids, sizes.large);
  const char* const what = ids == IdKind::random ? "random" : "time-ordered";
  comparisons.push_back(compare(
      settings,
      {.name =
           fmt::format("{} ledger with {} ids, {} against {} rows (lower is better), us/message",
                       kind.title, what, sizes.large, sizes.small),
       .aim = 1.5,
       .better = Better::lower},
      [&] { return 1e6 / large.messages_per_s(Way::each, ids, sizes.messages, rows); },
      [&] { return 1e6 / small.messages_per_s(Way::each, ids, sizes.messages, rows); }));
  comparisons.push_back(compare(
      settings,
      {.name = fmt::format("{} ledger with {} ids, p99 of a transaction beside forgetting against "
                           "without (lower is better), ms",
                           kind.title, what),
       .aim = 2,
       .better = Better::lower},
      [&] { return large.p99_ms(ids, sizes.transactions, rows, true); },
      [&] { return large.p99_ms(ids, sizes.transactions, rows, false); }));
}

}  // namespace

void bench_servers_growth(const Settings& settings) {
  const Sizes sizes{.small = settings.size(1'000'000, 2'000),
                    .large = settings.size(50'000'000, 5'000),
                    .messages = settings.size(50'000, 1'000),
                    .transactions = settings.size(200, 3)};
  std::vector<Comparison> comparisons;
  for (const ServerKind& kind : server_kinds())
    for (const IdKind ids : {IdKind::uuid7, IdKind::random}) {
      if (settings.quick && ids == IdKind::random) continue;  // a server each
      measure(settings, sizes, kind, ids, comparisons);
      if (comparisons.empty()) continue;
      write_results(settings, "servers_growth",
                    {{"small", sizes.small},
                     {"large", sizes.large},
                     {"messages_per_transaction", rows},
                     {"messages_per_round", sizes.messages},
                     {"transactions_per_round", sizes.transactions},
                     {"buffers_of_the_server", "2 GiB"}},
                    comparisons);
    }
}

}  // namespace once::bench
