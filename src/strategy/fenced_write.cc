// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "strategy/guarded_row.h"

namespace once {
namespace {

constexpr std::string_view fence_column = "fence";

}  // namespace

Result<FenceAnswer> fenced_write(Transaction& transaction, std::string_view table, Columns key,
                                 std::uint64_t fence, Columns changes) {
  const auto row = ONCE_TRY(guarded_row(transaction, table, key));
  std::vector<Column> columns(changes.begin(), changes.end());
  columns.push_back({fence_column, fence});
  const std::array not_fenced{Condition{fence_column, Condition::Kind::at_most, {Value(fence)}}};
  if (ONCE_TRY(row->update(not_fenced, std::span<const Column>(columns))))
    return FenceAnswer::written;
  const auto found = ONCE_TRY(row->read(std::array{fence_column}, Freshness::latest));
  if (!found) return FenceAnswer::missing;
  // A database that only counts rows which change answers 0 when the row says all this already.
  const auto* stored = std::get_if<std::int64_t>(&found->front());
  const bool ours = stored != nullptr && *stored == static_cast<std::int64_t>(fence);
  return ours ? FenceAnswer::written : FenceAnswer::stale;
}

}  // namespace once
