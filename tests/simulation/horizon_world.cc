// SPDX-License-Identifier: Apache-2.0
#include "simulation/horizon_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <set>

#include "runtime/forgetter.h"
#include "runtime/lane.h"
#include "runtime/witness.h"
#include "simulation/faulty_store.h"

namespace once::simulation {
namespace {

constexpr std::int64_t retention_ms = 1000;
constexpr int calm_rounds_max = 6000;
const std::string scope = "shop";

// What stands in a message's body: what its handler does.
constexpr char plain = 'o';
constexpr char flaky = 'f';   // is retried for longer than ids are remembered
constexpr char closed = 'n';  // has no effect until its door is open
constexpr char door = 'd';    // opens it
constexpr char future = '!';  // its birth is wrong

struct Topic {
  // Messages of each partition; a deque, so that views of them stay valid while it grows.
  std::map<std::string, std::deque<Message>> partitions;
  // Offsets of no message: ends of transactions, and what was compacted.
  std::map<std::string, std::set<std::int64_t>> holes;
  bool compacted = false;

  void end_transaction(const std::string& partition) {
    auto& messages = partitions.at(partition);
    holes[partition].insert(static_cast<std::int64_t>(messages.size()));
    messages.emplace_back();
  }
};

// A member's view of the partitions that it has.
class TopicSource final : public Source, public SourceReplay {
 public:
  explicit TopicSource(const std::shared_ptr<Topic>& topic) : topic_(topic) {}

  SourceReplay* replay() override { return this; }
  SourceTraits traits() const override {
    SourceTraits traits{.name = "topic:", .ordered = true, .replayable = true};
    for (const auto& [name, messages] : topic_->partitions) traits.partitions.push_back(name);
    if (topic_->compacted) traits.compacted = traits.partitions;
    return traits;
  }
  Result<Batch> poll(std::size_t count_max, std::int64_t) override {
    Batch batch;
    for (auto& [name, next] : next_) {
      const auto found = topic_->partitions.find(name);
      const auto end = static_cast<std::int64_t>(found->second.size());
      if (next >= end) continue;
      batch.partition = found->first;
      for (; next < end && batch.deliveries.size() < count_max; ++next) {
        const Message& message = found->second[static_cast<std::size_t>(next)];
        if (topic_->holes[name].contains(next)) continue;
        Delivery delivery;
        delivery.partition = found->first;
        delivery.offset = next;
        delivery.id = message.id;
        delivery.body = *message.body;
        delivery.timestamp_ms = message.timestamp_ms;
        batch.deliveries.push_back(delivery);
      }
      if (batch.deliveries.empty()) continue;
      batch.end_offset = batch.deliveries.back().offset + 1;
      batch.memory = topic_;
      return batch;
    }
    batch.drained = true;
    return batch;
  }
  Status ack(std::span<const Delivery>) override { return {}; }
  Status release(std::span<const Delivery>, std::int64_t) override { return {}; }
  Status seek(std::string_view partition, std::int64_t offset) override {
    const auto found = topic_->partitions.find(std::string(partition));
    if (offset > static_cast<std::int64_t>(found->second.size()))
      return fail(Remedy::stop, "gone", fmt::format("\"{}\" does not reach that far", partition));
    next_[found->first] = std::max<std::int64_t>(0, offset);
    return {};
  }
  void give_back(const std::string& partition) { next_.erase(partition); }

 private:
  std::shared_ptr<Topic> topic_;
  std::map<std::string, std::int64_t> next_;
};

std::string count_key(std::string_view id) { return fmt::format("count/{}", id); }
std::string door_key(std::string_view id) { return fmt::format("door/{}", id); }

// A process: the real lane and forgetter, with a clock of its own.
class Member {
 public:
  Member(Context& context, FaultyStore& store, const std::shared_ptr<Topic>& topic,
         const PipelineOptions& options, const Handler& handler, std::uint64_t number)
      : context_(context),
        store_(store),
        number_(number),
        source_(topic),
        store_clock_(clock_),
        lane_({.store = store,
               .clock = clock_,
               .handler = handler,
               .options = options,
               .counters = counters_,
               .store_clock = &store_clock_}),
        forgetter_(store, clock_, options, store_clock_) {}

