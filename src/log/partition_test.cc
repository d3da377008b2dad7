// SPDX-License-Identifier: Apache-2.0
#include "log/partition.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "log/log_testing.h"

namespace once::log {
namespace {

TEST(Partition, what_was_synced_is_read_back_in_order_also_after_opening_again) {
  Bench bench;
  auto partition = bench.open();
  const Stamp stamp = partition->enter("p").value();
  EXPECT_EQ(stamp.sequence, 0u);
  EXPECT_EQ(append(*partition, stamp, texts(0, 3)).value(), (Receipt{0, 0}));
  EXPECT_EQ(append(*partition, after(stamp, 3), texts(3, 5)).value(), (Receipt{3, 0}));
  EXPECT_EQ(read_all(*partition), bodies(0, 5));
  partition.reset();
  partition = bench.open();
  EXPECT_EQ(read_all(*partition), bodies(0, 5));
  EXPECT_EQ(partition->enter("p").value(), (Stamp{stamp.producer, stamp.epoch + 1, 5}));
}

TEST(Partition, nothing_is_true_before_the_sync) {
  Bench bench;
  auto partition = bench.open();
  const Stamp stamp = partition->enter("p").value();
  const Ticket ticket = partition->stage(stamp, texts(0, 2)).value();
  EXPECT_EQ(partition->outcome(ticket).error().tag, "pending");
  EXPECT_EQ(partition->end_offset(), 0);
  ASSERT_TRUE(partition->sync());
  EXPECT_EQ(partition->outcome(ticket).value(), (Receipt{0, 0}));
}

}  // namespace
}  // namespace once::log
