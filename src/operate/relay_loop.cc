// SPDX-License-Identifier: Apache-2.0
#include "operate/relay_loop.h"

#include <algorithm>

namespace once::operate {
namespace {

bool may_try_again(const Error& error) {
  return error.remedy == Remedy::retry || error.remedy == Remedy::recheck;
}

}  // namespace

Status run_relay(Relay& relay, const RelayPace& pace, const RelayGoOn& go_on) {
  std::int64_t away_ms = pace.idle_ms;
  while (true) {
    const Result<std::size_t> result = relay.step();
    if (!result && !may_try_again(result.error())) return fail(result.error());
    RelayStep step{.state = relay.state()};
    if (result) {
      step.sent = *result;
      step.rest_ms = step.sent > 0 ? 0 : pace.idle_ms;
      away_ms = pace.idle_ms;
    } else {
      step.away = &result.error();
      step.rest_ms = away_ms = std::min(away_ms * 2, pace.away_ms_max);
    }
    if (go_on(step)) continue;
    if (!result) return fail(result.error());
    return {};
  }
}

}  // namespace once::operate
