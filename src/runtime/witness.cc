// SPDX-License-Identifier: Apache-2.0
#include "runtime/witness.h"

#include <fmt/format.h>

#include "base/mutant.h"
#include "model/ledger.h"
#include "model/witness.h"

namespace once {
namespace {

std::string name_of(const Witness& witness) { return fmt::format("{:016x}", witness.digest); }

}  // namespace

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
  if (found.offset > position_.witness.offset) return {};  // it is no longer there
  if (found != position_.witness && !mutant(Mutant::position_of_any_topic))
    return fail(other_source_error(
        scope, batch.partition, position_.offset,
        fmt::format("of message {} at offset {}", name_of(position_.witness), found.offset),
        fmt::format("of message {} there", name_of(found))));
  batch.deliveries.erase(batch.deliveries.begin());
  return {};
}

}  // namespace once
