// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "store/postgres/parameters.h"
#include "store/sql/transaction.h"

namespace once {

// Whether the ids of a batch are likely to be new: then they are inserted without asking first,
// which takes half the time. One that is there spoils the insert, so after that we ask for a while.
// Thread-safe; being wrong costs time and nothing else.
class Guess {
 public:
  bool is_new() { return asking_left_.load() <= 0 || asking_left_.fetch_sub(1) <= 0; }
  void was_wrong() { asking_left_ = asking_batches; }

 private:
  static constexpr int asking_batches = 32;
  std::atomic<int> asking_left_{0};
};

class PostgresTransaction final : public ServerTransaction {
 public:
  PostgresTransaction(ServerStore& store, std::int64_t scope_number, std::string_view scope,
                      ServerStore::Lease lease, Guess& guess)
      : ServerTransaction(store, scope_number, scope, std::move(lease)), guess_(guess) {}

 private:
  Status record_ids(Admission& admission) override;
  // False: not all of them are new, and none was recorded.
  Result<bool> record_new(const Parameters& parameters, std::size_t count);
  Status record_asking(Admission& admission, const Parameters& parameters);
  Status look_up(std::span<Admission::Known* const> unseen);

  Guess& guess_;
};

}  // namespace once
