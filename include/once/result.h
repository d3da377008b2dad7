// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/outcome.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace once {

// What the caller does about an error. Code branches on this and on nothing else, so every adapter
// translates its native errors to one of these in a single, table-tested function.
enum class Remedy : std::uint8_t {
  retry,    // nothing happened: the same call may be made again
  recheck,  // it may have happened: read durable state, never repeat blindly
  park,     // this message can never succeed: set it aside
  stop,     // fenced, misconfigured or corrupt: a person or a restart has to act
};

constexpr const char* name_of(Remedy remedy) {
  switch (remedy) {
    case Remedy::retry: return "retry";
    case Remedy::recheck: return "recheck";
    case Remedy::park: return "park";
    case Remedy::stop: return "stop";
  }
  return "?";
}

// Whether the cause may pass by itself: the caller waits and tries again; looks first (recheck).
constexpr bool is_transient(Remedy remedy) {
  return remedy == Remedy::retry || remedy == Remedy::recheck;
}

// The message of a batch to which an error belongs, and what to settle for it instead of running
// its handler again. A failed expectation (see sql.h) is found long after the handler returned;
// this is how it finds its way back.
struct Culprit {
  std::size_t message = 0;  // index in the batch of the transaction
  Outcome instead;

  bool operator==(const Culprit&) const = default;
};

// The partition whose source no longer has what was read from it before: how to go on depends on
// why (tag "gone").
struct Lost {
  enum class Why : std::uint8_t {
    deleted,   // the messages from the position on: the oldest one comes later
    ended,     // the partition ends before the position
    replaced,  // another message is at the position
  };
  Why why = Why::deleted;
  std::string partition = {};
  std::int64_t end = -1;  // where it ends; only of `ended`

  bool operator==(const Lost&) const = default;
};

// What an error is about, as far as that says whether another message may fare better.
enum class Cause : std::uint8_t {
  other,      // the connection, the books of Once, this program
  statement,  // the store has answered one statement with it, and goes on
  joined,     // the same of a statement that was run for several messages at once
  handler,    // the same of a statement of a handler: it may depend on the values of a message
};

// An error is a value. `tag` is a short fixed word for metrics, JSON and exit codes ("busy",
// "corrupt", "fenced", "full", ...); `text` is for people: what failed, where, and what to do.
struct Error {
  Remedy remedy = Remedy::stop;
  std::string tag;
  std::string text;
  std::optional<Culprit> culprit = std::nullopt;
  std::optional<Lost> lost = std::nullopt;
  Cause cause = Cause::other;
  // The message of the batch for which the statement was run; unset: not known.
  std::optional<std::size_t> message = std::nullopt;

  bool operator==(const Error&) const = default;
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

// `return fail(Remedy::stop, "config", "...")` from any function that returns a Result.
[[nodiscard]] inline tl::unexpected<Error> fail(Remedy remedy, std::string_view tag,
                                                std::string text) {
  return tl::unexpected<Error>(Error{remedy, std::string(tag), std::move(text), std::nullopt});
}
[[nodiscard]] inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

namespace detail {
template <class T>
T take(Result<T>&& result) {
  return std::move(*result);
}
inline void take(Status&&) {}
}  // namespace detail

}  // namespace once

// The value of a Result, or return its error from the enclosing function:
//   auto batch = ONCE_TRY(source.poll(1000, 100));
// Not behind other elements of a braced list: the compilers forget those when it returns.
// May be nested, also in lambdas.
// clang-format off
#define ONCE_TRY(expression)                                                 \
  __extension__({                                                            \
    _Pragma("GCC diagnostic push")                                           \
    _Pragma("GCC diagnostic ignored \"-Wshadow\"")                           \
    auto once_result_ = (expression);                                        \
    _Pragma("GCC diagnostic pop")                                            \
    if (!once_result_) return ::once::fail(std::move(once_result_).error()); \
    ::once::detail::take(std::move(once_result_));                           \
  })
// clang-format on
