// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/claims.h>
#include <once/outbox.h>
#include <once/store.h>

#include <functional>
#include <utility>

namespace once::simulation {

// A store as one relay process sees it, on a bad line: calls do not arrive, or their answers get
// lost; once the process is dead, nothing it does arrives.
class ProcessStore final : public Store, private Outbox, private ClaimStore {
 public:
  using Fault = std::function<Status(const char* what, Remedy remedy)>;

  ProcessStore(Store& store, Fault fault) : store_(store), fault_(std::move(fault)) {}
  void die() { dead_ = true; }

  StoreTraits traits() const override { return store_.traits(); }
  Result<std::unique_ptr<Transaction>> begin(std::string_view scope) override {
    return ask([&] { return store_.begin(scope); });
  }
  Result<Position> take(std::string_view scope, std::string_view partition,
                        std::string_view source_identity = {}) override {
    return ask([&] { return store_.take(scope, partition, source_identity); });
  }
  Result<Position> position(std::string_view scope, std::string_view partition) override {
    return ask([&] { return store_.position(scope, partition); });
  }
  Result<Forgotten> forget(std::string_view scope, std::int64_t horizon_ms,
                           std::size_t rows_max) override {
    return ask([&] { return store_.forget(scope, horizon_ms, rows_max); });
  }
  Outbox* outbox() override { return this; }
  ClaimStore* claims() override { return this; }

 private:
  Result<std::vector<std::string>> destinations() override {
    return ask([&] { return store_.outbox()->destinations(); });
  }
  Result<std::vector<OutboxRow>> pending(std::string_view destination,
                                         std::size_t count_max) override {
    return ask([&] { return store_.outbox()->pending(destination, count_max); });
  }
  Status assign(std::string_view destination, std::uint64_t fence,
                std::span<const std::int64_t> numbers, std::span<const std::uint32_t> partitions,
                std::span<const std::uint64_t> sequences = {}) override {
    return ask([&] {
      return store_.outbox()->assign(destination, fence, numbers, partitions, sequences);
    });
  }
  Status sent(std::string_view destination, std::uint64_t fence,
              std::span<const std::int64_t> numbers) override {
    return ask([&] { return store_.outbox()->sent(destination, fence, numbers); });
  }
  Status park(std::string_view destination, std::uint64_t fence, std::int64_t number,
              std::string_view reason) override {
    return ask([&] { return store_.outbox()->park(destination, fence, number, reason); });
  }

  Result<std::vector<ClaimAnswer>> claim(std::string_view scope, const ClaimTerms& terms,
                                         std::span<const ClaimRequest> requests) override {
    return ask([&] { return store_.claims()->claim(scope, terms, requests); });
  }
  Result<std::vector<bool>> renew(std::string_view scope, std::int64_t lease_ms,
                                  std::span<const HeldClaim> held) override {
    return ask([&] { return store_.claims()->renew(scope, lease_ms, held); });
  }
  Result<std::vector<bool>> change(std::string_view scope,
                                   std::span<const ClaimChange> changes) override {
    return ask([&] { return store_.claims()->change(scope, changes); });
  }
  Result<ClaimRecord> force(std::string_view scope, const ClaimForce& force) override {
    return ask([&] { return store_.claims()->force(scope, force); });
  }
  Result<std::vector<ClaimRecord>> claims(std::string_view scope, std::optional<ClaimState> state,
                                          std::string_view from_id,
                                          std::size_t count_max) override {
    return ask([&] { return store_.claims()->claims(scope, state, from_id, count_max); });
  }

  template <class Call>
  auto ask(const Call& call) -> decltype(call()) {
    if (dead_) return fail(Remedy::retry, "dead", "this process is dead");
    if (const Status lost = fault_("a call to the store was lost", Remedy::retry); !lost)
      return fail(lost.error());
    auto answer = call();
    if (const Status lost = fault_("an answer of the store was lost", Remedy::recheck); !lost)
      return fail(lost.error());
    return answer;
  }

  Store& store_;
  const Fault fault_;
  bool dead_ = false;
};

}  // namespace once::simulation
