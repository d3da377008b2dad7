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

// How parked messages leave the store. Each replay has a destination of its own in the outbox,
// `once.replay/UUID/URL`: so its messages are numbered from 0 under a producer that nobody else
// has, and what a killed replay left behind can be found and sent later with the same stamps.
[[nodiscard]] Result<std::string> new_replay_destination(const std::string& url);

// Where such a destination leads; unset when it is another.
std::optional<std::string> replay_url_of(std::string_view destination);

using OnSent = std::function<void(std::uint64_t)>;  // how many were sent so far

// Sends what waits for this one destination, until nothing does; answers how many were sent, and
// how many the destination can never accept.
[[nodiscard]] Result<RelayState> send_replayed(Store& store, Sink& sink,
                                               const std::string& destination,
                                               const OnSent& on_sent);

}  // namespace once::operate
