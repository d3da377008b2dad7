// SPDX-License-Identifier: Apache-2.0
#include "runtime/forgetter.h"

#include <algorithm>

#include "base/mutant.h"

namespace once {

void Forgetter::disown(std::string_view partition) {
  if (const auto found = progress_ms_.find(partition); found != progress_ms_.end())
    progress_ms_.erase(found);
}

void Forgetter::observe(std::string_view partition, std::int64_t born_ms) {
  auto found = progress_ms_.find(partition);
  if (found == progress_ms_.end()) return;  // it is no longer ours
  found->second = std::max(found->second.value_or(born_ms), born_ms);
}

std::optional<std::int64_t> Forgetter::horizon_ms() const {
  if (!options_.id || options_.retention_ms < 0) return std::nullopt;
  if (mutant(Mutant::horizon_by_wall_clock)) return clock_.now_ms() - options_.retention_ms;
  std::optional<std::int64_t> slowest;
  for (const auto& [partition, progress] : progress_ms_) {
    if (!progress && !caught_up_) return std::nullopt;
    if (progress) slowest = std::min(slowest.value_or(*progress), *progress);
  }
  if (!slowest) return std::nullopt;
  return *slowest - options_.retention_ms;
}

Result<Forgotten> Forgetter::step(std::size_t rows_max) {
  const auto horizon = horizon_ms();
  if (!horizon || *horizon <= 0) return Forgotten{};
  const std::int64_t step_ms = std::max<std::int64_t>(1, options_.retention_ms / 100);
  return store_.forget(options_.scope, *horizon - *horizon % step_ms, rows_max);
}

}  // namespace once
