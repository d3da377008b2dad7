// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace once {

// What a handler decided about one message. Nothing is inferred from "did not throw": a handler
// says one of these six things, and the ledger remembers it in the same transaction as the effect.
struct Outcome {
  enum class Kind : std::uint8_t {
    applied,    // the effect is in the transaction; `detail` is the result that duplicates get
    rejected,   // a final business refusal, remembered: duplicates get the same refusal
    retry,      // nothing happened, try again after `after_ms`; limited by the retry policy
    no_effect,  // nothing happened and nothing will; the id stays free for a later message
    parked,     // this message cannot succeed as it is: set it aside with its reason
    later,      // nothing happened; it waits in the store for `after_ms` and holds up no other
  };

  Kind kind = Kind::applied;
  std::string detail;         // the result of `applied`, else the reason
  std::int64_t after_ms = 0;  // of `retry` (0 leaves the delay to the retry policy) and `later`
  std::uint32_t attempts_max = 0;  // only for `later`: after so many attempts it is parked

  bool operator==(const Outcome&) const = default;
};

inline Outcome applied(std::string result = {}) {
  return {Outcome::Kind::applied, std::move(result), 0};
}
inline Outcome rejected(std::string reason) {
  return {Outcome::Kind::rejected, std::move(reason), 0};
}
inline Outcome retry(std::string reason, std::int64_t after_ms = 0) {
  return {Outcome::Kind::retry, std::move(reason), after_ms};
}
inline Outcome no_effect() { return {Outcome::Kind::no_effect, {}, 0}; }
inline Outcome parked(std::string reason) { return {Outcome::Kind::parked, std::move(reason), 0}; }
// The message is handled again, like a fresh delivery, when `after_ms` have passed by the store's
// clock; others are handled meanwhile, but for those of its key where order by key was asked for.
// Needs an id rule and effectively once.
inline Outcome later(std::string reason, std::int64_t after_ms, std::uint32_t attempts_max = 12) {
  return {Outcome::Kind::later, std::move(reason), after_ms, attempts_max};
}

// The word for a kind: the same in tables, JSON, metrics and the ledger.
constexpr const char* name_of(Outcome::Kind kind) {
  switch (kind) {
    case Outcome::Kind::applied: return "applied";
    case Outcome::Kind::rejected: return "rejected";
    case Outcome::Kind::retry: return "retry";
    case Outcome::Kind::no_effect: return "no_effect";
    case Outcome::Kind::parked: return "parked";
    case Outcome::Kind::later: return "later";
  }
  return "?";
}

}  // namespace once
