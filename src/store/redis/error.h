// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstdint>
#include <string_view>

namespace once {

// What was under way: without an answer to a write nobody knows whether it happened.
enum class RedisStage : std::uint8_t { open, read, write };

// The one place that says what an error of a Redis server means for us. `native` is its text, which
// begins with a word in capitals.
Error error_from_redis(std::string_view native, RedisStage stage, std::string_view where,
                       std::string_view what);

// The same for a connection that broke or did not answer in time.
Error lost_connection(RedisStage stage, std::string_view where, std::string_view what,
                      std::string_view native);

// The word by which the server names an error, also of one inside a script.
std::string_view word_of(std::string_view native);

}  // namespace once
