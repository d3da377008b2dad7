// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace once {

// CRC-16/XMODEM, by which Redis Cluster spreads keys.
std::uint16_t crc16(std::string_view bytes);

// The slot of a key, 0 to 16383: of the part between the first { and the next }, if there is one.
std::uint16_t slot_of(std::string_view key);

}  // namespace once
