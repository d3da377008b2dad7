// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
#include <once/result.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wire/pulsar/place.h"

namespace once::pulsar {

// How a message of ours looks in Pulsar: key, payload and event time are Pulsar's own; id, stamp
// and headers are properties. Properties are text in Pulsar, so that a value that is not UTF-8 is
// written in Base64 under another name.

inline constexpr std::string_view stamp_property = "once-stamp";
inline constexpr std::string_view base64_prefix = "once-base64:";
inline constexpr std::string_view absent_prefix = "once-absent:";

// PRODUCER/EPOCH/SEQUENCE; the producer in hexadecimal.
std::string encode_stamp(const Stamp& stamp);
// Unset for anything else: a property of this name may come from anybody.
std::optional<Stamp> decode_stamp(std::string_view text);

// Names of properties are UTF-8 and nothing else.
bool has_text_names(const Message& message);

// The metadata of a message that is an entry of its own; its payload is the body.
std::string encode_metadata(const Message& message, const Stamp& stamp, std::string_view producer,
                            std::uint64_t sequence, std::int64_t now_ms);

// An entry as it was read, with the messages in it: one, or those of a batch. Owns its bytes.
class Entry {
 public:
  // `where` is for errors. A batch, or a payload that becomes larger than `bytes_max` when it is
  // decompressed, is refused.
  static Result<std::shared_ptr<const Entry>> read(std::string&& frame, std::string_view metadata,
                                                   std::string_view payload, std::size_t bytes_max,
                                                   std::string_view where);

  std::size_t size() const { return messages_.size(); }
  bool is_batch() const { return is_batch_; }
  std::size_t bytes() const { return frame_.size() + decompressed_.size(); }
  std::string_view producer() const { return producer_; }
  std::uint64_t sequence() const { return sequence_; }  // the highest, of a batch
  // What the message says; where it is, the caller adds. Views live as long as the entry.
  Delivery delivery(std::size_t index) const;
  // Of a batch from which messages were removed by compaction: this one is not there any more.
  bool is_removed(std::size_t index) const { return messages_[index].is_removed; }

 private:
  struct Content {
    std::string_view id;
    std::string_view key;
    std::string_view body;
    std::size_t headers_begin = 0;
    std::size_t headers_end = 0;
    std::int64_t timestamp_ms = 0;
    Stamp stamp;
    bool is_removed = false;
  };
  struct Metadata;

  Entry() = default;
  Status read_all(std::string_view metadata, std::string_view payload, std::size_t bytes_max);
  Status read_batch(std::string_view payload, std::int32_t count);
  bool read_single(std::string_view metadata, std::size_t& payload_size, Content& content);
  bool add_property(std::string_view pair, Content& content);
  std::string_view decoded(std::string_view base64);
  std::string_view key_of(std::string_view key, bool is_base64);

  std::string frame_;
  std::string decompressed_;
  std::vector<std::unique_ptr<std::string>> decoded_;  // from Base64
  std::vector<HeaderView> headers_;
  std::vector<Content> messages_;
  std::string_view producer_;
  std::uint64_t sequence_ = 0;
  std::int64_t published_ms_ = 0;
  bool is_batch_ = false;
};

}  // namespace once::pulsar
