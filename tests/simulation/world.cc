// SPDX-License-Identifier: Apache-2.0
#include "simulation/world.h"

#include <once/outbox.h>

#include <algorithm>
#include <array>
#include <memory>

#include "log/topic.h"
#include "simulation/books.h"
#include "simulation/broker.h"
#include "simulation/consumer.h"
#include "simulation/sender.h"
#include "testing/memory_sink.h"

namespace once::simulation {
namespace {

constexpr int calm_rounds_max = 4000;

class World {
 public:
  explicit World(const WorldOptions& options);
  WorldReport run();

 private:
  using Action = void (World::*)();
  struct Choice {
    std::uint32_t weight;
    Action action;
  };

  void choose_settings();
  void make_messages();
  void stir();
  bool calm_down();
  bool all_done();

  void send();
  void crash_sender();
  void send_as_a_stranger();
  void deliver_late() { network_.deliver_late(); }
  void consume();
  void drive(Consumer& consumer);
  void start_consumer();
  Consumer* start_consumer_of(const Purpose& purpose);
  void crash_consumer();
  void run_relay();
  void restart_relay();
  void restart_broker();
  void cut_power() { broker_.stop(true); }
  void kill_broker() { broker_.stop(false); }
  void fail_a_sync();
  void fill_the_disk();
  void move_clock();
  void interrupt();
  void bury_the_dead();

