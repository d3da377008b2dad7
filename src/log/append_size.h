// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
#include <once/result.h>

#include <cstddef>
#include <span>

namespace once::log {

// No fewer bytes than the messages take as records. An error with the remedy `park` if one of them
// is too large for the log.
[[nodiscard]] Result<std::size_t> weigh(std::span<const Message> messages);

// How many of the first of them one append takes (batch_count_max, batch_bytes_max): at least one.
[[nodiscard]] std::size_t count_in_one_append(std::span<const Message> messages);

}  // namespace once::log
