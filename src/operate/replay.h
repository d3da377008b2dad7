// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/outbox.h>
#include <once/sink.h>
#include <once/store.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace once::operate {

// How parked messages leave the store: all replays to a URL have one destination in the outbox,
// `once.replay/URL`, and so one producer that nobody else has. What a killed replay left behind can
// be found there and sent later with the same stamps, and what stays of replays does not grow with
// their number.
[[nodiscard]] Result<std::string> replay_destination(const std::string& url);

// Where such a destination leads; unset when it is another. Earlier versions had one for each
// replay, `once.replay/UUID/URL`.
std::optional<std::string> replay_url_of(std::string_view destination);

using OnSent = std::function<void(std::uint64_t)>;  // how many were sent so far

// Sends what waits for this one destination, until nothing does; answers how many were sent, and
// how many the destination can never accept.
[[nodiscard]] Result<RelayState> send_replayed(Store& store, Sink& sink,
                                               const std::string& destination,
                                               const OnSent& on_sent);

}  // namespace once::operate
