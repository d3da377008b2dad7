// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "strategy/field.h"
#include "strategy/guarded_row.h"

namespace once {
namespace {

constexpr std::size_t rows_max = 1000;
constexpr std::int64_t wait_ms_limit = 60'000;
constexpr std::int64_t pause_ms_max = 16;

Result<LockAnswer> lock_one(GuardedRow& row, std::int64_t& wait_ms_left) {
  for (std::int64_t pause_ms = 1;; pause_ms = std::min(2 * pause_ms, pause_ms_max)) {
    const LockAnswer answer = ONCE_TRY(row.lock());
    if (answer != LockAnswer::busy || wait_ms_left == 0) return answer;
    pause_ms = std::min(pause_ms, wait_ms_left);
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
    wait_ms_left -= pause_ms;
  }
}

}  // namespace

Result<LockAnswer> row_lock(Transaction& transaction, std::string_view table, std::string_view key,
                            std::span<const Value> values, std::int64_t wait_ms_max) {
  if (values.size() > rows_max || wait_ms_max < 0 || wait_ms_max > wait_ms_limit)
    return fail(Remedy::stop, "config",
                fmt::format("row_lock takes up to {} rows and waits for 0..{} ms, not {} and {}",
                            rows_max, wait_ms_limit, values.size(), wait_ms_max));
  std::vector<Field> order;
  for (const Value& value : values) order.push_back(field_of(value));
  std::sort(order.begin(), order.end(), comes_before);
  order.erase(std::unique(order.begin(), order.end()), order.end());
  for (const Field& field : order) {
    const Column column{key, value_of(field)};
    const auto row = ONCE_TRY(guarded_row(transaction, table, std::span(&column, 1)));
    const LockAnswer answer = ONCE_TRY(lock_one(*row, wait_ms_max));
    if (answer != LockAnswer::locked) return answer;
  }
  return LockAnswer::locked;
}

}  // namespace once
