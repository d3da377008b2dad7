// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <once/outbox.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "base/assert.h"
#include "base/failpoint.h"

namespace once {
namespace {

class OutboxRelay final : public Relay {
 public:
  OutboxRelay(Store& store, SinkFor sink_for, RelayOptions options)
      : store_(store),
        outbox_(*store.outbox()),
        sink_for_(std::move(sink_for)),
        options_(std::move(options)) {}

  Result<std::size_t> step() override {
    std::size_t sent = 0;
    for (const std::string& destination : ONCE_TRY(outbox_.destinations()))
      if (is_mine(destination)) sent += ONCE_TRY(send(destination));
    return sent;
  }

 private:
  bool is_mine(const std::string& destination) const {
    const auto& chosen = options_.destinations;
    if (chosen.empty()) return !destination.starts_with("once.");
    return std::find(chosen.begin(), chosen.end(), destination) != chosen.end();
  }

  // Where the rows of one destination go, and as whom.
  struct Target {
    Sink* sink = nullptr;
    std::uint32_t partitions = 0;
    std::uint64_t fence = 0;
    std::map<std::uint32_t, Stamp> stamps;  // by partition; producer and epoch
  };

  Result<Target*> target(const std::string& destination) {
    if (const auto found = targets_.find(destination); found != targets_.end())
      return &found->second;
    Target fresh;
    fresh.sink = ONCE_TRY(sink_for_(destination));
    fresh.partitions = ONCE_TRY(fresh.sink->partitions());
    fresh.fence = ONCE_TRY(store_.take(relay_scope, destination)).fence;
    return &targets_.emplace(destination, std::move(fresh)).first->second;
  }

  Result<Stamp> stamp(Target& target, std::uint32_t partition) {
    if (const auto found = target.stamps.find(partition); found != target.stamps.end())
      return found->second;
    const Stamp stamp = ONCE_TRY(target.sink->enter(partition, options_.name));
    target.stamps.emplace(partition, stamp);
    return stamp;
  }

  // A row is given its route first, then sent, then removed. Dying in between, the next relay
  // finds the route in the row and sends the same message with the same stamp.
  Result<std::size_t> send(const std::string& destination) {
    Target& to = *ONCE_TRY(target(destination));
    auto rows = ONCE_TRY(outbox_.pending(destination, options_.batch_count_max));
    if (ONCE_TRY(assign_routes(destination, to, rows)))
      rows = ONCE_TRY(outbox_.pending(destination, options_.batch_count_max));

    std::map<std::uint32_t, std::vector<OutboxRow*>> by_partition;
    for (OutboxRow& row : rows)
      if (row.route) by_partition[row.route->partition].push_back(&row);
    std::size_t sent = 0;
    for (auto& [partition, of_partition] : by_partition) {
      ONCE_TRY(append_runs(to, partition, of_partition));
      ONCE_POINT(relay_after_append);
      std::vector<std::int64_t> numbers;
      for (const OutboxRow* row : of_partition) numbers.push_back(row->number);
      ONCE_TRY(outbox_.sent(destination, to.fence, numbers));
      ONCE_POINT(relay_after_sent);
      sent += numbers.size();
    }
    return sent;
  }

  // Whether any row was without a route.
  Result<bool> assign_routes(const std::string& destination, const Target& to,
                             const std::vector<OutboxRow>& rows) {
    std::vector<std::int64_t> numbers;
    std::vector<std::uint32_t> partitions;
    for (const OutboxRow& row : rows) {
      if (row.route) continue;
      numbers.push_back(row.number);
      partitions.push_back(partition_of(row.message, to.partitions));
    }
    if (numbers.empty()) return false;
    ONCE_TRY(outbox_.assign(destination, to.fence, numbers, partitions));
    ONCE_POINT(relay_after_assign);
    return true;
  }

  // One append per run of consecutive sequences; normally that is one in all.
  Status append_runs(Target& to, std::uint32_t partition, const std::vector<OutboxRow*>& rows) {
    std::size_t begin = 0;
    while (begin < rows.size()) {
      std::size_t end = begin + 1;
      while (end < rows.size() && rows[end]->route->sequence == rows[end - 1]->route->sequence + 1)
        ++end;
      std::vector<Message> messages;
      messages.reserve(end - begin);
      for (std::size_t i = begin; i < end; ++i) messages.push_back(std::move(rows[i]->message));
      Stamp first = ONCE_TRY(stamp(to, partition));
      first.sequence = rows[begin]->route->sequence;
      ONCE_TRY(to.sink->append(partition, first, messages));
      begin = end;
    }
    return {};
  }

  Store& store_;
  Outbox& outbox_;
  SinkFor sink_for_;
  RelayOptions options_;
  std::map<std::string, Target, std::less<>> targets_;
};

}  // namespace

Result<std::unique_ptr<Relay>> Relay::make(Store& store, SinkFor sink_for, RelayOptions options) {
  if (store.outbox() == nullptr)
    return fail(Remedy::stop, "config",
                fmt::format("the store {} has no outbox, so there is nothing to relay",
                            store.traits().name));
  if (options.name.empty())
    return fail(Remedy::stop, "config",
                "a relay needs a name: its identity as a producer, the same after every restart");
  if (options.batch_count_max == 0)
    return fail(Remedy::stop, "config", "the relay's batch_count_max must be at least 1");
  return std::make_unique<OutboxRelay>(store, std::move(sink_for), std::move(options));
}

}  // namespace once
