// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

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
constexpr std::size_t pages_max = 20;  // of one call

}  // namespace

// The books first: while a shard is behind, its claims are only remembered for longer.
Status RedisStore::move_horizon(std::string_view scope, std::int64_t horizon_ms) {
  const std::string digits = fmt::format("{}", horizon_ms);
  std::vector<RedisCall> calls;
  calls.push_back(script(
      books(), redis_scripts::move_horizon,
      {books().key("horizon", scope), books().key("scopes"), books().key("operations", scope)}));
  if (keys_.shards().size() > 1)
    for (const RedisPlace& shard : keys_.shards())
      calls.push_back(script(shard, redis_scripts::move_horizon, {shard.key("horizon", scope)}));
  for (RedisCall& call : calls) call.add(scope).add(eight_bytes(horizon_ms)).add(digits);
  ONCE_TRY(nodes_.ask(calls, RedisStage::write));
  return {};
}

// False: there is more right there than may go.
Result<bool> RedisStore::sweep_page(std::string_view scope, Sweep& sweep, std::size_t rows_left,
                                    std::size_t& gone) {
  const bool ledger = sweep.stage == 0;
  const RedisPlace& place = ledger ? books() : keys_.shards()[sweep.stage - 1];
  RedisCall call = script(place, ledger ? redis_scripts::sweep_ledger : redis_scripts::sweep_claims,
                          {place.key(ledger ? "ledger" : "claims", scope)});
  call.add(sweep.cursor).add(page_rows).add(static_cast<std::int64_t>(rows_left));
  call.add(eight_bytes(sweep.horizon_ms));
  const RedisAnswer answer = ONCE_TRY(ask(call, RedisStage::write));
  gone = static_cast<std::size_t>(answer.at(1).number());
  sweep.cursor = answer.at(0).text();
  if (answer.at(2).number() != 0) return false;
  if (sweep.cursor == "0") ++sweep.stage;
  return true;
}

Result<Forgotten> RedisStore::forget(std::string_view scope, std::int64_t horizon_ms,
                                     std::size_t rows_max) {
  ONCE_TRY(check_scope(scope));
  const std::lock_guard lock(sweep_mutex_);
  const std::int64_t before = ONCE_TRY(this->horizon_ms(scope));
  ONCE_POINT(store_before_forget);
  if (horizon_ms > before) ONCE_TRY(move_horizon(scope, horizon_ms));
  ONCE_POINT(store_after_horizon);
  const std::int64_t horizon = std::max(horizon_ms, before);
  Forgotten forgotten{0, true};
  if (horizon <= 0) return Forgotten{};  // nothing is born before that
  auto [found, is_new] = sweeps_.try_emplace(std::string(scope));
  Sweep& sweep = found->second;
  if (is_new) sweep.horizon_ms = horizon;
  const std::size_t stages = 1 + keys_.shards().size();
  for (std::size_t page = 0; page < pages_max && sweep.stage < stages; ++page) {
    std::size_t gone = 0;
    const bool on = ONCE_TRY(sweep_page(scope, sweep, rows_max - forgotten.rows, gone));
    forgotten.rows += gone;
    if (!on) return forgotten;
  }
  if (sweep.stage < stages) return forgotten;
  // What the horizon has passed while the pass was under way is for another pass.
  forgotten.more = sweep.horizon_ms < horizon;
  sweeps_.erase(found);
  return forgotten;
}

}  // namespace once