  // Takes a partition. An error: the store is away, or the topic is another.
  Status own(const std::string& partition) {
    const SourceTraits traits = source_.traits();
    forgetter_.set_topic(traits.partitions);
    forgetter_.own(partition);
    ONCE_TRY(forgetter_.look());
    const Position position = ONCE_TRY(store_.take(scope, partition, traits.identity));
    WitnessCheck& witness = witnesses_[partition];
    witness = WitnessCheck(position, traits, partition);
    ONCE_TRY(witness.seek(source_, partition));
    lane_.own(partition, position);
    owned_.insert(partition);
    context_.trace.note("member {} owns {} from {}", number_, partition, position.offset);
    return {};
  }
  void disown(const std::string& partition) {
    source_.give_back(partition);
    lane_.disown(partition);
    forgetter_.disown(partition);
    owned_.erase(partition);
  }

  // A little of everything. Any error is the end of the process.
  Status work() {
    if (context_.random.chance(100)) forgetter_.confirm_topic(source_.traits().partitions);
    if (lane_.batches_queued() < 3) ONCE_TRY(poll());
    const auto step = lane_.step();
    if (!step) return fail(step.error());
    if (context_.random.chance(300)) {
      const auto forgotten = forgetter_.step(4);
      if (forgotten && forgotten->rows > 0) context_.trace.reached("ids forgotten");
    }
    return {};
  }

  const std::set<std::string>& owned() const { return owned_; }
  testing::SimClock& clock() { return clock_; }
  std::uint64_t number() const { return number_; }

 private:
  Status poll() {
    Batch batch = ONCE_TRY(source_.poll(1 + context_.random.below(6), 0));
    if (batch.drained) {
      for (const std::string& partition : owned_)
        if (!ONCE_TRY(witnesses_[partition].check_end(scope, *source_.replay(), partition)))
          return {};
      for (const std::string& partition : owned_)
        if (const auto settled_ms = forgetter_.take_held_back(partition)) {
          lane_.drained(partition, *settled_ms);
          context_.trace.reached("an idle partition follows the others");
        }
      return {};
    }
    ONCE_TRY(witnesses_[std::string(batch.partition)].check(scope, batch));
    if (!batch.deliveries.empty()) lane_.push(std::move(batch));
    return {};
  }

  Context& context_;
  FaultyStore& store_;
  const std::uint64_t number_;
  testing::SimClock clock_;
  TopicSource source_;
  Counters counters_;
  StoreClock store_clock_;
  Lane lane_;
  Forgetter forgetter_;
  std::map<std::string, WitnessCheck> witnesses_;
  std::set<std::string> owned_;
};

class HorizonWorld {
 public:
  explicit HorizonWorld(const HorizonOptions& options)
      : options_(options),
        context_(options.seed, options.verbose),
        store_(context_),
        topic_(std::make_shared<Topic>()),
        handler_(make_handler()) {
    pipeline_.scope = scope;
    pipeline_.id = IdRule{};
    pipeline_.retention_ms = retention_ms;
    pipeline_.batch_count_max = 1 + context_.random.below(8);
    pipeline_.retry = {.attempts_max = 1'000'000, .backoff_ms_min = 1, .backoff_ms_max = 50};
    make_topic(2 + context_.random.below(3));
    topic_->compacted = context_.random.chance(150);
  }

  HorizonReport run() {
    for (std::uint32_t i = 0; i < options_.steps && fine(); ++i) stir();
    if (fine()) calm_down();
    if (fine()) check_horizon_moves();
    if (fine()) end_where_the_last_message_was();
    if (fine()) check_books();
    return {context_.history.violations(), context_.trace.events(), context_.trace.hash(),
            context_.trace.reached()};
  }

