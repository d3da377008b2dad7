// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/clock.h>
#include <once/message.h>
#include <once/result.h>
#include <once/store.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace once {

// Where the id of a message comes from. Written as text in configurations and on the command line:
//
//   carried                 the id the message carries (Message::id, header once-id)
//   key                     the message key
//   header:NAME             a header or property
//   json:/order/id          one JSON pointer into the body, or several: json:/order/id,/line
//   cloudevents             CloudEvents source and id, from headers or a structured body
//   coordinates             partition and offset: tells redeliveries, not resends
//   digest:/a,/b            128 bits of SHA-256 over these fields of the body; "digest:" over all
//   of it
//
// An id made of several parts is encoded so that ("a","bc") and ("ab","c") differ.
struct IdRule {
  enum class Kind : std::uint8_t { carried, key, header, json, cloudevents, coordinates, digest };
  Kind kind = Kind::carried;
  std::vector<std::string> fields = {};  // header name or JSON pointers

  static Result<IdRule> parse(std::string_view text);
  std::string text() const;

  // The id of this message. A missing or empty one is an error (remedy `park`) that names the rule.
  Result<std::string> id_of(const Delivery& delivery) const;

  bool operator==(const IdRule&) const = default;
};

// When a message was born: the same however often it is sent. It decides what is below the horizon.
enum class BornRule : std::uint8_t {
  timestamp,  // the message's timestamp: stable for redeliveries, not for resends
  uuid7,      // the time inside an id that is a UUIDv7
  snowflake,  // the time inside an id that is a snowflake of ours
};
Result<std::int64_t> born_ms_of(BornRule rule, const Delivery& delivery, std::string_view id);

// What must be the same in a message that comes again under an id; another content under a known id
// is a mismatch, and parked. Real resends differ in what says nothing about the intent (a counter
// of attempts, a time of sending, the order of members), so less is often right:
//
//   none                      nothing: the id alone decides
//   fields:/amount,/to,key    these: JSON pointers into the body, `key`, `header:NAME`
//   json                      the body, as JSON where it is an object or a list: white space, the
//                             order of members and the spelling of numbers do not matter
//   everything                key, body and headers byte by byte, but no trace context and no
//                             once-* headers
struct ContentRule {
  enum class Kind : std::uint8_t { none, fields, json, everything };
  Kind kind = Kind::json;
  std::vector<std::string> fields = {};

  static Result<ContentRule> parse(std::string_view text);
  std::string text() const;
  std::string_view explanation() const;  // for people: what is compared

  bool operator==(const ContentRule&) const = default;
};

// 128 bits of SHA-256 over what the rule compares. Its version differs between rules, so that a
// change of the rule makes no mismatches; version 0 is compared with nothing.
Fingerprint fingerprint_of(const Delivery& delivery, const ContentRule& content = {});

// Parts as one string, from which they can be told apart again.
std::string encode_tuple(std::span<const std::string_view> parts);
Result<std::vector<std::string>> decode_tuple(std::string_view encoded);

// Makes ids. Thread-safe.
class IdMaker {
 public:
  virtual ~IdMaker() = default;
  [[nodiscard]] virtual Result<std::string> next() = 0;
};

// 64-bit ids in order of time: 41 bits of milliseconds since 2024, 5 of cluster, 5 of topic, 12 of
// sequence. A clock that goes back is waited for up to `back_ms_max`; beyond that it is an error
// with the remedy `retry`: an id is never made twice. Across restarts the clock must not have
// gone back by more than the process was down.
struct SnowflakeOptions {
  std::uint32_t cluster = 0;  // 0..31
  std::uint32_t topic = 0;    // 0..31
  std::int64_t back_ms_max = 20;
};
Result<std::unique_ptr<IdMaker>> make_snowflake(Clock& clock, const SnowflakeOptions& options);
Result<std::int64_t> snowflake_time_ms(std::string_view id);

// Dense numbers in ranges drawn from a key-value or SQL store (Leaf segment): the next range is
// drawn before the current one runs out, so that callers do not wait for the store. A range that
// was drawn and not used is skipped, never repeated.
struct SegmentOptions {
  std::string name;                 // the counter
  std::int64_t range_count = 1000;  // ids per draw
};
Result<std::unique_ptr<IdMaker>> make_segment_ids(Store& store, const SegmentOptions& options);

// UUID version 7 (RFC 9562), monotonic within one maker also when the clock goes back.
std::unique_ptr<IdMaker> make_uuid7(Clock& clock);
Result<std::int64_t> uuid7_time_ms(std::string_view id);

}  // namespace once
