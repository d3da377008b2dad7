// SPDX-License-Identifier: Apache-2.0
#include "simulation/topic_world.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <set>

#include "log/topic_log.h"
#include "simulation/context.h"

namespace once::simulation {
namespace {

constexpr std::uint32_t partitions = 3;
constexpr const char* name = "shop";

class TopicWorld {
 public:
  explicit TopicWorld(std::uint64_t seed) : context_(seed, false) {
    testing::SimFiles files(context_.disk);
    TopicOptions options;
    options.partitions = partitions;
    options.segment_bytes_max = 1024;
    if (!log::create_topic(files, "data", "t", options, random())) violate("cannot be made");
  }

  std::vector<std::string> run() {
    for (int i = 0; i < 60 && violations_.empty(); ++i) live();
    context_.calm = true;
    if (violations_.empty()) live();
    return violations_;
  }

 private:
  // One process from its start to its death.
  void live() {
    testing::SimFiles files(context_.disk);
    std::unique_ptr<log::TopicLog> topic;
    bool power_cut = context_.fault(500);
    try {
      const DeathAtPoint death(context_.fault(300) ? 1 + context_.random.below(8) : 0);
      files.die_at(context_.fault(500) ? 1 + context_.random.below(40) : 0);
      auto opened = log::TopicLog::open(files, "data", "t", context_.clock, random());
      if (!opened) return violate("cannot be opened: " + opened.error().text);
      topic = std::move(*opened);
      check(*topic);
      work(*topic);
    } catch (const SimulatedDeath&) {
      power_cut = context_.random.chance(600);
    }
    files.kill();
    topic.reset();
    if (power_cut) context_.disk.power_cut();
  }

  void work(log::TopicLog& topic) {
    std::optional<log::Identity> identity;
    const std::size_t steps = context_.random.below(12);
    for (std::size_t i = 0; i < steps; ++i) {
      const auto number = static_cast<std::uint32_t>(context_.random.below(partitions));
      if (context_.random.chance(200)) {
        const auto stamp = topic.enter(number, name);
        if (stamp) see({stamp->producer, stamp->epoch}, false);
        identity.reset();
        continue;
      }
      if (!identity) {
        const auto entered = topic.enter_topic(name);
        if (!entered) return violate("cannot enter: " + entered.error().text);
        see(*entered, true);
        identity = *entered;
      }
      const auto stamp = topic.admit(number, name, *identity);
      if (!stamp) return violate("is not admitted: " + stamp.error().text);
      send(topic, number, *stamp);
    }
  }

  // Message n of a partition has the sequence n, as a batch and as a message.
  void send(log::TopicLog& topic, std::uint32_t number, const Stamp& stamp) {
    const std::vector<Message> message{{.id = fmt::format("{}", stamp.sequence)}};
    const auto verdict = topic.append(number, log::Append{.stamp = stamp, .messages = message});
    if (!verdict) return violate("is refused: " + verdict.error().text);
    acknowledged_[number] = std::max(acknowledged_[number], stamp.sequence + 1);
  }

  void see(const log::Identity& identity, bool of_topic) {
    if (id_ == 0) id_ = identity.id;
    if (identity.id != id_) violate(fmt::format("the id was {:x} and is {:x}", id_, identity.id));
    if (of_topic && !epochs_.insert(identity.epoch).second)
      violate(fmt::format("epoch {} was given twice", identity.epoch));
  }

  void check(log::TopicLog& topic) {
    for (std::uint32_t i = 0; i < partitions; ++i) {
      log::GroupCommit& partition = **topic.partition(i);
      const std::int64_t end = partition.info().end_offset;
      std::int64_t offset = 0;
      while (offset < end) {
        const auto located = partition.locate(offset, 1000);
        const auto loaded = located ? log::load(*located) : fail(located.error());
        if (!loaded) return violate("cannot be read: " + loaded.error().text);
        log::Deliveries decoded;
        for (const std::string_view batch : loaded->batches)
          (void)log::decode_batch(batch, {}, true, decoded);
        for (const Delivery& delivery : decoded.deliveries)
          if (delivery.id != fmt::format("{}", offset++))
            return violate(fmt::format("partition {} has {} at {}", i, delivery.id, offset - 1));
      }
      if (offset < static_cast<std::int64_t>(acknowledged_[i]))
        violate(fmt::format("partition {} has lost message {}", i, offset));
    }
  }

  log::Random random() {
    return [this] { return context_.random.next(); };
  }
  void violate(std::string text) { violations_.push_back(std::move(text)); }

  Context context_;
  std::uint64_t id_ = 0;
  std::set<std::uint32_t> epochs_;  // of the topic
  std::map<std::uint32_t, std::uint64_t> acknowledged_;
  std::vector<std::string> violations_;
};

}  // namespace

std::vector<std::string> run_topic_world(std::uint64_t seed) { return TopicWorld(seed).run(); }

}  // namespace once::simulation
