// SPDX-License-Identifier: Apache-2.0
#include "simulation/later_world.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>

#include "runtime/due_feed.h"
#include "runtime/lane.h"
#include "simulation/context.h"
#include "simulation/faulty_store.h"
#include "testing/effects.h"
#include "testing/script_source.h"

namespace once::simulation {
namespace {

constexpr int calm_rounds_max = 3000;
constexpr std::uint32_t attempts_max = 4;

class LaterWorld {
 public:
  explicit LaterWorld(const LaterOptions& options);
  LaterReport run();

 private:
  // One process: what a pipeline would do, without its threads. Only the owner delivers.
  struct Process {
    Process(Context& context, FaultyStore& store, const Handler& handler,
            const PipelineOptions& options)
        : lane({.store = store,
                .clock = context.clock,
                .handler = handler,
                .options = options,
                .counters = counters,
                .positions = options.order == Order::partition,
                .may_wait = &may_wait}),
          feed(store, context.clock, options, may_wait) {}

    Counters counters;
    std::atomic<bool> may_wait{false};
    Lane lane;
    DueFeed feed;
    bool delivers = false;
    std::size_t next = 0;  // to be delivered
    std::size_t due_batches = 0;
    bool dead = false;
  };

  void stir();
  void drive(Process& process);
  Status work(Process& process);
  void start(bool owner);
  void hasten();
  void interrupt();
  void calm_down();
  void check();
  bool is_by_key() const { return options_.order == Order::key; }
  Result<Outcome> handle(const Delivery& delivery, KeyValueTransaction& transaction);

