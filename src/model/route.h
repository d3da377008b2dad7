// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace once {

// What a store knows of the sequences it sent to a partition of a destination: those from `first`
// up to, not including, `next` are pending. Nothing is pending when they are equal.
struct RouteRange {
  std::uint64_t first = 0;
  std::uint64_t next = 0;
};

// A destination that takes `sequence` next was sent to by this store, and by nobody else, only if
// the store knows it as pending or as the one that comes next.
bool agrees(const RouteRange& store, std::uint64_t sequence);

// Store and destination have different pasts: the tag is "diverged". Says what has happened, what
// would be lost, and how to go on.
Error diverged_error(std::string_view destination, std::uint32_t partition, const RouteRange& store,
                     std::uint64_t sequence);

// The destination has another message under this sequence, which the store has given to a message
// that is pending. The tag is "diverged".
Error another_sender_error(std::string_view destination, std::uint32_t partition,
                           std::uint64_t sequence);

// The destination has `sent` messages that were sent after a restart which the store does not know.
Error restart_unknown_error(std::string_view destination, std::uint32_t partition,
                            std::uint64_t sent);

// The destination says that it was replaced, and what is there does not tell it. The tag is
// "diverged".
Error replaced_destination_error(std::string_view destination, const Error& gone);

// With this, and the error's text, a relay gives its role back at a destination that has diverged,
// so that a restart can be told from one by mistake. A restart makes it out of date.
std::string diverged_role(std::int64_t restarts);

// In the same way where it cannot send for another reason that a person has to remove, such as a
// topic that does not exist.
inline constexpr std::string_view blocked_role = "cannot send: ";

// What `Outbox::assign` is given fits together.
Status check_assign(std::span<const std::int64_t> numbers,
                    std::span<const std::uint32_t> partitions,
                    std::span<const std::uint64_t> sequences);

// The sequence that row `i` gets is the one that its destination expects, where that is known.
Status check_sequence(std::string_view destination, std::uint32_t partition, std::int64_t sequence,
                      std::span<const std::uint64_t> expected, std::size_t i);

}  // namespace once