 private:
  using Action = void (HorizonWorld::*)();
  struct Choice {
    std::uint32_t weight;
    Action action;
  };
  struct Sent {
    Message message;
    std::string partition;
    std::int64_t offset = 0;  // of its first copy
    std::uint32_t topic = 0;
  };

  bool fine() const { return context_.history.violations().empty(); }

  Handler make_handler() {
    return each([this](const Delivery& delivery, KeyValueTransaction& values) -> Result<Outcome> {
      const char kind = delivery.body.front();
      if (kind == closed && !ONCE_TRY(values.get(door_key(delivery.body.substr(1)))))
        return no_effect();
      if (kind == door) ONCE_TRY(values.put(door_key(delivery.body.substr(1)), "open"));
      const std::string key = count_key(delivery.id);
      const auto old = ONCE_TRY(values.get(key));
      ONCE_TRY(values.put(key, std::to_string((old ? std::stoi(*old) : 0) + 1)));
      const bool early = true_ms_ < delivery.timestamp_ms + 3 * retention_ms;
      if (kind == flaky && early && !context_.calm) return retry("not yet", 20);
      return applied();
    });
  }

  void make_topic(std::size_t partitions) {
    ++topics_;
    topic_ = std::make_shared<Topic>();
    for (std::size_t i = 0; i < partitions; ++i) topic_->partitions[fmt::format("p{}", i)];
  }

  std::string any_partition() {
    auto at = topic_->partitions.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(context_.random.below(topic_->partitions.size())));
    return at->first;
  }

  void append(const std::string& partition, const std::string& id, std::string body,
              std::int64_t born_ms) {
    auto& messages = topic_->partitions.at(partition);
    const auto offset = static_cast<std::int64_t>(messages.size());
    messages.push_back({.id = id, .body = std::move(body), .timestamp_ms = born_ms});
    sent_.push_back({messages.back(), partition, offset, topics_});
    context_.trace.note("{} goes to {} at {}", id, partition, offset);
  }
  std::string next_id() { return fmt::format("m{}", ++ids_); }

  void send() {
    const std::string partition = any_partition();
    const std::size_t count = 1 + context_.random.below(4);
    for (std::size_t i = 0; i < count; ++i)
      append(partition, next_id(), std::string(1, context_.random.chance(60) ? flaky : plain),
             true_ms_);
    if (context_.random.chance(300)) topic_->end_transaction(partition);
  }
  // The first comes too early; its copy comes behind what it waited for.
  void send_in_the_wrong_order() {
    const std::string partition = any_partition(), id = next_id();
    append(partition, id, closed + id, true_ms_);
    append(partition, next_id(), door + id, true_ms_);
    append(partition, id, closed + id, true_ms_);
    context_.trace.reached("copy of a message without effect");
  }
  void send_from_the_future() {
    append(any_partition(), next_id(), std::string(1, future),
           context_.random.chance(500) ? 4'070'908'800'000 : true_ms_ * 1000);
    context_.trace.reached("message from the future");
  }
  void resend() {
    if (sent_.empty()) return;
    const Sent again = sent_[context_.random.below(sent_.size())];
    if (again.topic != topics_ || again.message.body != std::string(1, plain)) return;
    topic_->partitions.at(again.partition).push_back(again.message);
    context_.trace.reached("resent");
  }

