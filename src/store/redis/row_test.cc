// SPDX-License-Identifier: Apache-2.0
#include "store/redis/row.h"

#include <gtest/gtest.h>

#include <limits>

namespace once {
namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

Fingerprint some_print() {
  Fingerprint print{1, {}};
  print.digest[0] = 0xff;
  print.digest[15] = 7;
  return print;
}

LedgerRecord some_record() {
  return {"a", some_print(), rejected(std::string("no\0\xff", 4)), largest, 2, "orders-7", -1};
}

ClaimRecord some_claim() {
  return {.id = "a",
          .state = ClaimState::in_doubt,
          .generation = std::numeric_limits<std::uint64_t>::max(),
          .fence = 1ULL << 60,
          .attempts = 300,
          .after_loss = AfterLoss::give_up,
          .fingerprint = some_print(),
          .born_ms = largest,
          .changed_ms = 3,
          .lease_until_ms = 4,
          .owner = std::string(255, 'o'),
          .result = std::string(200, '\0'),
          .reason = std::string(70'000, 'r'),
          .steps = {{"charge", "ok"}, {"", ""}}};
}

TEST(RedisRow, a_ledger_record_comes_back_as_it_was) {
  LedgerRecord full = some_record();
  LedgerRecord bare = {"b", {}, applied(), 0, 0, "p", 0};
  for (const LedgerRecord& record : {full, bare}) {
    const auto again = ledger_record(record.id, ledger_row(record));
    ASSERT_TRUE(again) << again.error().text;
    EXPECT_EQ(again->fingerprint, record.fingerprint);
    EXPECT_EQ(again->outcome, record.outcome);
    EXPECT_EQ(again->born_ms, record.born_ms);
    EXPECT_EQ(again->recorded_ms, record.recorded_ms);
    EXPECT_EQ(again->partition, record.partition);
    EXPECT_EQ(again->offset, record.offset);
  }
}

TEST(RedisRow, a_claim_comes_back_as_it_was) {
  ClaimRecord bare;
  bare.id = "b";
  ClaimRecord empty_result = bare;
  empty_result.result = "";
  for (const ClaimRecord& record : {some_claim(), bare, empty_result}) {
    const auto again = claim_record(record.id, claim_row(record));
    ASSERT_TRUE(again) << again.error().text;
    EXPECT_EQ(*again, record);
  }
}

TEST(RedisRow, a_row_cut_anywhere_is_never_read_beyond_its_end) {
  const std::string ledger = ledger_row(some_record());
  // Behind the fingerprint everything is the reason, however long.
  for (std::size_t size = 0; size < 26 + 8 + 17; ++size)
    EXPECT_FALSE(ledger_record("a", std::string_view(ledger).substr(0, size))) << size;
  const std::string claim = claim_row(some_claim());
  for (std::size_t size = 0; size < 70'000; size += size < 600 ? 1 : 997)
    EXPECT_FALSE(claim_record("a", std::string_view(claim).substr(0, size))) << size;
}

TEST(RedisRow, bytes_of_numbers_are_in_the_order_of_the_numbers) {
  std::int64_t last = 0;
  for (const std::int64_t number : {1L, 255L, 256L, 1L << 40, (1L << 40) + 1, largest}) {
    EXPECT_LT(eight_bytes(last), eight_bytes(number));
    EXPECT_EQ(number_in_eight(eight_bytes(number)), number);
    last = number;
  }
}

}  // namespace
}  // namespace once
