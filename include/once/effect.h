// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/pipeline.h>

#include <cstdint>
#include <memory>
#include <utility>

namespace once {

// What kind of effect a message has decides what can be promised, and the type says so:
//
//   transactional  in the store, through the handler's transaction         effectively once
//   keyed          elsewhere; the other side tells duplicates by an id     effectively once
//   queryable      elsewhere; the other side can be asked what happened    effectively once
//   opaque<S>      elsewhere, and neither: choose at most or at least once by name
//
// `make_pipeline<Semantics::effectively_once>` with an opaque effect does not compile. A pipeline
// that is put together at run time from the same parts does not start.

// A handler made by `each` or `batch` is this kind.
struct Transactional {
  Handler handler;
};

struct EffectOptions {
  std::int64_t lease_ms = 30'000;
  OnFailure on_failure = OnFailure::keep_steps;
};

// Gives `ticket.downstream_id()` to the other side, which does the same thing once per id.
struct Keyed {
  Outside::Run run;
  EffectOptions options = {};
};

// After a lost answer `ask` finds out what happened, by the ticket's downstream id.
struct Queryable {
  Outside::Run run;
  Resolver ask;
  EffectOptions options = {};
};

template <Semantics chosen>
struct Opaque {
  static_assert(chosen != Semantics::effectively_once,
                "an opaque effect is at most once or at least once: choose one by name");
  Outside::Run run;
  EffectOptions options = {};
};

inline Handler handler_of(Transactional effect) { return std::move(effect.handler); }
inline Handler handler_of(Handler handler) { return handler; }
inline Handler handler_of(Keyed effect) {
  return Handler(Outside{.run = std::move(effect.run),
                         .promise = Semantics::effectively_once,
                         .after_loss = AfterLoss::retry,
                         .on_failure = effect.options.on_failure,
                         .lease_ms = effect.options.lease_ms});
}
inline Handler handler_of(Queryable effect) {
  return Handler(Outside{.run = std::move(effect.run),
                         .promise = Semantics::effectively_once,
                         .after_loss = AfterLoss::doubt,
                         .ask = std::move(effect.ask),
                         .on_failure = effect.options.on_failure,
                         .lease_ms = effect.options.lease_ms});
}
template <Semantics chosen>
Handler handler_of(Opaque<chosen> effect) {
  return Handler(Outside{
      .run = std::move(effect.run),
      .promise = chosen,
      .after_loss = chosen == Semantics::at_least_once ? AfterLoss::retry : AfterLoss::give_up,
      .on_failure = effect.options.on_failure,
      .lease_ms = effect.options.lease_ms});
}

// The strongest promise of a kind of effect.
template <class Effect>
inline constexpr Semantics promise_of = Semantics::effectively_once;
template <Semantics chosen>
inline constexpr Semantics promise_of<Opaque<chosen>> = chosen;

// Whether an effect can keep a promise. One that tells duplicates can keep each of them.
constexpr bool can_keep(Semantics strongest, Semantics asked) {
  return strongest == Semantics::effectively_once || strongest == asked;
}

// As Pipeline::make, for a promise that is known when the program is compiled.
template <Semantics semantics, class Effect>
Result<std::unique_ptr<Pipeline>> make_pipeline(Source& source, Store& store, Effect effect,
                                                PipelineOptions options,
                                                Clock& clock = system_clock()) {
  static_assert(can_keep(promise_of<Effect>, semantics),
                "this effect cannot keep this promise. It would break like this: the effect "
                "happens; the process dies before that is written down; nobody can tell whether it "
                "happened, and it is repeated, or it is not. Make the effect transactional, keyed "
                "or queryable, or ask for the promise that the opaque effect names");
  options.semantics = semantics;
  return Pipeline::make(source, store, handler_of(std::move(effect)), std::move(options), clock);
}

}  // namespace once
