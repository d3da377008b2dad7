// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/transaction.h>

#include <cstdint>

namespace once {

// The version of a fingerprint says by which rule it was made, and of which parts of the message it
// looks as if they were empty. A message whose parts all have bytes has the first version of its
// rule. The others tell an empty key or body from an absent one: their digests take both for empty,
// as did earlier versions of Once, which gave the first version to every message.
namespace fingerprint_version {
inline constexpr std::uint8_t not_compared = 0;
inline constexpr std::uint8_t everything = 1;
inline constexpr std::uint8_t json = 2;
inline constexpr std::uint8_t everything_in_part = 3;  // and the next 7: see `parts`
inline constexpr std::uint8_t json_empty = 11;
inline constexpr std::uint8_t json_absent = 12;
inline constexpr std::uint8_t first_fields = 16;  // and all above it: one of each list of fields

// The first version of the same rule.
constexpr std::uint8_t rule_of(std::uint8_t version) {
  if (version >= everything_in_part && version < json_empty) return everything;
  if (version == json_empty || version == json_absent) return json;
  return version;
}
}  // namespace fingerprint_version

// Whether two fingerprints contradict each other; what cannot be compared does not. A stored one of
// the first version of its rule may come from an earlier version of Once.
constexpr bool contradicts(const Fingerprint& stored, const Fingerprint& offered) {
  using namespace fingerprint_version;
  const std::uint8_t rule = rule_of(stored.version);
  if (rule == not_compared || rule != rule_of(offered.version)) return false;
  return stored.digest != offered.digest ||
         (stored.version != offered.version && stored.version != rule);
}

}  // namespace once
