// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
#include <once/result.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace once {

// By what a destination knows a message that it was sent before, and does not take it again.
enum class Recognises : std::uint8_t {
  none,      // it takes a resend for a new message: a crash can leave a copy there
  by_id,     // by Message::id, which travels with the message
  by_stamp,  // by the producer and sequence of its stamp; then `Sink::producers` is there
};

struct SinkTraits {
  std::string name;  // for people: "kafka://localhost/paid"; never holds a secret
  Recognises recognises = Recognises::none;
  // For how long after it was sent a message is recognised, or after its producer was last seen;
  // -1: for as long as the data is there. Says nothing with `none`.
  std::int64_t recognises_ms = -1;
  bool ordered = true;  // consumers of a partition get messages in the order of their appends
  std::size_t message_bytes_max = 0;       // a larger message is refused; 0: not known
  std::vector<std::string> warnings = {};  // what a person should know before relying on it
};

// The producers of a sink that recognises resends by stamp: who has sent what to which partition.
class SinkProducers {
 public:
  virtual ~SinkProducers() = default;

  // Makes the producer with this name known at the partition, fences its earlier epochs, and
  // answers the stamp of the message that it sends next: sequence 0 when nothing of it is there.
  // Durable when it returns.
  [[nodiscard]] virtual Result<Stamp> enter(std::uint32_t partition, std::string_view name) = 0;

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

// Where messages go: one topic, queue or address. Thread-safe.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual SinkTraits traits() const = 0;

  [[nodiscard]] virtual Result<std::uint32_t> partitions() = 0;

  // Appends the messages in order; durable when it returns. Errors have these remedies:
  //   retry    nothing was appended
  //   recheck  all, some or none were
  //   park     one of the messages can never be accepted, and nothing was appended
  //
  // With producers, `stamp.sequence` belongs to the first message. Messages of the same producer
  // and sequence that were appended before are not appended again; a whole duplicate is answered
  // with the offset of the original. Sent again with the same stamp after any error, it does no
  // harm.
  //
  // Without producers the stamp says nothing (producer 0), and what is sent again may be there
  // twice. Such a sink can also append all messages but those that it never accepts, and name these
  // in the receipt (Receipt::refused).
  [[nodiscard]] virtual Result<Receipt> append(std::uint32_t partition, const Stamp& stamp,
                                               std::span<const Message> messages) = 0;

  // An optional capability; nullptr where resends are not recognised by stamp.
  virtual SinkProducers* producers() { return nullptr; }
};

// The partition of a message: by its key when it has one, else by its id, so that a resend goes
// to the same place. Stable across versions and machines.
std::uint32_t partition_of(const Message& message, std::uint32_t partition_count);

// Of id, key, body and headers; the time is left out, since a destination may set it. Stable across
// versions and machines. Not cryptographic: it tells apart what two senders wrote, not forgeries.
std::uint64_t digest_of(const Message& message);

}  // namespace once