  void pass_time(std::int64_t ms) {
    true_ms_ += ms;
    context_.clock.step(ms);
    for (const auto& member : members_) member->clock().step(ms);
  }
  void wait() { pass_time(static_cast<std::int64_t>(1 + context_.random.below(100))); }
  void jump_a_clock() {
    const auto jump = static_cast<std::int64_t>(context_.random.below(7'200'000)) - 3'600'000;
    if (members_.empty() || context_.random.chance(300)) {
      context_.clock.jump(jump);
      context_.trace.reached("the store's clock jumps");
    } else {
      members_[context_.random.below(members_.size())]->clock().jump(jump);
      context_.trace.reached("a member's clock jumps");
    }
  }
  // Everybody is down for longer than ids are remembered; producers go on.
  void be_down() {
    members_.clear();
    for (int i = 0; i < 6; ++i) {
      pass_time(retention_ms);
      send();
    }
    context_.trace.reached("downtime");
  }

  void start_member() {
    if (members_.size() > 2) return;
    members_.push_back(
        std::make_unique<Member>(context_, store_, topic_, pipeline_, handler_, ++member_count_));
    rebalance();
  }
  void kill_member() {
    if (members_.empty()) return;
    members_.erase(members_.begin() +
                   static_cast<std::ptrdiff_t>(context_.random.below(members_.size())));
    rebalance();
  }
  // Partitions are dealt out anew; who loses one is told before the next owner takes it.
  void rebalance() {
    if (members_.empty()) return;
    std::map<std::string, Member*> wanted;
    std::size_t turn = context_.random.below(members_.size());
    for (const auto& [name, messages] : topic_->partitions)
      wanted[name] = members_[turn++ % members_.size()].get();
    for (const auto& member : members_)
      for (const std::string& partition : std::set<std::string>(member->owned()))
        if (wanted.at(partition) != member.get()) member->disown(partition);
    for (const auto& [name, member] : wanted)
      if (!member->owned().contains(name)) own(*member, name);
  }
  void own(Member& member, const std::string& partition) {
    const Status owned = member.own(partition);
    if (owned) return;
    context_.trace.note("member {} cannot own {}: {}", member.number(), partition,
                        owned.error().tag);
    if (owned.error().tag == "gone") repair(partition);
  }
  // What the error says: the topic was created again, and is to be read from its first message.
  void repair(const std::string& partition) {
    if (!recreated_.contains(partition))
      context_.history.violate(fmt::format("{} is taken for another topic", partition));
    recreated_.erase(partition);
    context_.trace.reached("a topic made anew is noticed");
    // A person tries until it is done.
    while (!context_.memory.repairs()->correct(scope, SetPosition{partition, -1}, "made anew")) {
    }
  }
  // A partition is added, and taken by a member before the others know of it. What is in it is not
  // older than what is remembered.
  void add_partition() {
    if (topic_->partitions.size() > 5) return;
    const std::string name = fmt::format("p{}", topic_->partitions.size());
    topic_->partitions[name];
    if (!context_.memory.take(scope, name)) return;
    const std::int64_t horizon_ms = context_.memory.records()->horizon_ms(scope).value();
    const std::int64_t born_ms = std::max(horizon_ms, true_ms_ - 3 * retention_ms);
    for (std::size_t i = context_.random.below(5); i > 0; --i)
      append(name, next_id(), std::string(1, plain), born_ms);
    context_.trace.reached("partition added");
    if (context_.random.chance(500)) rebalance();
  }
  // The store is restored from an older copy, under members that go on. What the copy does not have
  // is read again, since the position is older, too. A topic keeps what a copy may need.
  void back_up() {
    backup_ = context_.memory.snapshot();
    backup_recreated_ = recreated_;
    backup_topic_ = topics_;
  }
  void go_back() {
    if (!backup_ || backup_topic_ != topics_ || topic_->compacted) return;
    context_.memory.restore(*backup_);
    recreated_ = backup_recreated_;
    context_.trace.reached("the store goes back");
    // Who has nothing to commit does not notice.
    for (const auto& [name, messages] : topic_->partitions)
      append(name, next_id(), std::string(1, plain), true_ms_);
  }
  // A message that was handled goes, and older ones stay.
  void compact() {
    if (!topic_->compacted) return;
    const std::string partition = any_partition();
    const std::int64_t done = context_.memory.position(scope, partition)->offset;
    if (done <= 0) return;
    const auto below =
        static_cast<std::int64_t>(context_.random.chance(700) ? 1 : context_.random.below(5));
    const std::int64_t offset = std::max<std::int64_t>(0, done - below);
    if (offset >= done) return;
    topic_->holes[partition].insert(offset);
    context_.trace.reached("a handled message is compacted");
  }
  // Where messages vanish, a topic that was made anew cannot be told from one that has lost some.
  void create_topic_again() {
    if (topics_ > 3 || topic_->compacted || !all_done()) return;
    wait();
    make_topic(topic_->partitions.size());
    for (const auto& [name, messages] : topic_->partitions)
      if (context_.memory.position(scope, name)->offset >= 0) recreated_.insert(name);
    const std::size_t bursts = context_.random.below(40);
    for (std::size_t i = 0; i < bursts; ++i) send();
    members_.clear();
    start_member();
    context_.trace.reached("topic created again");
  }

