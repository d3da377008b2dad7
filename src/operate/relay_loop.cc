// SPDX-License-Identifier: Apache-2.0
#include "operate/relay_loop.h"

#include <algorithm>

namespace once::operate {

Status run_relay(Relay& relay, const RelayPace& pace, const RelayGoOn& go_on) {
  std::int64_t away_ms = pace.idle_ms;
  while (true) {
    const Result<std::size_t> result = relay.step();
    if (!result && !is_transient(result.error().remedy)) return fail(result.error());
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
