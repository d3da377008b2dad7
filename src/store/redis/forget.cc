// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <once/clock.h>

#include <algorithm>

#include "base/failpoint.h"
#include "model/ledger.h"
#include "store/redis/redis.h"
#include "store/redis/row.h"
#include "store/redis/script.h"

// There is no index by birth: it would be paid for with memory and time by every message,
// forgetting by few. A pass goes over the ledger and the claims of a scope in pages, each a short
// script, so that the server is never held up. docs/stores/redis.md has the numbers.

namespace once {
namespace {

constexpr std::int64_t page_rows = 1000;
constexpr std::size_t pages_max = 20;    // of one call
constexpr std::int64_t rest_share = 10;  // a pass is followed by a rest ten times as long

}  // namespace

// The books last: a horizon that was moved there holds in every shard.
Status RedisStore::write_horizon(std::string_view scope, std::int64_t horizon_ms,
                                 const RedisScript& how,
                                 std::initializer_list<std::string_view> words) {
  const auto with_words = [&](RedisCall call) {
    call.add(scope).add(eight_bytes(horizon_ms));
    for (const std::string_view word : words) call.add(word);
    return call;
  };
  std::vector<RedisCall> calls;
  if (keys_.shards().size() > 1)
    for (const RedisPlace& shard : keys_.shards())
      calls.push_back(
          with_words(script(shard, how, {shard.key("horizon", scope), shard.key("held", scope)})));
  ONCE_TRY(nodes_.ask(calls, RedisStage::write));
  ONCE_TRY(ask(with_words(script(books(), how,
                                 {books().key("horizon", scope), books().key("held", scope),
                                  books().key("scopes"), books().key("operations", scope)})),
               RedisStage::write));
  return {};
}

Status RedisStore::move_horizon(std::string_view scope, std::int64_t horizon_ms) {
  return write_horizon(scope, horizon_ms, redis_scripts::move_horizon,
                       {fmt::format("{}", horizon_ms)});
}

// False: there is more right there than may go.
Result<bool> RedisStore::sweep_page(std::string_view scope, Sweep& sweep, std::size_t rows_left,
                                    std::size_t& gone) {
  const bool ledger = sweep.stage == 0;
  const RedisPlace& place = ledger ? books() : keys_.shards()[sweep.stage - 1];
  RedisCall call =
      script(place, ledger ? redis_scripts::sweep_ledger : redis_scripts::sweep_claims,
             {place.key(ledger ? "ledger" : "claims", scope), place.key("horizon", scope)});
  call.add(sweep.cursor).add(page_rows).add(static_cast<std::int64_t>(rows_left));
  call.add(eight_bytes(sweep.horizon_ms));
  const RedisAnswer answer = ONCE_TRY(ask(call, RedisStage::write));
  gone = static_cast<std::size_t>(answer.at(1).number());
  sweep.cursor = answer.at(0).text();
  if (answer.at(2).number() != 0) return false;
  if (sweep.cursor == "0") ++sweep.stage;
  return true;
}

Status RedisStore::sweep_some(std::string_view scope, Sweep& sweep, std::size_t rows_max,
                              std::size_t& gone) {
  const std::size_t stages = 1 + keys_.shards().size();
  for (std::size_t page = 0; page < pages_max && sweep.stage < stages; ++page) {
    std::size_t rows = 0;
    const bool on = ONCE_TRY(sweep_page(scope, sweep, rows_max - gone, rows));
    gone += rows;
    if (!on) return {};
  }
  sweep.running = sweep.stage < stages;
  return {};
}

Result<Forgotten> RedisStore::forget(std::string_view scope, std::int64_t horizon_ms,
                                     std::size_t rows_max) {
  ONCE_TRY(check_scope(scope));
  const std::lock_guard lock(sweep_mutex_);
  Sweep& sweep = sweeps_[std::string(scope)];
  const std::int64_t start_ns = system_clock().ticks_ns();
  const StoredHorizon before = ONCE_TRY(stored_horizon(scope));
  // A person, maybe in another process, set the horizon back: what was swept was another horizon's.
  if (before.ms < std::max(sweep.horizon_ms, sweep.clean_horizon_ms)) sweep = {};
  if (before.held) horizon_ms = before.ms;
  ONCE_POINT(store_before_forget);
  if (horizon_ms > before.ms) ONCE_TRY(move_horizon(scope, horizon_ms));
  ONCE_POINT(store_after_horizon);
  const std::int64_t horizon = std::max(horizon_ms, before.ms);
  if (!sweep.running) {
    if (horizon <= sweep.clean_horizon_ms) return Forgotten{};
    if (start_ns < sweep.rest_until_ns) return Forgotten{0, true};
    sweep = {true, 0, "0", horizon, sweep.clean_horizon_ms, 0, 0};
  }
  Forgotten forgotten;
  ONCE_TRY(sweep_some(scope, sweep, rows_max, forgotten.rows));
  const std::int64_t end_ns = system_clock().ticks_ns();
  sweep.busy_ns += end_ns - start_ns;
  if (!sweep.running) {
    sweep.clean_horizon_ms = sweep.horizon_ms;
    sweep.rest_until_ns = end_ns + rest_share * sweep.busy_ns;
  }
  // What the horizon has passed while the pass was under way is for another pass.
  forgotten.more = sweep.clean_horizon_ms < horizon;
  return forgotten;
}

}  // namespace once
