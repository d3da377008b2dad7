// SPDX-License-Identifier: Apache-2.0
// Claims on Redis beside `SET NX`, both many at a time and durable before they are answered.
#include <fmt/format.h>
#include <once/claims.h>
#include <once/open.h>

#include "benchmarks.h"
#include "load.h"
#include "raw_redis.h"
#include "server.h"

namespace once::bench {
namespace {

std::vector<std::string> make_ids(std::uint64_t first, std::size_t count) {
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < count; ++i) ids.push_back(make_id(IdKind::uuid7, first + i));
  return ids;
}

// Claims all ids, `rows` at a time. All of them are free.
double ours(Store& store, std::span<const std::string> ids, std::size_t rows) {
  const ClaimTerms terms{.owner = "bench", .lease_ms = 30'000, .after_loss = AfterLoss::doubt};
  std::size_t granted = 0;
  const Stopwatch watch;
  for (std::size_t at = 0; at < ids.size(); at += rows) {
    std::vector<ClaimRequest> requests;
    for (const std::string& id : ids.subspan(at, std::min(rows, ids.size() - at)))
      requests.push_back({.id = id});
    for (const ClaimAnswer& answer : must(store.claims()->claim("bench", terms, requests)))
      granted += answer.kind == ClaimAnswer::Kind::granted ? 1 : 0;
  }
  const double seconds = watch.seconds();
  if (granted != ids.size()) give_up(fmt::format("{} of {} were granted", granted, ids.size()));
  return static_cast<double>(ids.size()) / seconds;
}

double by_hand(RawRedis& redis, std::span<const std::string> ids, std::size_t rows) {
  std::size_t free = 0;
  const Stopwatch watch;
  for (std::size_t at = 0; at < ids.size(); at += rows)
    free += redis.claim(ids.subspan(at, std::min(rows, ids.size() - at)));
  const double seconds = watch.seconds();
  if (free != ids.size()) give_up(fmt::format("{} of {} were free", free, ids.size()));
  return static_cast<double>(ids.size()) / seconds;
}

}  // namespace

void bench_claims(const Settings& settings) {
  const auto server = Server::start(settings, "redis");
  if (server == nullptr) return;
  const std::size_t count = settings.size(100'000, 1'000);
  const auto store = must(open_redis_store(server->url()));
  RawRedis redis(server->url());
  std::vector<Comparison> comparisons;
  std::uint64_t next = 0;
  for (const std::size_t rows : {100u, 1000u}) {
    // Each round begins with an empty server.
    const auto ids = [&] {
      redis.run("FLUSHALL");
      next += count;
      return make_ids(next - count, count);
    };
    comparisons.push_back(compare(
        settings,
        {.name = fmt::format("Redis claims against SET NX, {} in flight, claims/s", rows),
         .aim = rows == 1000 ? std::optional(0.8) : std::nullopt},
        [&] { return ours(*store, ids(), rows); }, [&] { return by_hand(redis, ids(), rows); }));
  }
  write_results(settings, "claims", {{"claims_per_round", count}, {"appendfsync", "always"}},
                comparisons);
}

}  // namespace once::bench
