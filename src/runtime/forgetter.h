// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/clock.h>
#include <once/pipeline.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace once {

// Decides how far the ledger may forget. The horizon follows the progress of the source, not the
// wall clock: it is the retention before the youngest settled message of the slowest partition. So
// hours of downtime, or a partition that lags behind, do not make old messages look new.
// Used by one thread.
class Forgetter {
 public:
  Forgetter(Store& store, Clock& clock, const PipelineOptions& options)
      : store_(store), clock_(clock), options_(options) {}

  void own(std::string_view partition) { progress_ms_.try_emplace(std::string(partition)); }
  void disown(std::string_view partition);
  void observe(std::string_view partition, std::int64_t born_ms);
  // The source has nothing more: a partition of which nothing was seen has nothing old to bring.
  void caught_up() { caught_up_ = true; }

  // Below this may be forgotten; unset while that is not known.
  std::optional<std::int64_t> horizon_ms() const;

  // Forgets one bounded step; answers how many ids. The store gets the horizon in steps of a
  // hundredth of the retention: each new one costs it a commit and a walk through the ledger.
  [[nodiscard]] Result<Forgotten> step(std::size_t rows_max = 1000);

 private:
  Store& store_;
  Clock& clock_;
  const PipelineOptions& options_;
  std::map<std::string, std::optional<std::int64_t>, std::less<>> progress_ms_;
  bool caught_up_ = false;
};

}  // namespace once
