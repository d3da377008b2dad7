// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/claims.h>

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace once::testing {

// Something outside every store that is paid: it counts what really happened. Thread-safe.
class Bank {
 public:
  explicit Bank(bool tells_duplicates = false) : tells_duplicates_(tells_duplicates) {}

  // What happens to the answer of the n-th request, from 1 on; an empty function: it arrives.
  enum class Answer { arrives, lost, refused_before };
  std::function<Answer(std::size_t)> answer;

  Result<std::string> pay(const std::string& downstream_id, const std::string& what) {
    const std::lock_guard lock(mutex_);
    const Answer fate = answer ? answer(++requests_) : Answer::arrives;
    if (fate == Answer::refused_before)
      return fail(Remedy::retry, "away", "the bank refused the connection");
    const auto known = receipts_.find(downstream_id);
    if (known == receipts_.end() || !tells_duplicates_) {
      paid_.push_back(what);
      receipts_[downstream_id] = "receipt " + std::to_string(paid_.size());
    }
    if (fate == Answer::lost) return fail(Remedy::recheck, "lost", "no answer from the bank");
    return receipts_[downstream_id];
  }

  // What happened under this id?
  Resolution ask(const std::string& downstream_id) const {
    const std::lock_guard lock(mutex_);
    const auto known = receipts_.find(downstream_id);
    if (known == receipts_.end()) return {Resolution::Kind::did_not_happen, {}};
    return {Resolution::Kind::happened, known->second};
  }

  // In the order in which it happened, what happened twice twice.
  std::vector<std::string> paid() const {
    const std::lock_guard lock(mutex_);
    return paid_;
  }

 private:
  const bool tells_duplicates_;
  mutable std::mutex mutex_;
  std::size_t requests_ = 0;
  std::vector<std::string> paid_;
  std::map<std::string, std::string> receipts_;
};

}  // namespace once::testing
