// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "strategy/field.h"
#include "strategy/guarded_row.h"

namespace once {
namespace {

constexpr std::size_t rows_max = 1000;
constexpr std::int64_t wait_ms_limit = 60'000;
constexpr std::int64_t pause_ms_max = 16;

Result<LockAnswer> lock_one(GuardedRow& guarded, std::span<const std::string_view> columns,
                            Row& row, std::int64_t& wait_ms_left) {
  for (std::int64_t pause_ms = 1;; pause_ms = std::min(2 * pause_ms, pause_ms_max)) {
    const LockAnswer answer = ONCE_TRY(guarded.lock(columns, row));
    if (answer != LockAnswer::busy || wait_ms_left == 0) return answer;
    pause_ms = std::min(pause_ms, wait_ms_left);
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
    wait_ms_left -= pause_ms;
  }
}

}  // namespace

Result<LockedRows> row_lock(Transaction& transaction, std::string_view table, std::string_view key,
                            std::span<const Value> values,
                            std::span<const std::string_view> columns, std::int64_t wait_ms_max) {
  if (values.size() > rows_max || wait_ms_max < 0 || wait_ms_max > wait_ms_limit)
    return fail(Remedy::stop, "config",
                fmt::format("row_lock takes up to {} rows and waits for 0..{} ms, not {} and {}",
                            rows_max, wait_ms_limit, values.size(), wait_ms_max));
  std::vector<std::pair<Field, std::size_t>> order;  // and where it was named
  for (const Value& value : values) order.emplace_back(field_of(value), order.size());
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return comes_before(a.first, b.first); });
  LockedRows locked{LockAnswer::locked, std::vector<Row>(values.size())};
  for (const auto& [field, place] : order) {
    const Column column{key, values[place]};
    const auto row = ONCE_TRY(guarded_row(transaction, table, std::span(&column, 1)));
    locked.answer = ONCE_TRY(lock_one(*row, columns, locked.rows[place], wait_ms_max));
    if (locked.answer != LockAnswer::locked) return LockedRows{locked.answer, {}};
  }
  return locked;
}

}  // namespace once
