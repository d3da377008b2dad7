// SPDX-License-Identifier: Apache-2.0
#include "runtime/witness.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/mutant.h"
#include "model/ledger.h"
#include "model/witness.h"

namespace once {
namespace {

std::string name_of(const Witness& witness) { return fmt::format("{:016x}", witness.digest); }

}  // namespace

WitnessCheck::WitnessCheck(const Position& position, const SourceTraits& traits,
                           std::string_view partition)
    : position_(position),
      is_compacted_(std::find(traits.compacted.begin(), traits.compacted.end(), partition) !=
                    traits.compacted.end()) {}

Status WitnessCheck::seek(SourceReplay& source, std::string_view partition) {
  const Witness& witness = position_.witness;
  pending_ = witness.offset >= 0 && witness.offset < position_.offset;
  if (pending_) {
    const Status sought = source.seek(partition, witness.offset);
    if (sought || sought.error().tag != "gone") return sought;
    pending_ = false;  // the source has forgotten what we have handled, as it may
  }
  return source.seek(partition, position_.offset);
}

Status WitnessCheck::check(std::string_view scope, Batch& batch) {
  if (!pending_ || batch.deliveries.empty()) return {};
  pending_ = false;
  const Witness found = witness_of(batch.deliveries.front());
  if (found.offset > position_.witness.offset) return missing(scope, batch.partition);
  if (found != position_.witness && !mutant(Mutant::position_of_any_topic))
    return fail(other_source_error(
        scope, batch.partition, position_.offset,
        fmt::format("of message {} at offset {}", name_of(position_.witness), found.offset),
        fmt::format("of message {} there", name_of(found))));
  batch.deliveries.erase(batch.deliveries.begin());
  return {};
}

Result<bool> WitnessCheck::check_end(std::string_view scope, SourceReplay& source,
                                     std::string_view partition) {
  if (!pending_ || mutant(Mutant::end_without_witness_accepted)) return true;
  if (is_shown_) {
    pending_ = false;
    ONCE_TRY(missing(scope, partition));
    return true;
  }
  if (!std::exchange(was_at_end_, true)) {
    ONCE_TRY(source.seek(partition, position_.offset));  // it must reach so far
    ONCE_TRY(source.seek(partition, position_.witness.offset));
  }
  is_shown_ = shows_position(source, partition);
  return !is_shown_;
}

bool WitnessCheck::shows_position(SourceReplay& source, std::string_view partition) const {
  const auto ends = source.ends();
  if (!ends) return false;
  const auto end = std::find_if(ends->begin(), ends->end(), [&](const PartitionEnd& candidate) {
    return candidate.partition == partition;
  });
  return end == ends->end() || end->offset >= position_.offset;
}

Status WitnessCheck::missing(std::string_view scope, std::string_view partition) const {
  if (is_compacted_ || mutant(Mutant::missing_witness_accepted)) return {};
  return fail(other_source_error(scope, partition, position_.offset,
                                 fmt::format("of message {} at offset {}",
                                             name_of(position_.witness), position_.witness.offset),
                                 "of no message there"));
}

}  // namespace once
