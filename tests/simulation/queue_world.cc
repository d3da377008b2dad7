// SPDX-License-Identifier: Apache-2.0
#include "simulation/queue_world.h"

#include <algorithm>
#include <memory>
#include <set>

#include "runtime/lane.h"
#include "runtime/lease_keeper.h"
#include "simulation/context.h"
#include "simulation/faulty_store.h"
#include "testing/memory_queue.h"

namespace once::simulation {
namespace {

constexpr int calm_rounds_max = 20'000;
constexpr std::int64_t patience_ms = 3'600'000;  // how long a patient message waits

class QueueWorld {
 public:
  explicit QueueWorld(const QueueWorldOptions& options);
  QueueWorldReport run();

 private:
  // What a pipeline would do, without its threads.
  struct Process {
    Process(QueueWorld& world, std::uint64_t its_number)
        : number(its_number), source(world.queue_), keeper(source) {
      for (std::size_t i = 0; i < world.lane_count_; ++i)
        lanes.push_back(std::make_unique<Lane>(
            LaneParts{.store = world.store_,
                      .clock = world.context_.clock,
                      .handler = world.handler_,
                      .options = world.options_,
                      .counters = counters,
                      .positions = false,
                      .ordered = false,
                      .waiting_max = world.options_.waiting_max,
                      .gives_back = world.queue_->options().delay_ms_max > 0}));
    }

    bool idle() const {
      return std::all_of(lanes.begin(), lanes.end(), [](const auto& lane) { return lane->idle(); });
    }

    const std::uint64_t number;
    Counters counters;
    testing::QueueSource source;
    LeaseKeeper keeper;
    std::vector<std::unique_ptr<Lane>> lanes;
    bool stands_still = false;
    bool dead = false;
  };

  std::string key_of(std::string_view id) const { return fmt::format("effects of {}", id); }
  void send(char kind);
  void send_again();
  void start();
  void stir();
  void drive(Process& process);
  Status work(Process& process);
  void poll(Process& process);
  Status step(Process& process, Lane& lane);
  void interrupt();
  void settle_everything(const char* what, std::int64_t limit_ms);
  void check_patience();
  void check();
  Result<Outcome> handle(const Delivery& delivery, KeyValueTransaction& transaction);

