// SPDX-License-Identifier: Apache-2.0
#include "testing/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/failpoint.h"
#include "model/message_view.h"
#include "runtime/due_feed.h"
#include "runtime/lane.h"
#include "testing/guarded_store.h"

namespace once::testing {
namespace {

constexpr std::string_view partition_name = "kit";
constexpr std::int64_t start_ms = 1'700'000'000'000;
constexpr std::int64_t lease_ms = 10;      // by the user's store, whose clock is a real one
constexpr std::size_t steps_max = 10'000;  // of a lane, for one batch
constexpr std::size_t lives_max = 100;
constexpr std::size_t names_max = 12;  // of delivered messages, in a line for people

// Time that passes when a lane waits.
class WaitedClock final : public Clock {
 public:
  std::int64_t now_ms() override { return start_ms + ticks_ns_ / 1'000'000; }
  std::int64_t ticks_ns() override { return ticks_ns_; }
  void pass(std::int64_t ms) { ticks_ns_ += ms * 1'000'000; }

 private:
  std::int64_t ticks_ns_ = 1;
};

// While it lives, calls to the store are made for this message.
class Handling {
 public:
  Handling(Fate& fate, std::string_view id) : fate_(fate) { fate_.handling(id); }
  ~Handling() { fate_.handling({}); }
  Handling(const Handling&) = delete;
  Handling& operator=(const Handling&) = delete;

 private:
  Fate& fate_;
};

Delivery delivery_of(const Message& message) {
  Delivery delivery;
  delivery.partition = partition_name;
  delivery.id = message.id;
  delivery.key = view_of(message.key);
  delivery.body = view_of(message.body);
  delivery.timestamp_ms = message.timestamp_ms == 0 ? start_ms : message.timestamp_ms;
  return delivery;
}

// One schedule. The store stays, processes come and go.
class World {
 public:
  World(const Plan& plan, const std::vector<std::string>& ids, const Script& script)
      : plan_(plan),
        ids_(ids),
        script_(script),
        options_(plan.options),
        fate_(script.misfortune, script.seed) {
    for (const Message& message : plan.messages) headers_.push_back(header_views(message));
    // What is injected is no fault of a message and must not park it.
    options_.retry.attempts_max += static_cast<std::uint32_t>(script.misfortune.faults_max) + 1;
  }

  Result<Run> play();

 private:
  Status live_and_die();
  Status live();
  Result<std::unique_ptr<Claims>> open_claims(Store& store, const Handler& handler);
  Result<Position> take(Store& store);
  void deliver(Lane& lane, std::size_t from, std::size_t end);
  Status drain(Lane& lane);
  Status handle_waiting(Lane& lane);
  void wait(std::int64_t ms);

  Handler watched(const Handler& handler);
  Handler watched_outside(Outside outside);
  std::string_view id_of(const Delivery& delivery) const {
    return ids_[script_.log[static_cast<std::size_t>(delivery.offset)]];
  }

