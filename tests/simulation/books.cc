// SPDX-License-Identifier: Apache-2.0
#include "simulation/books.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <sstream>

namespace once::simulation {
namespace {

// All that the store knows of one purpose.
struct Books {
  std::map<std::string, int> effects;                       // by id
  std::map<std::string, std::vector<std::int64_t>> trails;  // offsets by partition
  std::map<std::string, std::vector<std::string>> parked;   // reasons by id
};

Books read_books(Context& context, const std::string& scope) {
  Books books;
  const MemoryState state = context.memory.snapshot();
  const std::string effects = effect_key(scope, ""), trails = trail_key(scope, "");
  for (const auto& [key, value] : state.values) {
    if (key.starts_with(effects)) books.effects[key.substr(effects.size())] = std::stoi(value);
    if (!key.starts_with(trails)) continue;
    std::istringstream words(value);
    std::int64_t offset = 0;
    while (words >> offset) books.trails[key.substr(trails.size())].push_back(offset);
  }
  const auto parked = context.memory.records()->parked(scope, 0, 1'000'000).value();
  for (const ParkedRecord& record : parked)
    books.parked[record.message.id].push_back(record.reason);
  return books;
}

class Auditor {
 public:
  Auditor(Context& context, const Purpose& purpose, const std::vector<Record>& records)
      : context_(context),
        purpose_(purpose),
        records_(records),
        books_(read_books(context, purpose.options.scope)) {}

  void check() {
    std::map<std::string, int> copies;
    for (const Record& record : records_) ++copies[record.message.id];
    std::set<std::string> seen;
    for (const Record& record : records_)
      if (seen.insert(record.message.id).second)
        check_id(record.message, copies.at(record.message.id));
    for (const auto& [id, count] : books_.effects)
      if (!copies.contains(id))
        violate(fmt::format("I9: {} has {} effects, but no record", id, count));
    if (purpose_.options.semantics == Semantics::effectively_once) check_trails();
  }

  const std::map<std::string, int>& effects() const { return books_.effects; }

 private:
  void violate(std::string text) {
    context_.history.violate(fmt::format("{}: {}", purpose_.options.scope, text));
  }

  void check_id(const Message& message, int copies) {
    const auto found = books_.effects.find(message.id);
    const int count = found == books_.effects.end() ? 0 : found->second;
    const bool poison = message.body->starts_with('p');
    const bool excused = is_excused(message);
    if (poison && count != 0)
      violate(fmt::format("I9: {} was parked and has {} effects", message.id, count));
    const bool may_be_lost = purpose_.options.semantics == Semantics::at_most_once;
    if (poison && !excused && !may_be_lost)
      violate(fmt::format("I9: {} is poison and not parked", message.id));
    if (poison) return;
    if (message.body->starts_with('r') || message.body->starts_with('n')) {
      if (count != 0)
        violate(fmt::format("I9: {} was refused and has {} effects", message.id, count));
      return;
    }
    bool kept = true;
    switch (purpose_.options.semantics) {
      case Semantics::effectively_once: kept = count == 1 || (count == 0 && excused); break;
      case Semantics::at_least_once: kept = count >= 1 || excused; break;
      case Semantics::at_most_once: kept = count <= copies; break;
    }
    if (!kept)
      violate(fmt::format("I9: {} has {} effects from {} records", message.id, count, copies));
  }

  // A message without an effect is in order if it was set aside for a reason that is true.
  bool is_excused(const Message& message) {
    const auto found = books_.parked.find(message.id);
    if (found == books_.parked.end()) return false;
    for (const std::string& reason : found->second) {
      if (reason.find("horizon") == std::string::npos) return true;  // poison, or given up
      const std::int64_t retention_ms = purpose_.options.retention_ms;
      if (retention_ms >= 0 && message.timestamp_ms < context_.youngest_birth_ms - retention_ms) {
        context_.trace.reached("too old");
        return true;
      }
      violate(fmt::format("I8: {} was taken for too old: {}", message.id, reason));
    }
    return false;
  }

  void check_trails() {
    for (const auto& [partition, offsets] : books_.trails)
      for (std::size_t i = 1; i < offsets.size(); ++i)
        if (offsets[i] <= offsets[i - 1])
          violate(fmt::format("order: partition {} took effect at offset {} after {}", partition,
                              offsets[i], offsets[i - 1]));
  }

  Context& context_;
  const Purpose& purpose_;
  const std::vector<Record>& records_;
  const Books books_;
};

}  // namespace

void check_books(Context& context, Broker& broker, const std::vector<Purpose>& purposes,
                 const std::vector<std::string>& sent) {
  std::map<std::string, std::map<std::string, int>> copies;   // topic, id
  std::map<std::string, std::map<std::string, int>> effects;  // topic, id
  for (const Purpose& purpose : purposes) {
    const auto records = broker.read(purpose.topic);
    if (!records) return context.history.violate("a log cannot be read: " + records.error().text);
    for (const Record& record : *records) ++copies[purpose.topic][record.message.id];
    Auditor auditor(context, purpose, *records);
    auditor.check();
    effects[purpose.topic] = auditor.effects();
  }
  for (const std::string& id : sent)
    if (!copies["orders"].contains(id))
      context.history.violate(fmt::format("I1: {} was acknowledged and is in no record", id));
  // Each effect put one message into the outbox, and the relay sends each exactly once.
  for (const auto& [id, count] : effects["orders"])
    if (copies["points"]["next-" + id] != count)
      context.history.violate(fmt::format("outbox: {} has {} effects and {} messages", id, count,
                                          copies["points"]["next-" + id]));
}

}  // namespace once::simulation
