// SPDX-License-Identifier: Apache-2.0
#include "store/redis/slot.h"

namespace once {

std::uint16_t crc16(std::string_view bytes) {
  unsigned crc = 0;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned>(static_cast<unsigned char>(byte)) << 8;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 0x8000) != 0 ? crc << 1 ^ 0x1021 : crc << 1;
  }
  return static_cast<std::uint16_t>(crc);
}

std::uint16_t slot_of(std::string_view key) {
  constexpr unsigned slots = 16384;
  if (const std::size_t open = key.find('{'); open != std::string_view::npos) {
    const std::size_t close = key.find('}', open + 1);
    if (close != std::string_view::npos && close > open + 1)
      key = key.substr(open + 1, close - open - 1);
  }
  return static_cast<std::uint16_t>(crc16(key) % slots);
}

}  // namespace once
