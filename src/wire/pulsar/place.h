// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace once::pulsar {

// Where a message is: the ledger, the entry in it, and the place in the entry, where several
// messages are one entry (a batch). Pulsar counts all of them as unsigned numbers, and writes the
// entry before the first one as -1.
struct Place {
  std::int64_t ledger = -1;
  std::int64_t entry = -1;
  std::int32_t index = 0;

  auto operator<=>(const Place&) const = default;
};

inline constexpr Place earliest_place{-1, -1, 0};

// As one number that grows with the place: 28 bits ledger, 24 bits entry, 11 bits index. Ledgers
// are numbered for the whole cluster, and never given again; entries start anew in each ledger,
// which a broker closes after 50,000 of them unless it is told otherwise.
inline constexpr std::int64_t ledger_max = (std::int64_t{1} << 28) - 1;
inline constexpr std::int64_t entry_max = (std::int64_t{1} << 24) - 1;
inline constexpr std::int32_t index_max = (1 << 11) - 1;

// Unset where the place does not fit: then there is no offset for it, and none is made up.
std::optional<std::int64_t> offset_of(const Place& place);
Place place_of(std::int64_t offset);

// "17:4:0", as Pulsar's tools write it.
std::string shown(const Place& place);

}  // namespace once::pulsar
