// SPDX-License-Identifier: Apache-2.0
#include "simulation/consumer.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace once::simulation {
namespace {

Status add_one(KeyValueTransaction& values, const std::string& key, int count) {
  const auto old = ONCE_TRY(values.get(key));
  return values.put(key, std::to_string((old ? std::stoi(*old) : 0) + count));
}

Status add_word(KeyValueTransaction& values, const std::string& key, const std::string& word) {
  const auto old = ONCE_TRY(values.get(key));
  return values.put(key, old.value_or("") + word + " ");
}

}  // namespace

std::string effect_key(const std::string& scope, std::string_view id) {
  return fmt::format("effect/{}/{}", scope, id);
}

std::string trail_key(const std::string& scope, std::string_view partition) {
  return fmt::format("trail/{}/{}", scope, partition);
}

namespace {

// What one message does.
Result<Outcome> take_effect(Context& context, const Purpose& purpose, const Delivery& delivery,
                            KeyValueTransaction& values) {
  const char kind = delivery.body.empty() ? 'o' : delivery.body.front();
  if (kind == 'r') return rejected("not allowed");
  if (kind == 'n') return no_effect();
  const std::string& scope = purpose.options.scope;
  const std::string id(delivery.id);
  const bool twice = purpose.double_effect && delivery.offset == 1;
  ONCE_TRY(add_one(values, effect_key(scope, id), twice ? 2 : 1));
  ONCE_TRY(
      add_word(values, trail_key(scope, delivery.partition), fmt::format("{}", delivery.offset)));
  if (context.interrupt && context.fault(20)) context.interrupt();
  if (kind == 'p') return parked("poison");
  if (kind == 'f' && context.fault(300)) return retry("flaky");
  if (kind == 't' && context.fault(300)) throw std::runtime_error("thrown");
  if (purpose.forwards) {
    Message next;
    next.id = "next-" + id;
    next.key = std::string(delivery.key);
    next.body = "o";
    next.timestamp_ms = delivery.timestamp_ms;
    ONCE_TRY(values.enqueue("points", next));
  }
  return applied(kind == 'f' ? "a result" : "");
}

}  // namespace

Handler make_handler(Context& context, const Purpose& purpose) {
  if (purpose.batched)
    return batch([&](std::span<Work> work, KeyValueTransaction& values) -> Status {
      for (Work& one : work) {
        values.on_behalf_of(one.message);
        one.outcome = ONCE_TRY(take_effect(context, purpose, *one.delivery, values));
      }
      return {};
    });
  return each([&](const Delivery& delivery, KeyValueTransaction& values) {
    return take_effect(context, purpose, delivery, values);
  });
}

Consumer::Consumer(Context& context, FaultyStore& store, const Purpose& purpose,
                   std::uint64_t number, std::unique_ptr<testing::SimFiles> files,
                   std::unique_ptr<Source> source)
    : context_(context),
      store_(store),
      purpose_(purpose),
      number_(number),
      files_(std::move(files)),
      source_(std::move(source)),
      handler_(make_handler(context, purpose)),
      store_clock_(context.clock),
      lane_({.store = store,
             .clock = context.clock,
             .handler = handler_,
             .options = purpose.options,
             .counters = counters_,
             .positions = true,
             .store_clock = &store_clock_}),
      forgetter_(store, context.clock, purpose.options, store_clock_) {
  context_.trace.note("consumer {} of {} starts", number, purpose.options.scope);
}

Status Consumer::poll() {
  if (lane_.batches_queued() > 3) return {};
  auto polled = source_->poll(1 + context_.random.below(8), 0);
  if (!polled && polled.error().remedy != Remedy::stop) return {};  // the broker is away
  if (!polled && polled.error().tag != "dead")
    context_.history.violate("a consumer cannot read the log: " + polled.error().text);
  Batch batch = ONCE_TRY(std::move(polled));
  if (batch.event == Batch::Event::assigned) return assigned(batch.partition);
  if (batch.event != Batch::Event::messages) return {};
  at_end_ = batch.drained;
  if (batch.drained) {
    if (!ONCE_TRY(knows_the_log())) return {};
    for (const auto& [partition, fence] : fences_)
      if (const auto settled_ms = forgetter_.take_held_back(partition))
        lane_.drained(partition, *settled_ms);
    return {};
  }
  if (const Status same =
          witnesses_[std::string(batch.partition)].check(purpose_.options.scope, batch);
      !same) {
    context_.history.violate("the log is taken for another: " + same.error().text);
    return same;
  }
  if (batch.deliveries.empty()) return {};
  context_.trace.note("consumer {} gets {} of {} from {}", number_, batch.deliveries.size(),
                      batch.partition, batch.deliveries.front().offset);
  lane_.push(std::move(batch));
  return {};
}

Result<bool> Consumer::knows_the_log() {
  bool known = true;
  for (const auto& [partition, fence] : fences_) {
    auto checked =
        witnesses_[partition].check_end(purpose_.options.scope, *source_->replay(), partition);
    if (!checked && checked.error().tag != "dead")
      context_.history.violate("the end of the log is another's: " + checked.error().text);
    known = ONCE_TRY(std::move(checked)) && known;
  }
  return known;
}

Status Consumer::assigned(std::string_view partition) {
  const Position position = ONCE_TRY(store_.take(purpose_.options.scope, partition));
  ONCE_TRY(forgetter_.look());
  WitnessCheck& witness = witnesses_[std::string(partition)];
  witness = WitnessCheck(position, source_->traits(), partition);
  const Status sought = witness.seek(*source_->replay(), partition);
  if (!sought && sought.error().tag == "dead") return sought;
  if (!sought) {
    context_.history.violate(fmt::format("the position {} of {} {} is not in the log: {}",
                                         position.offset, purpose_.topic, partition,
                                         sought.error().text));
    return sought;
  }
  lane_.own(partition, position);
  fences_[std::string(partition)] = position.fence;
  forgetter_.own(partition);
  context_.trace.note("consumer {} owns {} from {} with fence {}", number_, partition,
                      position.offset, position.fence);
  return {};
}

Status Consumer::step() {
  const std::uint64_t rechecked = counters_.rechecked, committed = counters_.transactions;
  auto step = lane_.step();
  if (!step) {
    context_.trace.note("consumer {} ends: {}", number_, step.error().tag);
    if (step.error().tag != "fenced")
      context_.history.violate("a lane stopped: " + step.error().text);
    else if (!has_a_rival())
      context_.history.violate("a lane was fenced by nobody: " + step.error().text);
    else
      context_.trace.reached("zombie fenced");
    return fail(std::move(step).error());
  }
  if (counters_.rechecked != rechecked)
    context_.trace.reached(counters_.transactions != committed ? "recheck found it committed"
                                                               : "recheck found nothing");
  for (const Batch& batch : step->finished) ONCE_TRY(source_->ack(batch.deliveries));
  return {};
}

bool Consumer::has_a_rival() {
  return std::any_of(fences_.begin(), fences_.end(), [&](const auto& owned) {
    return context_.memory.position(purpose_.options.scope, owned.first)->fence != owned.second;
  });
}

Status Consumer::forget() {
  const auto forgotten = forgetter_.step(4);
  if (forgotten && forgotten->rows > 0) context_.trace.reached("ids forgotten");
  return {};
}

}  // namespace once::simulation
