// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstdint>
#include <string_view>

#include "wire/mqtt/packet.h"

namespace once::mqtt {

inline constexpr std::uint8_t no_subscribers_reason = 0x10;
inline constexpr std::uint8_t session_taken_over = 0x8E;
inline constexpr std::uint8_t packet_not_found = 0x92;

// The return code of a CONNACK of 3.1.1 as the reason that MQTT 5 has for it.
std::uint8_t reason_of_return_code(std::uint8_t code);

// What a reason of the server means for us: "WHERE: cannot WHAT: ...; advice". `told` is what the
// server says about it in its own words.
Error error_from_reason(std::uint8_t reason, std::string_view where, std::string_view what,
                        std::string_view told = {});

// The connection is not there, or not any more.
Error error_away(std::string_view where, std::string_view what, std::string_view why);

}  // namespace once::mqtt
