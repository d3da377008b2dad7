// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace once {

struct Header {
  std::string name;
  std::optional<std::string> value = std::string();  // unset: absent, which is not empty

  bool operator==(const Header&) const = default;
};

struct HeaderView {
  std::string_view name;
  std::string_view value;  // without data(): absent

  bool has_value() const { return value.data() != nullptr; }

  bool operator==(const HeaderView&) const = default;
};

// The header in which an id travels through brokers that have no field for it. Sources give it as
// the id, not as a header.
inline constexpr std::string_view id_header = "once-id";
// The headers of a parked message's copy (PipelineOptions::park_to) begin with this: `reason`,
// `tag`, `scope`, `source`, `partition`, `offset`, `attempts`.
inline constexpr std::string_view parked_header_prefix = "once-parked-";

// What a user sends. `id` is the identity of the business intent ("order 100 paid"): the same
// however often it is sent. `key` only routes and orders. All strings are bytes. Key, body and
// header values can be absent, as in Kafka, where a message without a body (a tombstone) removes
// its key from a compacted topic: absent and empty are two things, and every copy keeps them apart.
struct Message {
  std::string id = {};
  std::optional<std::string> key = std::nullopt;
  std::optional<std::string> body = std::string();
  std::vector<Header> headers = {};
  std::int64_t timestamp_ms = 0;  // 0: the producer sets the time of sending

  bool operator==(const Message&) const = default;
};

// A producer's identity at one partition. Sequences number its messages from 0 without holes and
// are compared across epochs; a larger epoch only fences smaller ones. Producer 0 means "no stamp":
// such messages are appended without producer dedup.
struct Stamp {
  std::uint64_t producer = 0;
  std::uint32_t epoch = 0;
  std::uint64_t sequence = 0;  // of the first message it covers

  auto operator<=>(const Stamp&) const = default;
};

// A message that waits in the store (Outcome::later), as it was when it was read there.
struct Deferral {
  std::int64_t number = 0;     // 0: the message comes from the source
  std::uint32_t attempts = 0;  // that ended with `later`
  bool in_order = false;       // later messages of its key wait behind it

  bool operator==(const Deferral&) const = default;
};

// A message on loan from a source: all views stay valid as long as the Batch it came in.
// `partition` names live as long as the source. A key, body or header value that is absent is a
// view without data(), which otherwise reads as empty.
struct Delivery {
  std::string_view partition;
  std::int64_t offset = 0;  // place in the partition; of an unordered source, a tag of its choice
  // Of the connection or channel through which it came, if tags are counted anew by each; such a
  // delivery is named by session and tag.
  std::uint64_t session = 0;
  std::uint32_t attempt = 1;
  std::string_view
      id;  // what the message carried; the pipeline replaces it by the id rule's answer
  std::string_view key;
  std::string_view body;
  std::span<const HeaderView> headers;
  std::int64_t timestamp_ms = 0;
  Stamp stamp;
  Deferral deferral = {};

  bool has_key() const { return key.data() != nullptr; }
  bool has_body() const { return body.data() != nullptr; }
  // The value of the first header with this name, or nullptr.
  const std::string_view* header(std::string_view name) const {
    for (const HeaderView& candidate : headers)
      if (candidate.name == name) return &candidate.value;
    return nullptr;
  }
};

// What one poll gives: deliveries of one partition in order, or news about a partition.
struct Batch {
  enum class Event : std::uint8_t {
    messages,  // deliveries, or none when the wait ran out (then `partition` is empty)
    assigned,  // we own this partition from now on: seek it before the next poll
    revoked,   // another owns it: drop what is queued of it; the next poll confirms
    end,       // the source is exhausted for good (a bounded source only)
  };

  Event event = Event::messages;
  std::string_view partition;
  std::vector<Delivery> deliveries;
  std::int64_t end_offset = 0;  // the position after the last delivery, control records skipped
  std::int64_t available_offset = -1;  // end of what the source has, for the lag; -1: not known
  // Without deliveries: every partition was read to its end. An empty batch alone does not say so:
  // a broker may be slow, or away.
  bool drained = false;
  std::shared_ptr<const void> memory;  // owns the bytes behind the views
};

// A message of an append that its destination can never accept.
struct Refusal {
  std::size_t message = 0;  // its index
  Error why;

  bool operator==(const Refusal&) const = default;
};

// What a sink answers: where the messages are. Durable when it is returned.
struct Receipt {
  // Of the first message; -1: not known (a duplicate whose place was forgotten, a broker that does
  // not tell).
  std::int64_t offset = -1;
  std::uint32_t duplicates = 0;  // how many of the messages had been appended before
  // Of a sink without producers, by index: those that were not appended.
  std::vector<Refusal> refused = {};

  bool operator==(const Receipt&) const = default;
};

}  // namespace once
