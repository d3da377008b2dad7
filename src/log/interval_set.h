// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace once::log {

// Half-open, begin < end.
struct Interval {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  bool operator==(const Interval&) const = default;
};

// A set of numbers kept as intervals: its memory grows with the holes, not with the numbers.
class IntervalSet {
 public:
  void insert(Interval added);
  bool contains(std::uint64_t number) const;
  // The parts of `asked` that are not in the set, in order.
  std::vector<Interval> missing(Interval asked) const;
  // The same without memory, for the two usual answers.
  bool contains_all(Interval asked) const;
  bool contains_none(Interval asked) const;
  // One past the largest number; 0 when empty.
  std::uint64_t end() const { return intervals_.empty() ? 0 : intervals_.back().end; }
  // The numbers from 0 to this one are all in the set.
  std::uint64_t prefix_end() const {
    return intervals_.empty() || intervals_.front().begin != 0 ? 0 : intervals_.front().end;
  }
  const std::vector<Interval>& intervals() const { return intervals_; }
  void clear() { intervals_.clear(); }

  bool operator==(const IntervalSet&) const = default;

 private:
  // The first interval that ends behind `number`.
  std::size_t first_behind(std::uint64_t number) const;

  std::vector<Interval> intervals_;  // sorted, apart by at least one number
};

}  // namespace once::log
