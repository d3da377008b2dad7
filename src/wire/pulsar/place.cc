// SPDX-License-Identifier: Apache-2.0
#include "wire/pulsar/place.h"

#include <fmt/format.h>

namespace once::pulsar {

std::optional<std::int64_t> offset_of(const Place& place) {
  if (place.ledger < 0 || place.entry < 0 || place.index < 0 || place.ledger > ledger_max ||
      place.entry > entry_max || place.index > index_max)
    return std::nullopt;
  return ((place.ledger << 24) | place.entry) << 11 | place.index;
}

Place place_of(std::int64_t offset) {
  return {offset >> 35, (offset >> 11) & entry_max, static_cast<std::int32_t>(offset & index_max)};
}

std::string shown(const Place& place) {
  return fmt::format("{}:{}:{}", place.ledger, place.entry, place.index);
}

}  // namespace once::pulsar