  Context context_;
  FaultyStore store_;
  PipelineOptions options_;
  std::size_t lane_count_;
  std::shared_ptr<testing::MemoryQueue> queue_;
  std::vector<Message> sent_;      // each id once
  std::set<std::string> patient_;  // those that have asked for patience
  Handler handler_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::uint32_t steps_;
  std::uint64_t started_ = 0;
  bool interrupted_ = false;
};

testing::MemoryQueueOptions queue_options(testing::Random& random, std::size_t waiting) {
  testing::MemoryQueueOptions options;
  if (random.chance(500)) options.lease_ms = 200;
  if (random.chance(500)) options.delay_ms_max = 2 * patience_ms;
  if (random.chance(500)) options.unacknowledged_max = 2 * waiting + random.below(10);
  options.pick = [&random](std::size_t count) { return random.below(count); };
  return options;
}

QueueWorld::QueueWorld(const QueueWorldOptions& options)
    : context_(options.seed, options.verbose),
      store_(context_),
      lane_count_(1 + context_.random.below(3)),
      handler_(each([this](const Delivery& delivery, KeyValueTransaction& transaction) {
        return handle(delivery, transaction);
      })),
      steps_(options.steps) {
  options_.scope = "shop";
  options_.id = IdRule{};
  options_.retry.attempts_max = 4;
  options_.retry.backoff_ms_min = 1;
  options_.retry.backoff_ms_max = 20;
  options_.retention_ms = -1;
  options_.batch_count_max = 1 + context_.random.below(6);
  options_.waiting_max = 1 + context_.random.below(4);
  queue_ = std::make_shared<testing::MemoryQueue>(
      context_.clock, queue_options(context_.random, options_.waiting_max * lane_count_));
  context_.interrupt = [this] { interrupt(); };
}

void QueueWorld::send(char kind) {
  sent_.push_back({.id = fmt::format("{:03}", sent_.size()),
                   .key = std::nullopt,
                   .body = std::string(1, kind),
                   .headers = {},
                   .timestamp_ms = 1000});
  queue_->send(sent_.back());
}

// By its producer, which did not get the answer.
void QueueWorld::send_again() {
  if (sent_.empty()) return;
  queue_->send(sent_[context_.random.below(sent_.size())]);
  context_.trace.reached("sent twice");
}

Result<Outcome> QueueWorld::handle(const Delivery& delivery, KeyValueTransaction& transaction) {
  const std::string key = key_of(delivery.id);
  const auto old = ONCE_TRY(transaction.get(key));
  ONCE_TRY(transaction.put(key, old.value_or("") + "x"));
  if (context_.interrupt && context_.fault(50)) context_.interrupt();
  switch (delivery.body.front()) {
    case 'f':
      if (context_.fault(600))
        return retry("flaky", static_cast<std::int64_t>(context_.random.below(100)));
      break;
    case 'x': return retry("never");
    case 'r': return rejected("not allowed");
    case 'n': return no_effect();
    case 'p':
      if (patient_.emplace(delivery.id).second) return retry("patience", patience_ms);
      break;
    default: break;
  }
  return applied();
}

void QueueWorld::start() {
  if (processes_.size() >= 3) return;
  processes_.push_back(std::make_unique<Process>(*this, ++started_));
  context_.trace.note("process {} starts", started_);
}

void QueueWorld::drive(Process& process) {
  try {
    const DeathAtPoint death(context_.fault(40) ? 1 + context_.random.below(8) : 0);
    if (const Status done = work(process); !done) {
      process.dead = true;
      context_.history.violate("a lane stopped: " + done.error().text);
    }
  } catch (const SimulatedDeath&) {
    process.dead = true;
    context_.trace.reached("dies inside a step");
  }
}

Status QueueWorld::work(Process& process) {
  (void)process.keeper.step(context_.clock.ticks_ns());
  poll(process);
  return step(process, *process.lanes[context_.random.below(process.lanes.size())]);
}

// The lane that has least to do gets what comes.
void QueueWorld::poll(Process& process) {
  const auto lane = std::min_element(
      process.lanes.begin(), process.lanes.end(),
      [](const auto& a, const auto& b) { return a->batches_queued() < b->batches_queued(); });
  if ((*lane)->batches_queued() >= 3) return;
  Batch batch = process.source.poll(1 + context_.random.below(5), 0).value();
  if (batch.deliveries.empty()) return;
  process.keeper.took(batch.deliveries, context_.clock.ticks_ns());
  context_.trace.note("process {} gets {} of session {} from tag {}", process.number,
                      batch.deliveries.size(), batch.deliveries.front().session,
                      batch.deliveries.front().offset);
  for (const Delivery& delivery : batch.deliveries)
    if (delivery.attempt > 1) context_.trace.reached("delivered again");
  (*lane)->push(std::move(batch));
}

Status QueueWorld::step(Process& process, Lane& lane) {
  const Lane::Step step = ONCE_TRY(lane.step());
  if (lane.batches_held() > lane.batches_queued()) context_.trace.reached("waits apart");
  for (const Lane::GivenBack& message : step.given_back) {
    context_.trace.reached("given back");
    process.keeper.let_go(message.batch.deliveries);
    ONCE_TRY(process.source.release(message.batch.deliveries, message.delay_ms));
  }
  for (const Batch& batch : step.finished) {
    process.keeper.let_go(batch.deliveries);
    if (context_.fault(50)) {
      context_.trace.reached("ack lost");  // with its session
      process.source.disconnect();
    }
    ONCE_TRY(process.source.ack(batch.deliveries));
  }
  return {};
}

// In the middle of a handler another process has its turn.
void QueueWorld::interrupt() {
  if (interrupted_ || processes_.empty()) return;
  interrupted_ = true;
  const DeathAtPoint none(0);
  Process rival(*this, ++started_);
  for (int i = 0; i < 3 && !rival.dead; ++i) drive(rival);
  context_.trace.reached("rival in the middle of a handler");
  interrupted_ = false;
}

void QueueWorld::stir() {
  const std::size_t drawn = context_.random.below(100);
  constexpr std::string_view kinds = "ooooooffffxrn";
  if (drawn < 12) return send(kinds[context_.random.below(kinds.size())]);
  if (drawn < 14) return send_again();
  if (drawn < 17) return start();
  if (drawn < 35)
    return context_.clock.step(1 + static_cast<std::int64_t>(context_.random.below(60)));
  if (processes_.empty()) return;
  Process& process = *processes_[context_.random.below(processes_.size())];
  if (drawn < 37) {
    process.stands_still = !process.stands_still;
    if (!process.stands_still) context_.trace.reached("goes on after it stood still");
  } else if (drawn < 40) {
    context_.trace.reached("connection lost");
    process.source.disconnect();
  } else if (!process.stands_still) {
    drive(process);
  }
  std::erase_if(processes_, [](const auto& one) { return one->dead; });
}

// Without faults one process handles all that is there, before this time has passed.
void QueueWorld::settle_everything(const char* what, std::int64_t limit_ms) {
  const std::int64_t until_ms = context_.clock.ticks_ns() / 1'000'000 + limit_ms;
  for (int round = 0; round < calm_rounds_max; ++round) {
    Process& last = *processes_.back();
    drive(last);
    if (!context_.history.violations().empty()) return;
    if (round % 8 == 7) context_.clock.step(1);
    if (queue_->ready() + queue_->unacknowledged() == 0 && last.idle()) return;
    if (context_.clock.ticks_ns() / 1'000'000 >= until_ms) return;
  }
  context_.history.violate(fmt::format("liveness: {} ready, {} unacknowledged: {}", queue_->ready(),
                                       queue_->unacknowledged(), what));
}

// Messages that wait hold back no other.
void QueueWorld::check_patience() {
  const std::size_t count = 1 + context_.random.below(options_.waiting_max);
  for (std::size_t i = 0; i < count; ++i) send('p');
  settle_everything("they wait", 100);
  if (patient_.size() == count) context_.trace.reached("all have asked for patience");
  const std::size_t first = sent_.size();
  for (int i = 0; i < 10; ++i) send('o');
  settle_everything("they do not wait", 300);
  for (std::size_t i = first; i < sent_.size(); ++i)
    if (!context_.memory.snapshot().values.contains(key_of(sent_[i].id)))
      context_.history.violate(sent_[i].id + " was held back by messages that wait");
  // In steps that let leases be extended.
  for (std::int64_t passed_ms = 0; passed_ms < 2 * patience_ms; passed_ms += patience_ms / 10)
    for (int i = 0; i < 3; ++i) {
      context_.clock.step(i == 0 ? patience_ms / 10 : 1);
      drive(*processes_.back());
    }
  settle_everything("they have waited", patience_ms);
}

void QueueWorld::check() {
  const auto values = context_.memory.snapshot().values;
  std::map<std::string, int> parked;
  const auto records = context_.memory.records()->parked("shop", 0, 10'000).value();
  for (const ParkedRecord& record : records) ++parked[record.message.id];
  std::multiset<std::string> acknowledged;
  for (std::string& id : queue_->acknowledged()) acknowledged.insert(std::move(id));
  for (const Message& message : sent_) {
    const char kind = message.body->front();
    const bool has_effect = kind == 'o' || kind == 'f' || kind == 'p';
    const auto found = values.find(key_of(message.id));
    const std::size_t effects = found == values.end() ? 0 : found->second.size();
    const int parks = parked[message.id];
    // What fails too often is parked, flaky or not; it has its effect or a reason, never both.
    const bool right = kind == 'f' ? effects + static_cast<std::size_t>(parks) == 1
                                   : effects == (has_effect ? 1u : 0u) && parks == (kind == 'x');
    if (!right)
      context_.history.violate(fmt::format("{} ({}) has {} effects and is parked {} times",
                                           message.id, kind, effects, parks));
    if (acknowledged.count(message.id) == 0)
      context_.history.violate(message.id + " was never acknowledged");
  }
}

QueueWorldReport QueueWorld::run() {
  start();
  for (std::uint32_t i = 0; i < steps_ && context_.history.violations().empty(); ++i) stir();
  context_.calm = true;
  processes_.clear();
  start();
  if (context_.history.violations().empty())
    settle_everything("the faults have stopped", 3 * patience_ms);
  if (context_.history.violations().empty()) check_patience();
  if (context_.history.violations().empty()) check();
  processes_.clear();
  return {context_.history.violations(), context_.trace.hash(), context_.trace.reached()};
}

}  // namespace

QueueWorldReport run_queue_world(const QueueWorldOptions& options) {
  return QueueWorld(options).run();
}

}  // namespace once::simulation