  Context context_;
  FaultyStore store_;
  PipelineOptions options_;
  testing::ScriptSource source_;
  std::vector<std::string> ids_;
  std::set<std::string> hopeless_;
  Handler handler_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::uint32_t steps_;
  bool interrupted_ = false;
};

LaterWorld::LaterWorld(const LaterOptions& options)
    : context_(options.seed, options.verbose),
      store_(context_),
      handler_(each([this](const Delivery& delivery, KeyValueTransaction& transaction) {
        return handle(delivery, transaction);
      })),
      steps_(options.steps) {
  options_.scope = "shop";
  options_.id = IdRule{};
  options_.order = context_.random.chance(600) ? Order::key : Order::partition;
  options_.retry.backoff_ms_min = 1;
  options_.retry.backoff_ms_max = 20;
  options_.retention_ms = -1;
  options_.batch_count_max = 1 + context_.random.below(6);
  const std::size_t count = 10 + context_.random.below(20);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string id = fmt::format("{:03}", i);
    constexpr std::string_view kinds = "ooooollllx";
    const char kind = kinds[context_.random.below(kinds.size())];
    if (kind == 'x') hopeless_.insert(id);
    source_.add("p0", {.id = id,
                       .key = fmt::format("k{}", context_.random.below(3)),
                       .body = std::string(1, kind),
                       .headers = {},
                       .timestamp_ms = 1000});
    ids_.push_back(id);
  }
  context_.interrupt = [this] { interrupt(); };
}

Result<Outcome> LaterWorld::handle(const Delivery& delivery, KeyValueTransaction& transaction) {
  ONCE_TRY(testing::write_effect(delivery, transaction));
  if (context_.interrupt && context_.fault(100)) context_.interrupt();
  const bool put_off = delivery.body == "x" || (delivery.body == "l" && context_.fault(500));
  if (!put_off) return applied();
  context_.trace.note("{} is put off, attempt {}", delivery.id, delivery.attempt);
  context_.trace.reached("put off");
  const std::uint32_t max = delivery.body == "x" ? attempts_max : 0;
  return later("not yet", static_cast<std::int64_t>(context_.random.below(80)), max);
}

// Ordered by key, nothing fences lanes: the old owner has stopped before the new one begins.
void LaterWorld::start(bool owner) {
  if (processes_.size() > 4) return;
  auto process = std::make_unique<Process>(context_, store_, handler_, options_);
  process->delivers = owner;
  if (owner) {
    if (is_by_key())
      for (const auto& other : processes_) other->dead = other->dead || other->delivers;
    const auto position = store_.take("shop", "p0");
    if (!position || !process->feed.look()) return;
    process->lane.own("p0", *position);
    // Ordered by key, the position may lie behind: all comes again.
    const std::int64_t from = is_by_key() ? 0 : std::max<std::int64_t>(position->offset, 0);
    process->next = static_cast<std::size_t>(from);
    context_.trace.note("a new owner from {}", from);
  }
  processes_.push_back(std::move(process));
}

void LaterWorld::drive(Process& process) {
  try {
    const DeathAtPoint death(context_.fault(60) ? 1 + context_.random.below(8) : 0);
    if (const Status done = work(process); !done) {
      process.dead = true;
      context_.trace.note("a process ends: {}", done.error().tag);
      if (done.error().tag != "fenced")
        context_.history.violate("a lane stopped: " + done.error().text);
    }
  } catch (const SimulatedDeath&) {
    process.dead = true;
    context_.trace.reached("dies inside a step");
  }
}

Status LaterWorld::work(Process& process) {
  if (process.delivers && process.lane.batches_queued() < 3 && process.next < ids_.size()) {
    const std::size_t count = 1 + context_.random.below(5);
    process.lane.push(source_.batch("p0", process.next, count));
    process.next += count;
  }
  if (process.due_batches == 0) {
    auto due = process.feed.poll(context_.random.chance(300));
    if (due && *due) {
      context_.trace.note("{} are due", (*due)->deliveries.size());
      context_.trace.reached(process.delivers ? "owner handles what is due"
                                              : "another handles what is due");
      ++process.due_batches;
      process.lane.push(std::move(**due));
    }
  }
  const Lane::Step step = ONCE_TRY(process.lane.step());
  for (const Batch& batch : step.finished)
    if (Lane::is_deferred(batch)) --process.due_batches;
  return {};
}

void LaterWorld::hasten() {
  const auto waiting = store_.deferrals()->deferred("shop", 0, 3);
  if (!waiting || waiting->empty()) return;
  const std::int64_t number = waiting->back().number;
  if (store_.deferrals()->hasten("shop", std::span(&number, 1), "test"))
    context_.trace.reached("hastened");
}

// In the middle of a handler another process handles what is due.
void LaterWorld::interrupt() {
  if (interrupted_) return;
  interrupted_ = true;
  const DeathAtPoint none(0);
  Process rival(context_, store_, handler_, options_);
  for (int i = 0; i < 3 && !rival.dead; ++i) {
    auto due = context_.memory.deferrals()->due("shop", 4);
    if (!due || due->messages.empty()) break;
    context_.trace.reached("rival in the middle of a handler");
    drive(rival);
    context_.clock.step(1);
  }
  interrupted_ = false;
}

void LaterWorld::stir() {
  const std::size_t drawn = context_.random.below(100);
  if (drawn < 6) start(true);
  if (drawn >= 6 && drawn < 12) start(false);
  if (drawn >= 12 && drawn < 15) hasten();
  if (drawn >= 15 && drawn < 45)
    context_.clock.step(1 + static_cast<int>(context_.random.below(30)));
  if (drawn >= 45 && drawn < 47) {
    context_.clock.jump(static_cast<std::int64_t>(context_.random.below(100'000)));
    context_.trace.reached("clock jumps ahead");
  }
  if (drawn >= 47 && !processes_.empty())
    drive(*processes_[context_.random.below(processes_.size())]);
  std::erase_if(processes_, [](const auto& process) { return process->dead; });
}

// No more faults: all must come to an end, and nothing may wait for ever.
void LaterWorld::calm_down() {
  context_.calm = true;
  processes_.clear();
  start(true);
  for (int round = 0; round < calm_rounds_max; ++round) {
    if (processes_.empty() || !context_.history.violations().empty()) return;
    Process& last = *processes_.back();
    drive(last);
    context_.clock.step(10);
    const bool done = last.lane.idle() && last.next >= ids_.size();
    if (done && context_.memory.deferrals()->due("shop", 1).value().wait_ms < 0) return;
  }
  std::string waiting;
  const auto records = context_.memory.deferrals()->deferred("shop", 0, 100).value();
  for (const DeferredRecord& record : records)
    waiting += fmt::format(" {}({} {} {})", record.message.id, record.number,
                           record.message.key.value_or(""), record.due_ms);
  context_.history.violate("liveness: messages wait after the faults have stopped:" + waiting);
}

void LaterWorld::check() {
  const auto effects = testing::effects_of(context_.memory, "p0");
  std::map<std::string, int> counts;
  for (const std::string& id : effects) ++counts[id];
  std::set<std::string> parked;
  const auto records = context_.memory.records()->parked("shop", 0, 1000).value();
  for (const ParkedRecord& record : records) {
    if (!parked.insert(record.message.id).second)
      context_.history.violate(record.message.id + " is parked twice");
    if (record.attempts != attempts_max)
      context_.history.violate(
          fmt::format("{} is parked after {} attempts", record.message.id, record.attempts));
  }
  if (parked != hopeless_) context_.history.violate("not just what never succeeds is parked");
  for (const std::string& id : ids_) {
    const int expected = hopeless_.contains(id) ? 0 : 1;
    if (counts[id] != expected)
      context_.history.violate(fmt::format("{} has {} effects", id, counts[id]));
  }
  if (!is_by_key()) return;
  const Batch all = source_.batch("p0");
  std::map<std::string_view, std::string> last;  // by key
  for (const std::string& id : effects) {
    const Delivery& delivery = all.deliveries[static_cast<std::size_t>(std::stoi(id))];
    std::string& before = last[delivery.key];
    if (before > id)
      context_.history.violate(fmt::format("order: {} took effect after {}", id, before));
    before = id;
  }
}

LaterReport LaterWorld::run() {
  start(true);
  for (std::uint32_t i = 0; i < steps_ && context_.history.violations().empty(); ++i) stir();
  if (context_.history.violations().empty()) calm_down();
  if (context_.history.violations().empty()) check();
  processes_.clear();
  return {context_.history.violations(), context_.trace.hash(), context_.trace.reached()};
}

}  // namespace

LaterReport run_later_world(const LaterOptions& options) { return LaterWorld(options).run(); }

}  // namespace once::simulation
