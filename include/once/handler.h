// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/claims.h>
#include <once/key_value.h>
#include <once/sql.h>
#include <once/transaction.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

namespace once {

// One new message of a batch, for a batch handler: what came, and what it decides about it.
struct Work {
  const Delivery* delivery = nullptr;
  std::size_t message = 0;  // for Expect::message
  Outcome outcome;          // `applied` unless the handler says otherwise
};

enum class Semantics : std::uint8_t {
  at_most_once,      // the position moves, then the work is done: a crash loses it
  at_least_once,     // the work is done, then the position moves: a crash repeats it
  effectively_once,  // work, ledger and position in one transaction, or a claim that tells
};

// What becomes of a claim when its effect fails (an error, an exception, or the outcome `retry`).
enum class OnFailure : std::uint8_t {
  keep_steps,  // another try goes on behind the finished steps
  release,     // another try begins from the start: the steps do no harm when repeated
  bind,        // no other try: the failure is remembered as a rejection
};

// The user's code for an effect that is not in the store (see effect.h).
struct Outside {
  using Run = std::function<Result<Outcome>(const Delivery&, Ticket&)>;

  Run run;
  Semantics promise = Semantics::effectively_once;  // the strongest it can give
  AfterLoss after_loss = AfterLoss::doubt;
  Resolver ask = {};
  OnFailure on_failure = OnFailure::keep_steps;
  std::int64_t lease_ms = 30'000;
};

// The user's code: what a message does. Made by `each` (one message at a time) or `batch` (all new
// messages of a batch at once, for set-based SQL) from a function that takes the transaction it
// needs: `Transaction&`, `SqlTransaction&` or `KeyValueTransaction&`. A store that cannot give it
// is refused when the pipeline is made.
//
// A handler writes through its transaction and nowhere else; it may be run again after a rollback.
// What it says about the message is an Outcome: `retry` counts against the message's attempts, and
// so does an exception. An Error is about the world: `retry` (the store is away, say) is tried
// again without limit and without harm to the message, `park` sets the message aside, `stop` ends
// the pipeline. What a handler wrote for a message is kept only if it answers `applied`: anything
// else rolls it back, and is recorded without running the handler again. A batch handler says for
// whom it writes (on_behalf_of, Expect::message); a write for nobody is taken for everybody's.
class Handler {
 public:
  enum class Needs : std::uint8_t { any, sql, key_value, claims };
  using Each = std::function<Result<Outcome>(const Delivery&, Transaction&)>;
  using Batched = std::function<Status(std::span<Work>, Transaction&)>;

  Handler(Needs needs, Each each) : needs_(needs), each_(std::move(each)) {}
  Handler(Needs needs, Batched batched) : needs_(needs), batched_(std::move(batched)) {}
  explicit Handler(Outside outside) : needs_(Needs::claims), outside_(std::move(outside)) {}

  Needs needs() const { return needs_; }
  const Each& each() const { return each_; }           // empty for a batch handler
  const Batched& batched() const { return batched_; }  // empty for a handler of single messages
  const std::optional<Outside>& outside() const { return outside_; }

 private:
  Needs needs_;
  Each each_;
  Batched batched_;
  std::optional<Outside> outside_;
};

// One message at a time: `f(const Delivery&, T&) -> Result<Outcome>`.
template <class F>
Handler each(F f) {
  if constexpr (std::is_invocable_v<F&, const Delivery&, Transaction&>)
    return {Handler::Needs::any, Handler::Each(std::move(f))};
  else if constexpr (std::is_invocable_v<F&, const Delivery&, SqlTransaction&>)
    return {Handler::Needs::sql,
            Handler::Each(
                [f = std::move(f)](const Delivery& delivery, Transaction& transaction) mutable {
                  return f(delivery, *transaction.sql());
                })};
  else
    return {Handler::Needs::key_value,
            Handler::Each(
                [f = std::move(f)](const Delivery& delivery, Transaction& transaction) mutable {
                  return f(delivery, *transaction.key_value());
                })};
}

// All new messages of a batch at once: `f(std::span<Work>, T&) -> Status`.
template <class F>
Handler batch(F f) {
  if constexpr (std::is_invocable_v<F&, std::span<Work>, Transaction&>)
    return {Handler::Needs::any, Handler::Batched(std::move(f))};
  else if constexpr (std::is_invocable_v<F&, std::span<Work>, SqlTransaction&>)
    return {Handler::Needs::sql,
            Handler::Batched(
                [f = std::move(f)](std::span<Work> work, Transaction& transaction) mutable {
                  return f(work, *transaction.sql());
                })};
  else
    return {Handler::Needs::key_value,
            Handler::Batched(
                [f = std::move(f)](std::span<Work> work, Transaction& transaction) mutable {
                  return f(work, *transaction.key_value());
                })};
}

}  // namespace once
