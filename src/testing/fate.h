// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace once::testing {

// Random numbers from a seed, the same on every machine (splitmix64).
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  // From 0 to `end` - 1.
  std::size_t below(std::size_t end) { return static_cast<std::size_t>(next() % end); }

 private:
  std::uint64_t state_;
};

// What a process asks of its store, as far as it matters for what can go wrong.
enum class Call : std::uint8_t {
  ask,     // begins or looks; nothing is changed
  read,    // in a transaction, answered at once; it may fail alone
  write,   // in a transaction, queued; it fails together with the transaction
  commit,  // or anything else that changes the store at once
  answer,  // the commit is done, and its caller is about to be told
};

enum class Fault : std::uint8_t {
  none,
  death,        // of the process, before the call
  away,         // nothing happened, and the caller knows
  lost_before,  // nothing happened, and the caller cannot know
  lost_after,   // it happened, and the caller cannot know
};

// What goes wrong in a schedule: nothing, one death at a call, or faults by chance.
struct Misfortune {
  std::size_t death_at = 0;  // the number of the call, from 1; 0: none
  std::size_t per_mille = 0;
  std::size_t faults_max = 0;
};

// Counts the calls of a process and decides what becomes of each. Keeps the list of what happened,
// for people. Used by one thread.
class Fate {
 public:
  Fate(const Misfortune& misfortune, std::uint64_t seed) : misfortune_(misfortune), dice_(seed) {}

  Fault next(Call call, std::string_view what);

  bool dead() const { return dead_; }
  void live_again() { dead_ = false; }

  // The message whose handler runs; empty: none.
  void handling(std::string_view id) { handling_ = id; }
  void note(std::string step) { steps_.push_back(std::move(step)); }

  std::size_t calls() const { return calls_; }
  std::size_t deaths() const { return deaths_; }
  std::size_t faults() const { return faults_; }
  const std::vector<std::string>& steps() const { return steps_; }

 private:
  Fault by_chance(Call call);
  Fault die(Call call, std::string_view what);
  std::string describe(std::string_view what) const;

  Misfortune misfortune_;
  Dice dice_;
  std::size_t calls_ = 0;
  std::size_t deaths_ = 0;
  std::size_t faults_ = 0;
  bool dead_ = false;
  std::string handling_;
  std::vector<std::string> steps_;
};

}  // namespace once::testing
