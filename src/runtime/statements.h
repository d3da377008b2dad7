// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace once {

// What handlers have run, told apart by the texts of statements: a set with a limit.
class Statements {
 public:
  // Handlers run the same statements again and again in one order.
  void note(std::string_view statement) {
    if (next_ >= texts_.size()) next_ = 0;
    if (next_ < texts_.size() && texts_[next_] == statement) {
      ++next_;
      return;
    }
    const auto found = std::find(texts_.begin(), texts_.end(), statement);
    if (found == texts_.end() && texts_.size() == count_max) {
      has_more_ = true;
      return;
    }
    next_ = static_cast<std::size_t>(found - texts_.begin()) + 1;
    if (found == texts_.end()) texts_.emplace_back(statement);
  }
  void add(const Statements& others) {
    for (const std::string& text : others.texts_) note(text);
  }
  void clear() { *this = {}; }

  bool are_all_in(const Statements& others) const {
    return !has_more_ && std::all_of(texts_.begin(), texts_.end(), [&](const std::string& text) {
      return std::find(others.texts_.begin(), others.texts_.end(), text) != others.texts_.end();
    });
  }

 private:
  static constexpr std::size_t count_max = 100;

  std::vector<std::string> texts_;
  std::size_t next_ = 0;   // where the next one is expected
  bool has_more_ = false;  // than it can keep
};

// The statements that were committed in this run, by any lane.
class PassedStatements {
 public:
  void passed(const Statements& statements) {
    const std::lock_guard lock(mutex_);
    passed_.add(statements);
    taken_ = 0;
  }
  // Whether all of these have passed before. That was then: it counts for a few messages, until
  // one passes again, so that a table that is dropped in the middle of a run does not park all that
  // follows.
  bool take(std::span<const Statements* const> statements) {
    const std::lock_guard lock(mutex_);
    if (taken_ + statements.size() > taken_max) return false;
    for (const Statements* one : statements)
      if (!one->are_all_in(passed_)) return false;
    taken_ += statements.size();
    return true;
  }

 private:
  static constexpr std::size_t taken_max = 10;

  std::mutex mutex_;
  Statements passed_;      // guarded by mutex_
  std::size_t taken_ = 0;  // guarded by mutex_: since the last one that passed
};

}  // namespace once
