// SPDX-License-Identifier: Apache-2.0
#include "log/interval_set.h"

#include <algorithm>

namespace once::log {

std::size_t IntervalSet::first_behind(std::uint64_t number) const {
  const auto found =
      std::upper_bound(intervals_.begin(), intervals_.end(), number,
                       [](std::uint64_t value, const Interval& one) { return value < one.end; });
  return static_cast<std::size_t>(found - intervals_.begin());
}

void IntervalSet::insert(Interval added) {
  if (added.begin >= added.end) return;
  if (!intervals_.empty() && intervals_.back().end == added.begin) {  // the usual case
    intervals_.back().end = added.end;
    return;
  }
  // All intervals that touch the new one become one with it.
  const auto begin =
      std::partition_point(intervals_.begin(), intervals_.end(),
                           [&](const Interval& one) { return one.end < added.begin; });
  auto end = begin;
  while (end != intervals_.end() && end->begin <= added.end) {
    added.begin = std::min(added.begin, end->begin);
    added.end = std::max(added.end, end->end);
    ++end;
  }
  if (begin == end) {
    intervals_.insert(begin, added);
  } else {
    *begin = added;
    intervals_.erase(begin + 1, end);
  }
}

bool IntervalSet::contains(std::uint64_t number) const {
  const std::size_t at = first_behind(number);
  return at < intervals_.size() && intervals_[at].begin <= number;
}

bool IntervalSet::contains_all(Interval asked) const {
  const std::size_t at = first_behind(asked.begin);
  return at < intervals_.size() && intervals_[at].begin <= asked.begin &&
         asked.end <= intervals_[at].end;
}

bool IntervalSet::contains_none(Interval asked) const {
  const std::size_t at = first_behind(asked.begin);
  return at == intervals_.size() || asked.end <= intervals_[at].begin;
}

std::vector<Interval> IntervalSet::missing(Interval asked) const {
  std::vector<Interval> result;
  for (std::size_t at = first_behind(asked.begin); asked.begin < asked.end; ++at) {
    if (at == intervals_.size() || intervals_[at].begin >= asked.end) {
      result.push_back(asked);
      break;
    }
    if (intervals_[at].begin > asked.begin) result.push_back({asked.begin, intervals_[at].begin});
    asked.begin = intervals_[at].end;
  }
  return result;
}

}  // namespace once::log
