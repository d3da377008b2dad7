// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/sql.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace once {

// Fewer equal writes are not worth being run as one.
inline constexpr std::size_t equal_rows_min = 16;

// What a connection knows of the tables of so many statements, and for how long it believes it: a
// trigger that somebody adds is seen then, at the latest.
inline constexpr std::size_t sets_max = 100;
inline constexpr std::chrono::seconds learned_for{60};

enum class KeyKind : std::uint8_t { number, text };

// Rows of values that can be run together, as places in the list of all. In a wave every key is
// there once; what comes later for a key is in a later wave, or among the rest.
struct Waves {
  std::vector<std::vector<std::size_t>> together;  // each in the order of its keys
  std::vector<std::size_t> rest;                   // too few, to be run last and in this order
};

// Unset: the values of this parameter are not all of this kind, so nobody knows which are equal.
std::optional<Waves> cut_into_waves(std::span<const std::span<const Value>> rows,
                                    std::size_t parameter, KeyKind kind);

}  // namespace once
