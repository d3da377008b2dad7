// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>

#include <string>
#include <string_view>

namespace once {

// Why and where a message was parked.
struct ParkedFacts {
  std::string_view reason;
  std::string_view tag;  // the kind of reason: "mismatch", "too_old", "ahead", "no_id", ...
  std::string_view scope;
  std::string_view source;
};

// The copy of a parked message for the dead-letter topic: id, key, body, headers and timestamp as
// they were, and headers that say why it was parked and where it came from. Those of an earlier
// time are replaced. A message without an id gets one of its own, so that a reader of the topic can
// tell copies from other messages: its coordinates, or a random one where these are those of a
// session.
[[nodiscard]] Message dead_letter_of(const Delivery& delivery, const ParkedFacts& facts);

// Whether a delivery is such a copy, made by a pipeline of this scope.
[[nodiscard]] bool is_dead_letter_of(const Delivery& delivery, std::string_view scope);

}  // namespace once