  const WorldOptions options_;
  Context context_;
  std::map<std::string, TopicOptions> topics_;
  FaultyStore store_;
  Broker broker_;
  Network network_;
  RemoteSink orders_;
  RemoteSink points_;
  std::vector<Purpose> purposes_;
  std::vector<std::unique_ptr<Sender>> senders_;
  std::vector<std::unique_ptr<Consumer>> consumers_;
  std::uint64_t relays_started_ = 0;
  std::vector<std::unique_ptr<Relay>> relays_;  // the last is the present one, the others zombies
  std::uint64_t consumer_count_ = 0;
  bool interrupted_ = false;
};

std::map<std::string, TopicOptions> choose_topics(testing::Random& random) {
  TopicOptions orders;
  orders.partitions = static_cast<std::uint32_t>(1 + random.below(2));
  // With the smallest segments a group is often larger than a whole segment.
  constexpr std::array<std::int64_t, 4> sizes{1024, 1024, 4096, 64 << 10};
  orders.segment_bytes_max = sizes[random.below(sizes.size())];
  // So long that no message is old enough to go: retention must not delete anything.
  if (random.chance(500)) orders.retention_ms = 10LL * 365 * 86'400'000;
  TopicOptions points = orders;
  points.partitions = 1;
  orders.gaps = static_cast<GapPolicy>(random.below(3));
  return {{"orders", orders}, {"points", points}};
}

World::World(const WorldOptions& options)
    : options_(options),
      context_(options.seed, options.verbose),
      topics_(choose_topics(context_.random)),
      store_(context_),
      broker_(context_, topics_),
      network_(context_, broker_),
      orders_(network_, "orders"),
      points_(network_, "points") {
  choose_settings();
  make_messages();
  context_.interrupt = [this] { interrupt(); };
}

void World::choose_settings() {
  Purpose orders;
  orders.topic = "orders";
  orders.forwards = true;
  orders.double_effect = options_.canary == Canary::double_effect;
  orders.batched = context_.random.chance(300);
  orders.options.scope = "shop/orders";
  orders.options.id = IdRule{};
  orders.options.retry.backoff_ms_min = 1;
  orders.options.retry.backoff_ms_max = 50;
  orders.options.batch_count_max = 1 + context_.random.below(8);
  orders.options.retention_ms = context_.random.chance(400) ? 60 : -1;
  if (options_.canary == Canary::none && context_.random.chance(150)) {
    orders.options.semantics =
        context_.random.chance(500) ? Semantics::at_least_once : Semantics::at_most_once;
  }
  Purpose points = orders;
  points.topic = "points";
  points.forwards = false;
  points.double_effect = false;
  points.options.scope = "shop/points";
  purposes_ = {orders, points};
  if (options_.canary == Canary::lost_acknowledgement) network_.set_canary();
}

void World::make_messages() {
  const std::size_t sender_count = 1 + context_.random.below(2);
  for (std::size_t s = 0; s < sender_count; ++s) {
    std::vector<Message> messages(10 + context_.random.below(20));
    for (std::size_t i = 0; i < messages.size(); ++i) {
      messages[i].id = fmt::format("m{}-{}", s, i);
      messages[i].key = fmt::format("k{}", context_.random.below(5));
      constexpr std::string_view kinds = "oooooooooffttprn";
      messages[i].body = std::string(1, kinds[context_.random.below(kinds.size())]) +
                         std::string(context_.random.below(300), 'x');
    }
    const auto kind = static_cast<Sender::Kind>(context_.random.below(3));
    senders_.push_back(std::make_unique<Sender>(
        context_, network_, orders_, fmt::format("sender-{}", s), kind, std::move(messages)));
  }
}

void World::stir() {
  static constexpr Choice choices[] = {
      {120, &World::send},          {30, &World::deliver_late}, {250, &World::consume},
      {50, &World::run_relay},      {12, &World::crash_sender}, {25, &World::start_consumer},
      {12, &World::crash_consumer}, {8, &World::restart_relay}, {40, &World::restart_broker},
      {8, &World::cut_power},       {6, &World::kill_broker},   {3, &World::fail_a_sync},
      {4, &World::fill_the_disk},   {40, &World::move_clock},   {2, &World::send_as_a_stranger},
  };
  std::uint32_t sum = 0;
  for (const Choice& choice : choices) sum += choice.weight;
  std::size_t drawn = context_.random.below(sum);
  for (const Choice& choice : choices) {
    if (drawn < choice.weight) {
      (this->*choice.action)();
      break;
    }
    drawn -= choice.weight;
  }
  bury_the_dead();
}

void World::bury_the_dead() {
  std::erase_if(consumers_, [](const auto& consumer) { return !consumer->alive(); });
}

void World::send() { senders_[context_.random.below(senders_.size())]->step(); }

void World::crash_sender() { senders_[context_.random.below(senders_.size())]->crash(); }

// Who never entered has no business here.
void World::send_as_a_stranger() {
  if (!broker_.up()) return;
  const Message message{.id = "stranger", .key = "", .body = "o", .headers = {}, .timestamp_ms = 1};
  const Stamp stamp{.producer = 4711, .epoch = 1, .sequence = context_.random.below(2)};
  const auto answer = broker_.append({{{"orders", 0}, stamp, {message}}});
  if (answer) context_.history.violate("a producer that never entered was accepted");
}

// Half of the consumers are processes on the broker's machine that read its files; the others are
// elsewhere and ask the broker.
Consumer* World::start_consumer_of(const Purpose& purpose) {
  std::unique_ptr<testing::SimFiles> files;
  std::unique_ptr<Source> source;
  if (context_.random.chance(500)) {
    files = std::make_unique<testing::SimFiles>(context_.disk);
    auto opened = log::open_log_source(*files, log_directory, purpose.topic, {}, context_.clock);
    if (!opened) {
      context_.history.violate("a consumer cannot read the log: " + opened.error().text);
      return nullptr;
    }
    source = std::move(*opened);
  } else {
    source = std::make_unique<RemoteSource>(broker_, purpose.topic);
  }
  consumers_.push_back(std::make_unique<Consumer>(context_, store_, purpose, ++consumer_count_,
                                                  std::move(files), std::move(source)));
  return consumers_.back().get();
}

// The others are zombies as soon as the new one owns their partitions.
void World::start_consumer() {
  if (consumers_.size() > 5) return;
  start_consumer_of(purposes_[context_.random.below(purposes_.size())]);
}

void World::consume() {
  if (consumers_.empty()) return;
  drive(*consumers_[context_.random.below(consumers_.size())]);
}

void World::drive(Consumer& consumer) {
  try {
    const DeathAtPoint death(context_.fault(60) ? 1 + context_.random.below(12) : 0);
    Status done = consumer.poll();
    if (done) done = consumer.step();
    if (done && context_.random.chance(200)) done = consumer.forget();
    if (!done) consumer.kill();
  } catch (const SimulatedDeath&) {
    context_.trace.reached("consumer dies inside a step");
    consumer.kill();
  }
}

void World::crash_consumer() {
  if (consumers_.empty()) return;
  consumers_[context_.random.below(consumers_.size())]->kill();
}

// In the middle of somebody's handler a rival takes the partitions and works.
void World::interrupt() {
  if (interrupted_ || consumers_.size() > 8) return;
  interrupted_ = true;
  context_.trace.reached("rival in the middle of a handler");
  const DeathAtPoint none(0);
  Consumer* rival = start_consumer_of(purposes_[context_.random.below(purposes_.size())]);
  for (int i = 0; rival != nullptr && i < 4 && rival->alive(); ++i) drive(*rival);
  interrupted_ = false;
}

void World::run_relay() {
  if (relays_.empty()) restart_relay();
  const std::size_t index = context_.random.below(relays_.size());
  try {
    const DeathAtPoint death(context_.fault(80) ? 1 + context_.random.below(4) : 0);
    const auto sent = relays_[index]->step();
    context_.trace.note("relay {} sends {}", index, sent ? "ok" : sent.error().tag.c_str());
    if (sent && !relays_[index]->state().sender.empty()) context_.trace.reached("relay stands by");
    if (sent) return;
    if (sent.error().remedy == Remedy::stop)
      relays_.erase(relays_.begin() + static_cast<std::ptrdiff_t>(index));
  } catch (const SimulatedDeath&) {
    context_.trace.reached("relay dies between two steps");
    relays_.erase(relays_.begin() + static_cast<std::ptrdiff_t>(index));
  }
}

void World::restart_relay() {
  RelayOptions options;
  options.name = "relay";
  options.owner = fmt::format("relay {}", ++relays_started_);
  options.batch_count_max = 1 + context_.random.below(6);
  if (relays_.size() > 1) relays_.erase(relays_.begin());
  auto made = Relay::make(
      store_, [this](std::string_view) { return testing::shared(points_); }, options,
      context_.clock);
  relays_.push_back(std::move(*made));
}

void World::restart_broker() {
  if (!broker_.up()) broker_.start();
}

void World::fail_a_sync() { context_.disk.fail_next_sync(); }

void World::fill_the_disk() {
  const auto room = static_cast<std::int64_t>(context_.random.below(6000));
  context_.disk.set_space_bytes_max(
      context_.random.chance(500) ? -1 : context_.disk.used_bytes() + room);
}

void World::move_clock() {
  if (context_.fault(150)) {
    const auto hours = static_cast<std::int64_t>(context_.random.below(200)) - 50;
    context_.clock.jump(hours * 3'600'000);
    context_.trace.reached(hours < 0 ? "clock jumps back" : "clock jumps ahead");
  }
  context_.clock.step(static_cast<std::int64_t>(1 + context_.random.below(60)));
}

bool World::all_done() {
  for (const auto& sender : senders_)
    if (!sender->done()) return false;
  if (!context_.memory.outbox()->destinations().value().empty()) return false;
  if (consumers_.size() != purposes_.size()) return false;
  return std::all_of(consumers_.begin(), consumers_.end(),
                     [](const auto& consumer) { return consumer->idle() && consumer->at_end(); });
}

// No more faults: every message must reach its end in a bounded number of rounds.
bool World::calm_down() {
  context_.calm = true;
  context_.trace.note("calm");
  context_.disk.set_space_bytes_max(-1);
  context_.disk.fail_next_sync(false);
  broker_.stop(false);
  bury_the_dead();
  broker_.start();
  consumers_.clear();
  relays_.clear();
  for (const Purpose& purpose : purposes_) start_consumer_of(purpose);
  for (int round = 0; round < calm_rounds_max; ++round) {
    if (!context_.history.violations().empty()) return true;
    for (const auto& sender : senders_) sender->step();
    run_relay();
    for (const auto& consumer : consumers_) drive(*consumer);
    context_.clock.step(10);
    if (round % 8 == 0 && all_done()) return true;
  }
  return false;
}

WorldReport World::run() {
  for (std::uint32_t i = 0; i < options_.steps && context_.history.violations().empty(); ++i)
    stir();
  if (context_.history.violations().empty() && !calm_down())
    context_.history.violate("liveness: work is left after the faults have stopped");
  if (context_.history.violations().empty()) broker_.check_logs();
  std::vector<std::string> sent;
  for (const auto& sender : senders_)
    for (std::string& id : sender->acknowledged_ids()) sent.push_back(std::move(id));
  if (context_.history.violations().empty()) check_books(context_, broker_, purposes_, sent);
  context_.interrupt = nullptr;
  WorldReport report;
  report.violations = context_.history.violations();
  report.trace_hash = context_.trace.hash();
  report.events = context_.trace.events();
  report.reached = context_.trace.reached();
  return report;
}

}  // namespace

WorldReport run_world(const WorldOptions& options) { return World(options).run(); }

}  // namespace once::simulation
