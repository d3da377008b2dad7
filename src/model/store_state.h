// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace once {

// Whether a store was made, as far as it can be known without making anything.
enum class StoreState : std::uint8_t {
  none,     // there is no file, table or key of Once
  older,    // by an earlier version: opening it would change its tables
  current,  // or newer, which opening it tells
};

constexpr StoreState store_state(std::size_t version, std::size_t newest) {
  if (version == 0) return StoreState::none;
  return version < newest ? StoreState::older : StoreState::current;
}

}  // namespace once