  const Plan& plan_;
  const std::vector<std::string>& ids_;
  const Script& script_;
  PipelineOptions options_;
  std::vector<std::vector<HeaderView>> headers_;  // by message
  std::unique_ptr<Store> store_;
  WaitedClock clock_;
  Fate fate_;
  bool real_time_ = false;  // leases have to run out
  Run run_;
};

Result<Run> World::play() {
  store_ = ONCE_TRY(plan_.fresh_store());
  const Status done = live_and_die();
  if (!done) run_.stopped = done.error().text;
  run_.effects = ONCE_TRY(plan_.effects(*store_));
  run_.calls = fate_.calls();
  run_.deaths = fate_.deaths();
  run_.faults = fate_.faults();
  run_.steps = fate_.steps();
  return std::move(run_);
}

Status World::live_and_die() {
  for (std::size_t lives = 0; lives < lives_max; ++lives) {
    Status done;
    try {
      done = live();
    } catch (const SimulatedDeath&) {  // what it had in memory is gone
    }
    if (!fate_.dead()) return done;
    fate_.live_again();
    fate_.handling({});
  }
  return fail(Remedy::stop, "stuck", fmt::format("not done after {} lives", lives_max));
}

Status World::live() {
  GuardedStore store(*store_, fate_);
  const Handler handler = watched(plan_.handler());
  const auto claims = ONCE_TRY(open_claims(store, handler));
  Counters counters;
  // Lanes that share a partition leave its position alone: only ids tell what was handled.
  const bool positions = options_.order == Order::partition;
  Lane lane({.store = store,
             .clock = clock_,
             .handler = handler,
             .options = options_,
             .counters = counters,
             .positions = positions,
             .claims = claims.get()});
  const Position position = ONCE_TRY(take(store));
  lane.own(partition_name, position);
  std::size_t next = position.offset < 0 ? 0 : static_cast<std::size_t>(position.offset);
  fate_.note(fmt::format("the process starts; the position is {}", next));
  while (next < script_.log.size()) {
    const std::size_t end = std::min(next + script_.batch_count, script_.log.size());
    deliver(lane, next, end);
    if (script_.redelivery == Redelivery::twice) deliver(lane, next, end);
    if (script_.redelivery == Redelivery::from_start) deliver(lane, 0, end);
    ONCE_TRY(drain(lane));
    next = end;
  }
  return handle_waiting(lane);
}

// What the handler has put off is due as soon as nothing else is left.
Status World::handle_waiting(Lane& lane) {
  Deferrals* const deferrals = store_->deferrals();
  for (std::size_t rounds = 0; deferrals != nullptr; ++rounds) {
    const auto waiting = ONCE_TRY(deferrals->deferred(options_.scope, 0, steps_max));
    if (waiting.empty()) break;
    if (rounds == steps_max)
      return fail(Remedy::stop, "stuck", fmt::format("messages wait after {} attempts", steps_max));
    std::vector<std::int64_t> numbers;
    for (const DeferredRecord& record : waiting) numbers.push_back(record.number);
    ONCE_TRY(deferrals->hasten(options_.scope, numbers, "the test kit does not wait"));
    fate_.note(fmt::format("{} messages that waited are due", numbers.size()));
    lane.push(due_batch(ONCE_TRY(deferrals->due(options_.scope, steps_max)).messages));
    ONCE_TRY(drain(lane));
  }
  return {};
}

Result<std::unique_ptr<Claims>> World::open_claims(Store& store, const Handler& handler) {
  if (!handler.outside()) return std::unique_ptr<Claims>();
  real_time_ = true;
  ClaimsOptions options;
  options.owner = "kit";
  options.lease_ms = handler.outside()->lease_ms;
  options.after_loss = handler.outside()->after_loss;
  options.resolver = handler.outside()->ask;
  options.renew_in_background = false;
  return Claims::make(store, std::move(options), clock_);
}

// A store that is away is waited for.
Result<Position> World::take(Store& store) {
  for (std::size_t tries = 0; tries < steps_max; ++tries) {
    auto position = store.take(options_.scope, partition_name);
    if (position || position.error().remedy != Remedy::retry) return position;
    wait(1);
  }
  return fail(Remedy::stop, "stuck", "the partition could not be taken");
}

void World::deliver(Lane& lane, std::size_t from, std::size_t end) {
  Batch batch;
  batch.partition = partition_name;
  std::string names;
  for (std::size_t offset = from; offset < end; ++offset) {
    const std::size_t message = script_.log[offset];
    Delivery delivery = delivery_of(plan_.messages[message]);
    delivery.offset = static_cast<std::int64_t>(offset);
    delivery.headers = headers_[message];
    batch.deliveries.push_back(delivery);
    if (offset - from < names_max) names += fmt::format(" \"{}\"", ids_[message]);
  }
  batch.end_offset = static_cast<std::int64_t>(end);
  if (end - from > names_max) names += fmt::format(" and {} more", end - from - names_max);
  fate_.note(fmt::format("delivered, from offset {}:{}", from, names));
  lane.push(std::move(batch));
}

Status World::drain(Lane& lane) {
  for (std::size_t steps = 0; !lane.idle(); ++steps) {
    if (steps == steps_max)
      return fail(Remedy::stop, "stuck",
                  fmt::format("a batch was not done after {} attempts", steps_max));
    const Lane::Step step = ONCE_TRY(lane.step());
    if (step.wait_ms > 0) wait(step.wait_ms);
  }
  return {};
}

// After a wait all leases have run out, however fast this machine is: so the same seed gives the
// same schedule.
void World::wait(std::int64_t ms) {
  clock_.pass(ms);
  if (real_time_) std::this_thread::sleep_for(std::chrono::milliseconds(lease_ms + 1));
}

// The user's handler, with what it says written down.
Handler World::watched(const Handler& handler) {
  if (handler.outside()) return watched_outside(*handler.outside());
  if (handler.batched())
    return {handler.needs(), Handler::Batched([this, inner = handler.batched()](
                                                  std::span<Work> work, Transaction& transaction) {
              const Handling handling(fate_, fmt::format("a batch of {}", work.size()));
              Status done = inner(work, transaction);
              for (const Work& one : work)
                run_.outcomes[std::string(id_of(*one.delivery))] = one.outcome.kind;
              return done;
            })};
  return {handler.needs(), Handler::Each([this, inner = handler.each()](const Delivery& delivery,
                                                                        Transaction& transaction) {
            const Handling handling(fate_, id_of(delivery));
            Result<Outcome> outcome = inner(delivery, transaction);
            if (outcome) run_.outcomes[std::string(id_of(delivery))] = outcome->kind;
            return outcome;
          })};
}

Handler World::watched_outside(Outside outside) {
  outside.lease_ms = lease_ms;
  outside.run = [this, inner = std::move(outside.run)](const Delivery& delivery,
                                                       Ticket& ticket) -> Result<Outcome> {
    if (fate_.dead()) throw SimulatedDeath{};
    const Handling handling(fate_, id_of(delivery));
    Result<Outcome> outcome = inner(delivery, ticket);
    if (outcome) run_.outcomes[std::string(id_of(delivery))] = outcome->kind;
    if (fate_.next(Call::answer, "the effect outside") == Fault::death) throw SimulatedDeath{};
    return outcome;
  };
  return Handler(std::move(outside));
}

}  // namespace

Result<std::vector<std::string>> ids_of(const Plan& plan) {
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < plan.messages.size(); ++i) {
    const Message& message = plan.messages[i];
    Delivery delivery = delivery_of(message);
    const std::vector<HeaderView> headers = header_views(message);
    delivery.headers = headers;
    delivery.offset = static_cast<std::int64_t>(i);
    ids.push_back(plan.options.id ? ONCE_TRY(plan.options.id->id_of(delivery)) : message.id);
    if (ids.back().empty())
      return fail(Remedy::stop, "config",
                  fmt::format("message {} has no id, by which its effects could be told", i));
  }
  return ids;
}

Result<Run> play(const Plan& plan, const std::vector<std::string>& ids, const Script& script) {
  return World(plan, ids, script).play();
}

}  // namespace once::testing