  // The new topic has no message where the last handled one was, nor behind it.
  void end_where_the_last_message_was() {
    if (topic_->compacted) return;
    const std::size_t partitions = topic_->partitions.size();
    make_topic(partitions);
    for (const auto& [name, messages] : topic_->partitions) {
      const std::int64_t end = context_.memory.position(scope, name)->offset;
      if (end <= 0) continue;
      for (std::int64_t i = 1; i < end; ++i)
        append(name, next_id(), std::string(1, plain), true_ms_);
      topic_->end_transaction(name);
      recreated_.insert(name);
    }
    members_.clear();
    calm_down();
  }

  void drive() {
    if (members_.empty()) return start_member();
    drive(context_.random.below(members_.size()));
  }
  // One member goes on for a while, the others stand still.
  void favour_one() {
    if (members_.empty()) return;
    const std::uint64_t favourite = members_[context_.random.below(members_.size())]->number();
    for (int i = 0; i < 30; ++i) {
      const auto at = std::find_if(members_.begin(), members_.end(), [&](const auto& member) {
        return member->number() == favourite;
      });
      if (at == members_.end()) return;
      drive(static_cast<std::size_t>(at - members_.begin()));
      wait();
    }
    context_.trace.reached("one member is ahead of the others");
  }
  void drive(std::size_t index) {
    Member& member = *members_[index];
    const Status worked = member.work();
    if (worked) return;
    context_.trace.note("member {} ends: {}", member.number(), worked.error().tag);
    if (worked.error().tag == "gone")
      for (const std::string& partition : std::set<std::string>(member.owned()))
        if (worked.error().text.find('"' + partition + '"') != std::string::npos) repair(partition);
    members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(index));
    rebalance();
  }

  void stir() {
    static constexpr Choice choices[] = {
        {300, &HorizonWorld::drive},
        {100, &HorizonWorld::send},
        {60, &HorizonWorld::wait},
        {20, &HorizonWorld::send_in_the_wrong_order},
        {6, &HorizonWorld::send_from_the_future},
        {15, &HorizonWorld::resend},
        {15, &HorizonWorld::start_member},
        {8, &HorizonWorld::kill_member},
        {8, &HorizonWorld::favour_one},
        {5, &HorizonWorld::jump_a_clock},
        {4, &HorizonWorld::be_down},
        {6, &HorizonWorld::create_topic_again},
        {20, &HorizonWorld::compact},
        {6, &HorizonWorld::add_partition},
        {8, &HorizonWorld::back_up},
        {5, &HorizonWorld::go_back},
    };
    std::uint32_t sum = 0;
    for (const Choice& choice : choices) sum += choice.weight;
    auto drawn = static_cast<std::uint32_t>(context_.random.below(sum));
    for (const Choice& choice : choices) {
      if (drawn < choice.weight) return (this->*choice.action)();
      drawn -= choice.weight;
    }
  }

