// SPDX-License-Identifier: Apache-2.0
#include "wire/pulsar/place.h"

#include <gtest/gtest.h>

#include <vector>

namespace once::pulsar {
namespace {

TEST(PulsarPlace, offsets_grow_with_places_and_lead_back_to_them) {
  const std::vector<Place> places{{0, 0, 0},
                                  {0, 0, 1},
                                  {0, 0, index_max},
                                  {0, 1, 0},
                                  {0, entry_max, index_max},
                                  {1, 0, 0},
                                  {17, 4, 2},
                                  {ledger_max, entry_max, index_max}};
  std::int64_t last = -1;
  for (const Place& place : places) {
    const auto offset = offset_of(place);
    ASSERT_TRUE(offset) << shown(place);
    EXPECT_GT(*offset, last) << shown(place);
    EXPECT_EQ(place_of(*offset), place);
    last = *offset;
  }
}

TEST(PulsarPlace, what_does_not_fit_has_no_offset) {
  for (const Place& place :
       {Place{ledger_max + 1, 0, 0}, Place{0, entry_max + 1, 0}, Place{0, 0, index_max + 1},
        Place{-1, 0, 0}, Place{0, -1, 0}, Place{0, 0, -1}})
    EXPECT_FALSE(offset_of(place)) << shown(place);
}

}  // namespace
}  // namespace once::pulsar
