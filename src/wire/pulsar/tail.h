// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "wire/pulsar/consumer.h"

namespace once::pulsar {

// What a producer has sent to a topic, as it is found there: a broker tells of a producer only how
// far it has got, and even that before it is durable. What can be read is.

struct Sent {
  std::uint64_t sequence = 0;  // Pulsar's number of the last message
  Place place = {};
  Stamp stamp = {};
  std::uint64_t digest = 0;
};

// Reads from `behind` to the end that the topic has now. False: it is not read to the end, because
// `budget_ms` were over.
[[nodiscard]] Result<bool> read_to_end(Client& client, const std::string& topic, Place behind,
                                       std::int64_t budget_ms,
                                       const std::function<void(const Received&)>& see);

// The last message of the producer among the last messages of the topic; unset if there is none
// among those looked at. `thoroughly`: looks far back.
[[nodiscard]] Result<std::optional<Sent>> last_sent(Client& client, const std::string& topic,
                                                    std::string_view producer, bool thoroughly);

}  // namespace once::pulsar
