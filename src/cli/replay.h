// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/outbox.h>
#include <once/sink.h>
#include <once/store.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "cli/output.h"

namespace once::cli {

// How parked messages leave the store. Each replay has a destination of its own in the outbox,
// `once.replay/UUID/URL`: so its messages are numbered from 0 under a producer that nobody else
// has, and what a killed replay left behind can be found and sent later with the same stamps.
[[nodiscard]] Result<std::string> new_replay_destination(const std::string& url);

// Where such a destination leads; unset when it is another.
std::optional<std::string> replay_url_of(std::string_view destination);

// Sends what waits for this one destination, until nothing does; answers how many were sent, and
// how many the destination can never accept.
[[nodiscard]] Result<RelayState> send_replayed(Store& store, Sink& sink,
                                               const std::string& destination, Output& output);

}  // namespace once::cli