  bool all_done() {
    return std::all_of(
        topic_->partitions.begin(), topic_->partitions.end(), [this](const auto& partition) {
          const std::int64_t done = context_.memory.position(scope, partition.first)->offset;
          const auto end = static_cast<std::int64_t>(partition.second.size());
          for (std::int64_t next = std::max<std::int64_t>(0, done); next < end; ++next)
            if (!topic_->holes[partition.first].contains(next)) return false;
          return true;
        });
  }

  void calm_down() {
    context_.calm = true;
    for (int round = 0; round < calm_rounds_max && fine(); ++round) {
      drive();
      pass_time(5);
      if (round % 50 == 0) rebalance();
      if (round % 16 == 0 && all_done() && recreated_.empty()) return;
    }
    if (fine()) context_.history.violate("liveness: work is left after the faults have stopped");
  }

  // Traffic in one partition, none in the others: ids are forgotten all the same.
  void check_horizon_moves() {
    const std::int64_t start_ms = true_ms_;
    while (true_ms_ < start_ms + 20 * retention_ms && fine()) {
      append(topic_->partitions.begin()->first, next_id(), std::string(1, plain), true_ms_);
      for (int i = 0; i < 20; ++i) {
        drive();
        pass_time(10);
      }
    }
    for (int i = 0; i < 200 && fine(); ++i) drive();
    const std::int64_t horizon_ms = context_.memory.records()->horizon_ms(scope).value();
    const std::int64_t store_ms = context_.clock.now_ms();
    const std::int64_t reachable_ms = std::min(true_ms_, store_ms) - retention_ms;
    if (horizon_ms < reachable_ms - 10 * retention_ms)
      context_.history.violate(
          fmt::format("the horizon is held back: it is {} at {}", horizon_ms, reachable_ms));
  }

  void check_books() {
    std::map<std::string, std::vector<std::string>> parked;  // reasons by place
    const auto rows = context_.memory.records()->parked(scope, 0, 1'000'000).value();
    for (const ParkedRecord& row : rows) parked[row.message.id].push_back(row.reason);
    const MemoryState state = context_.memory.snapshot();
    std::set<std::string> seen;
    for (const Sent& sent : sent_) {
      const std::string& id = sent.message.id;
      if (!seen.insert(id).second) continue;
      const auto found = state.values.find(count_key(id));
      const int count = found == state.values.end() ? 0 : std::stoi(found->second);
      const bool wrong_birth = sent.message.body->front() == future;
      const std::vector<std::string>& reasons = parked[id];
      const bool told = std::any_of(reasons.begin(), reasons.end(), [](const std::string& reason) {
        return reason.find("ahead of the store's clock") != std::string::npos;
      });
      if (wrong_birth && (count != 0 || !told))
        context_.history.violate(fmt::format("{} is from the future and was not parked", id));
      if (!wrong_birth && count != 1)
        context_.history.violate(fmt::format("{} has {} effects{}", id, count,
                                             reasons.empty() ? "" : ": " + reasons.front()));
    }
  }

  const HorizonOptions options_;
  Context context_;
  FaultyStore store_;
  PipelineOptions pipeline_;
  std::shared_ptr<Topic> topic_;
  std::uint32_t topics_ = 0;
  Handler handler_;
  std::vector<std::unique_ptr<Member>> members_;
  std::uint64_t member_count_ = 0;
  std::uint64_t ids_ = 0;
  std::int64_t true_ms_ = 1'700'000'000'000;  // the time of producers, whose clocks are right
  std::vector<Sent> sent_;
  std::optional<MemoryState> backup_;
  std::set<std::string> backup_recreated_;  // as then
  std::uint32_t backup_topic_ = 0;
  std::set<std::string> recreated_;  // partitions whose position belongs to a topic that is gone
};

}  // namespace

HorizonReport run_horizon_world(const HorizonOptions& options) {
  return HorizonWorld(options).run();
}

}  // namespace once::simulation
