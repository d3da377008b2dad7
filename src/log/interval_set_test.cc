// SPDX-License-Identifier: Apache-2.0
#include "log/interval_set.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>

namespace once::log {
namespace {

TEST(IntervalSet, grows_with_the_holes_and_not_with_the_numbers) {
  IntervalSet set;
  for (std::uint64_t i = 0; i < 1000; ++i) set.insert({i, i + 1});
  EXPECT_EQ(set.intervals(), (std::vector<Interval>{{0, 1000}}));
  set.insert({2000, 2001});
  EXPECT_EQ(set.intervals().size(), 2u);
  set.insert({1000, 2000});
  EXPECT_EQ(set.intervals(), (std::vector<Interval>{{0, 2001}}));
}

TEST(IntervalSet, answers_like_a_set_of_numbers) {
  EXPECT_TRUE(rc::check([] {
    IntervalSet set;
    std::set<std::uint64_t> model;
    for (int step = 0; step < 40; ++step) {
      const auto begin = *rc::gen::inRange<std::uint64_t>(0, 60);
      const auto end = begin + *rc::gen::inRange<std::uint64_t>(0, 8);
      std::vector<Interval> missing;
      std::size_t present = 0;
      for (std::uint64_t n = begin; n < end; ++n) {
        if (model.count(n) != 0) {
          ++present;
        } else if (!missing.empty() && missing.back().end == n) {
          missing.back().end = n + 1;
        } else {
          missing.push_back({n, n + 1});
        }
      }
      RC_ASSERT(set.missing({begin, end}) == missing);
      if (begin < end) {
        RC_ASSERT(set.contains_all({begin, end}) == (present == end - begin));
        RC_ASSERT(set.contains_none({begin, end}) == (present == 0));
      }
      set.insert({begin, end});
      for (std::uint64_t n = begin; n < end; ++n) model.insert(n);
      for (std::uint64_t n = 0; n < 70; ++n) RC_ASSERT(set.contains(n) == (model.count(n) == 1));
      RC_ASSERT(set.end() == (model.empty() ? 0 : *model.rbegin() + 1));
      std::uint64_t prefix = 0;
      while (model.count(prefix) != 0) ++prefix;
      RC_ASSERT(set.prefix_end() == prefix);
    }
  }));
}

}  // namespace
}  // namespace once::log
