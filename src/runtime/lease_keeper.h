// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/source.h>

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

namespace once {

// Extends the leases of deliveries for as long as they are worked on or wait. One that runs out all
// the same, since the poller was held up, is delivered again; the ledger detects that. Used by one
// thread.
class LeaseKeeper {
 public:
  // A source without leases needs nothing. `source` outlives it.
  explicit LeaseKeeper(Source& source)
      : leases_(source.leases()), lease_ms_(source.traits().lease_ms) {}

  void took(std::span<const Delivery> deliveries, std::int64_t now_ns) {
    if (leases_ == nullptr) return;
    for (const Delivery& delivery : deliveries) held_[name_of(delivery)] = next_ns(now_ns);
  }
  void let_go(std::span<const Delivery> deliveries) {
    if (leases_ == nullptr) return;
    for (const Delivery& delivery : deliveries) held_.erase(name_of(delivery));
  }

  // Another owns the partition, or nobody does.
  void drop(std::string_view partition) {
    std::erase_if(held_,
                  [partition](const auto& held) { return held.first.partition == partition; });
  }

  // To be called often. After an error what was due is due again.
  [[nodiscard]] Status step(std::int64_t now_ns) {
    if (leases_ == nullptr || now_ns < look_at_ns_) return {};
    look_at_ns_ = next_ns(now_ns, 10);
    std::vector<Delivery> due;
    for (const auto& [name, due_ns] : held_)
      if (due_ns <= now_ns) due.push_back(delivery_of(name));
    if (due.empty()) return {};
    const Status extended = leases_->extend(due);
    if (!extended) return extended;
    for (const Delivery& delivery : due) held_[name_of(delivery)] = next_ns(now_ns);
    return {};
  }

 private:
  struct Name {
    std::string_view partition;
    std::uint64_t session = 0;
    std::int64_t offset = 0;

    auto operator<=>(const Name&) const = default;
  };

  static Name name_of(const Delivery& delivery) {
    return {delivery.partition, delivery.session, delivery.offset};
  }
  static Delivery delivery_of(const Name& name) {
    Delivery delivery;
    delivery.partition = name.partition;
    delivery.session = name.session;
    delivery.offset = name.offset;
    return delivery;
  }
  // A third of the lease leaves time for two more tries.
  std::int64_t next_ns(std::int64_t now_ns, std::int64_t parts = 3) const {
    return now_ns + lease_ms_ * 1'000'000 / parts;
  }

  SourceLeases* const leases_;
  const std::int64_t lease_ms_;
  std::map<Name, std::int64_t> held_;  // and when the lease of each is to be extended
  std::int64_t look_at_ns_ = 0;
};

}  // namespace once
