// SPDX-License-Identifier: Apache-2.0
// The start-up verifier: what can be promised, or the schedule that would break the promise.
#include <fmt/format.h>
#include <once/pipeline.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "model/ledger.h"

namespace once {
namespace {

tl::unexpected<Error> refuse(std::string text) {
  return fail(Remedy::stop, "config", std::move(text));
}

Status verify_options(const PipelineOptions& options) {
  if (options.scope.empty())
    return refuse("a pipeline needs a scope: a name for who remembers, one per consumer purpose");
  ONCE_TRY(check_scope(options.scope));
  if (options.scope.starts_with("once."))
    return refuse(
        fmt::format("the scope \"{}\" is reserved: names that begin with \"once.\" are "
                    "used by Once itself; choose another",
                    options.scope));
  if (options.lanes == 0 || options.lanes > 256)
    return refuse(fmt::format("lanes must be between 1 and 256, not {}", options.lanes));
  if (options.batch_count_min == 0 || options.batch_count_min > options.batch_count_max)
    return refuse(fmt::format("batch_count_min must be between 1 and batch_count_max ({}), not {}",
                              options.batch_count_max, options.batch_count_min));
  if (options.batch_count_max > 1'000'000)
    return refuse(
        fmt::format("batch_count_max must be at most 1000000, not {}", options.batch_count_max));
  if (options.ahead_ms_max < 0)
    return refuse(fmt::format("ahead_ms_max must be 0 or more, not {}", options.ahead_ms_max));
  if (options.queue_batches_max == 0) return refuse("queue_batches_max must be at least 1");
  if (options.waiting_max == 0) return refuse("waiting_max must be at least 1");
  if (options.park_to.size() > name_bytes_max)
    return refuse(fmt::format("park_to has {} bytes; a destination has at most {}",
                              options.park_to.size(), name_bytes_max));
  if (options.retry.attempts_max == 0) return refuse("retry.attempts_max must be at least 1");
  if (options.retry.backoff_ms_min < 0 ||
      options.retry.backoff_ms_max < options.retry.backoff_ms_min)
    return refuse("retry.backoff_ms_min must be 0 or more and at most retry.backoff_ms_max");
  if (const auto& limit = options.parked_max) {
    if (limit->percent == 0 || limit->percent > 100)
      return refuse(
          fmt::format("parked_max.percent must be between 1 and 100, not {}", limit->percent));
    if (limit->messages_min == 0 || limit->messages_min > limit->window)
      return refuse(
          fmt::format("parked_max.messages_min must be between 1 and the window ({}), "
                      "not {}",
                      limit->window, limit->messages_min));
    if (limit->window > 1'000'000)
      return refuse(
          fmt::format("parked_max.window must be at most 1000000, not {}", limit->window));
  }
  return {};
}

Status verify_handler(const StoreTraits& store, const Handler& handler) {
  if (handler.needs() == Handler::Needs::sql && !store.sql)
    return refuse(fmt::format(
        "the handler writes SQL, but the store {} has none; use an SQL store, or a handler that "
        "takes a KeyValueTransaction",
        store.name));
  if (handler.needs() == Handler::Needs::key_value && !store.key_value)
    return refuse(fmt::format(
        "the handler writes keys and values, but the store {} has none; use a handler that takes "
        "an SqlTransaction",
        store.name));
  if (handler.needs() == Handler::Needs::claims && !store.claims)
    return refuse(fmt::format(
        "the effect is outside the store, and the store {} keeps no claims to guard it; use "
        "another store",
        store.name));
  return {};
}

// What is done elsewhere can only be promised as far as the other side helps.
Status verify_effect(const Handler& handler, const PipelineOptions& options) {
  if (!handler.outside()) return {};
  if (!options.id)
    return refuse(
        "an effect outside the store is guarded by a claim on an id, and there is no id rule. Set "
        "one, for example json:/order/id; \"coordinates\" tells redeliveries and no resends");
  const Semantics strongest = handler.outside()->promise;
  if (strongest == Semantics::effectively_once || strongest == options.semantics) return {};
  return refuse(fmt::format(
      "the effect is opaque: the other side neither tells duplicates nor can be asked, so it can "
      "only be {} once. This would break anything else: the effect happens; the process dies "
      "before that is written down; nobody can tell whether it happened, and it is {}. Make the "
      "effect keyed or queryable, or set the semantics to {}_once",
      strongest == Semantics::at_most_once ? "at most" : "at least",
      strongest == Semantics::at_most_once ? "lost" : "repeated",
      strongest == Semantics::at_most_once ? "at_most" : "at_least"));
}

// Whatever the position does not tell, ids must; here is where they cannot.
Status verify_identity(const SourceTraits& source, const PipelineOptions& options) {
  const bool position_tells = source.ordered && source.replayable;
  if (!options.id && !position_tells)
    return refuse(fmt::format(
        "the source {} does not deliver in order from a position, so only an id tells whether a "
        "message was handled, and there is no id rule. This would break it: message M is "
        "delivered; its effect is committed; the ack is lost; M is delivered again; nothing tells "
        "it from a new message; its effect is committed twice. Set an id rule, for example "
        "json:/order/id",
        source.name));
  if (options.id && options.id->kind == IdRule::Kind::coordinates && !position_tells)
    return refuse(fmt::format(
        "the id rule \"coordinates\" does not work with the source {}: its tags change. This would "
        "break it: message M is delivered with tag 7; its effect is committed; the ack is lost; M "
        "is delivered again with tag 12 and counts as new. Take the id from the message, for "
        "example json:/order/id",
        source.name));
  if (options.order == Order::key && !options.id)
    return refuse(
        "order by key lets lanes finish a partition out of order, so the position cannot tell "
        "what was handled, and there is no id rule. This would break it: offset 6 is committed; "
        "offset 5, of another key, is not; crash; reading starts again at 5, and 6 takes effect "
        "twice. Set an id rule, or order by partition");
  return {};
}

Status verify_retention(const SourceTraits& source, const PipelineOptions& options) {
  if (!options.id || options.retention_ms < 0) return {};
  const bool endless = source.redelivery_ms_max < 0 && !source.replayable;
  if (!endless && options.retention_ms >= source.redelivery_ms_max) return {};
  const std::string path =
      endless ? "at any time" : fmt::format("up to {} ms later", source.redelivery_ms_max);
  return refuse(fmt::format(
      "ids are remembered for {} ms, but the source {} can bring a message back {}. This would "
      "break it: message M takes effect; its ack is lost; its id is forgotten after {} ms; M is "
      "delivered again and nobody knows it. Set retention_ms (run.retention in a file) to at least "
      "the longest redelivery path, or to -1 (\"forever\") to remember for ever",
      options.retention_ms, source.name, path, options.retention_ms));
}

// Each parked message would come again as a new one, be parked again, and so on without end.
Status verify_dead_letters(const SourceTraits& source, const PipelineOptions& options) {
  if (options.park_to.empty()) return {};
  if (options.park_to != source.name) return {};
  return refuse(
      fmt::format("parked messages would go to {}, from which this pipeline reads: each "
                  "would come again without end. Park them to another topic",
                  source.name));
}

std::string_view survives(StoreTraits::Durability durability) {
  switch (durability) {
    case StoreTraits::Durability::none: return "until this process ends";
    case StoreTraits::Durability::process: return "also if processes die";
    case StoreTraits::Durability::power: return "also if processes die or the power fails";
  }
  return "";
}

std::string promise_of(const StoreTraits& store, const PipelineOptions& options) {
  switch (options.semantics) {
    case Semantics::at_most_once:
      return fmt::format("at most once: a message that is under way in a crash is lost, {}",
                         survives(store.durability));
    case Semantics::at_least_once:
      return fmt::format("at least once: a message that is under way in a crash is repeated, {}",
                         survives(store.durability));
    case Semantics::effectively_once: break;
  }
  if (options.id)
    return fmt::format("effectively once per id ({}), {}", options.id->text(),
                       survives(store.durability));
  return fmt::format(
      "effectively once per delivery, {}: the position tells redeliveries; a message that is sent "
      "twice counts twice",
      survives(store.durability));
}

std::string text_of_span(std::int64_t span_ms) {
  constexpr std::int64_t minute_ms = 60'000;
  constexpr std::int64_t hour_ms = 60 * minute_ms;
  constexpr std::int64_t day_ms = 24 * hour_ms;
  const auto counted = [span_ms](std::int64_t unit_ms, std::string_view unit) {
    const std::int64_t count = span_ms / unit_ms;
    return fmt::format("{} {}{}", count, unit, count == 1 ? "" : "s");
  };
  if (span_ms >= day_ms) return counted(day_ms, "day");
  if (span_ms >= hour_ms) return counted(hour_ms, "hour");
  if (span_ms >= minute_ms) return counted(minute_ms, "minute");
  return counted(1000, "second");
}

bool recognises_always(const SinkTraits& sink) {
  return sink.recognises != Recognises::none && sink.recognises_ms < 0;
}

// Less is weaker.
bool is_weaker(const SinkTraits& a, const SinkTraits& b) {
  const auto strength = [](const SinkTraits& sink) {
    if (sink.recognises == Recognises::none) return std::int64_t{-1};
    return recognises_always(sink) ? std::numeric_limits<std::int64_t>::max() : sink.recognises_ms;
  };
  return strength(a) < strength(b);
}

// What the weakest destination takes away from the promise; nothing if all recognise resends for as
// long as their data is there.
std::string weakest_sink(std::span<const SinkTraits> sinks) {
  const auto weakest = std::min_element(sinks.begin(), sinks.end(), is_weaker);
  if (weakest == sinks.end() || recognises_always(*weakest)) return "";
  if (weakest->recognises == Recognises::none)
    return fmt::format(
        "; {} does not recognise resends: a crash can leave a copy there, which has the same id, "
        "so its consumers need a ledger",
        weakest->name);
  return fmt::format("; {} recognises resends{} for {}", weakest->name,
                     weakest->recognises == Recognises::by_id ? " by their ids" : "",
                     text_of_span(weakest->recognises_ms));
}

}  // namespace

Result<std::string> verify(const SourceTraits& source, const StoreTraits& store,
                           const Handler& handler, const PipelineOptions& options,
                           std::span<const SinkTraits> sinks) {
  ONCE_TRY(verify_options(options));
  ONCE_TRY(verify_handler(store, handler));
  ONCE_TRY(verify_effect(handler, options));
  ONCE_TRY(verify_dead_letters(source, options));
  if (options.semantics == Semantics::effectively_once) {
    ONCE_TRY(verify_identity(source, options));
    ONCE_TRY(verify_retention(source, options));
  }
  return promise_of(store, options) + weakest_sink(sinks);
}

}  // namespace once
