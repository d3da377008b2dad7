// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
#include <once/result.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace once {

// Where messages go: one topic. Thread-safe.
class Sink {
 public:
  virtual ~Sink() = default;

  [[nodiscard]] virtual Result<std::uint32_t> partitions() = 0;

  // Makes the producer with this name known at the partition, fences its earlier epochs, and
  // answers the stamp of the message that it sends next. Durable when it returns.
  [[nodiscard]] virtual Result<Stamp> enter(std::uint32_t partition, std::string_view name) = 0;

  // Appends the messages in order; `stamp.sequence` belongs to the first. Durable when it returns.
  // Messages of the same producer and sequence that were appended before are not appended again;
  // a whole duplicate is answered with the offset of the original. Sent again with the same stamp
  // after any error, it does no harm.
  [[nodiscard]] virtual Result<Receipt> append(std::uint32_t partition, const Stamp& stamp,
                                               std::span<const Message> messages) = 0;
};

// The partition of a message: by its key when it has one, else by its id, so that a resend goes
// to the same place. Stable across versions and machines.
std::uint32_t partition_of(const Message& message, std::uint32_t partition_count);

}  // namespace once
