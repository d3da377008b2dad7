// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "simulation/context.h"

namespace once::simulation {

// A memory store behind a bad line: calls fail before anything happens, and commits are refused
// or lost on the way there or back.
class FaultyStore final : public Store {
 public:
  explicit FaultyStore(Context& context) : context_(context) {
    context_.memory.set_commit_fault([this] { return commit_fault(); });
  }

  StoreTraits traits() const override { return context_.memory.traits(); }
  Result<std::unique_ptr<Transaction>> begin(std::string_view scope) override {
    if (context_.fault(30)) return away("begin");
    return context_.memory.begin(scope);
  }
  Result<Position> take(std::string_view scope, std::string_view partition,
                        std::string_view source_identity = {}) override {
    if (context_.fault(30)) return away("take");
    return context_.memory.take(scope, partition, source_identity);
  }
  Result<Position> position(std::string_view scope, std::string_view partition) override {
    if (context_.fault(50)) return away("position");
    return context_.memory.position(scope, partition);
  }
  Result<Forgotten> forget(std::string_view scope, std::int64_t horizon_ms,
                           std::size_t rows_max) override {
    if (context_.fault(30)) return away("forget");
    return context_.memory.forget(scope, horizon_ms, rows_max);
  }
  Outbox* outbox() override { return context_.memory.outbox(); }
  ClaimStore* claims() override { return static_cast<Store&>(context_.memory).claims(); }
  Records* records() override { return context_.memory.records(); }
  Deferrals* deferrals() override { return context_.memory.deferrals(); }

 private:
  tl::unexpected<Error> away(const char* what) {
    context_.trace.note("store: {} fails", what);
    return fail(Remedy::retry, "away", "the store does not answer");
  }

  MemoryStore::CommitFault commit_fault() {
    using Fault = MemoryStore::CommitFault;
    if (!context_.fault(90)) return Fault::none;
    switch (context_.random.below(4)) {
      case 0: context_.trace.reached("commit refused"); return Fault::refused;
      case 1: context_.trace.reached("commit lost before"); return Fault::lost_before;
      case 2: context_.trace.reached("commit lost after"); return Fault::lost_after;
      default: context_.trace.reached("commit lost and late"); return Fault::lost_late;
    }
  }

  Context& context_;
};

}  // namespace once::simulation
