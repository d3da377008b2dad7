// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
#include <once/result.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace once {

// Where messages go: one topic. Thread-safe.
class Sink {
 public:
  virtual ~Sink() = default;

  [[nodiscard]] virtual Result<std::uint32_t> partitions() = 0;

  // Makes the producer with this name known at the partition, fences its earlier epochs, and
  // answers the stamp of the message that it sends next: sequence 0 when nothing of it is there.
  // Durable when it returns.
  [[nodiscard]] virtual Result<Stamp> enter(std::uint32_t partition, std::string_view name) = 0;

  // Appends the messages in order; `stamp.sequence` belongs to the first. Durable when it returns.
  // Messages of the same producer and sequence that were appended before are not appended again;
  // a whole duplicate is answered with the offset of the original. Sent again with the same stamp
  // after any error, it does no harm.
  [[nodiscard]] virtual Result<Receipt> append(std::uint32_t partition, const Stamp& stamp,
                                               std::span<const Message> messages) = 0;

  // How many messages of the producer with this name the partition has; 0 also where that is not
  // known. Changes nothing, unlike `enter`.
  [[nodiscard]] virtual Result<std::uint64_t> sent_by(std::uint32_t, std::string_view) { return 0; }

  // The digest (`digest_of`) of the last message that the partition has of the producer with this
  // name; nothing where that is not known. Says whether a message that a resend would be taken for
  // a duplicate of is the same one. Changes nothing.
  [[nodiscard]] virtual Result<std::optional<std::uint64_t>> last_digest(std::uint32_t,
                                                                         std::string_view) {
    return std::nullopt;
  }

  // Whether `enter` takes an empty name: a new producer, whose resends are recognised as long as
  // this sink lives, and of which nothing lasting is kept.
  virtual bool takes_unnamed() const { return false; }

  // Producers that were last seen at the partition before this time, in milliseconds, may have been
  // forgotten there: one that is not known may be too old instead of new. 0: none was forgotten.
  [[nodiscard]] virtual Result<std::int64_t> producer_horizon_ms(std::uint32_t) { return 0; }
};

// The partition of a message: by its key when it has one, else by its id, so that a resend goes
// to the same place. Stable across versions and machines.
std::uint32_t partition_of(const Message& message, std::uint32_t partition_count);

// Of id, key, body and headers; the time is left out, since a destination may set it. Stable across
// versions and machines. Not cryptographic: it tells apart what two senders wrote, not forgeries.
std::uint64_t digest_of(const Message& message);

}  // namespace once
