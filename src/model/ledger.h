// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/outcome.h>
#include <once/result.h>
#include <once/transaction.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace once {

// What every store agrees on about ids, so that none of them accepts what another refuses.
inline constexpr std::size_t id_bytes_max = 1024;
inline constexpr std::size_t name_bytes_max = 255;  // scopes, partitions and destinations

// A scope is never empty and has a limit.
[[nodiscard]] Status check_scope(std::string_view scope);
[[nodiscard]] Status check_partition(std::string_view partition);
[[nodiscard]] Status check_destination(std::string_view destination);

// Refuse empty and over-long ids (remedy `park`) before anything is written.
[[nodiscard]] Status check_id(std::string_view id);
[[nodiscard]] Status check_entries(std::span<const Entry> entries);

// Refuses to move a position back.
[[nodiscard]] Status check_advance(std::string_view partition, const Position& from,
                                   std::int64_t to);

// `retry` cannot be recorded.
[[nodiscard]] Status check_settle(const Outcome& outcome);

// The error of everyone who is not the owner any more.
[[nodiscard]] Error fenced_error(std::string_view scope, std::string_view partition,
                                 const Position& expected, const Position& actual);

// Whether two fingerprints contradict each other; what cannot be compared does not.
constexpr bool contradicts(const Fingerprint& stored, const Fingerprint& offered) {
  return stored.version != 0 && stored.version == offered.version &&
         stored.digest != offered.digest;
}

// Times before 1970 count as 1970: a horizon of 0 has forgotten nothing.
constexpr std::int64_t ledger_time(std::int64_t born_ms) {
  return std::max<std::int64_t>(born_ms, 0);
}

}  // namespace once
