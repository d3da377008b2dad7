// SPDX-License-Identifier: Apache-2.0
#include "runtime/witness.h"

#include <fmt/format.h>

#include <cstring>

#include "base/mutant.h"
#include "model/ledger.h"

namespace once {
namespace {

// Eight bytes at a time, in an order that is the same on every machine: the digest is stored.
class Digest {
 public:
  void add(std::uint64_t word) {
    state_ = (state_ ^ word) * 0x9e3779b97f4a7c15u;
    state_ ^= state_ >> 32;
  }
  void add(std::string_view bytes) {
    add(bytes.size());
    for (; bytes.size() >= 8; bytes.remove_prefix(8)) add(word_of(bytes.substr(0, 8)));
    add(word_of(bytes));
  }
  std::uint64_t value() const { return state_; }

 private:
  static std::uint64_t word_of(std::string_view bytes) {
    std::uint64_t word = 0;
    for (std::size_t i = bytes.size(); i > 0; --i)
      word = word << 8 | static_cast<unsigned char>(bytes[i - 1]);
    return word;
  }

  std::uint64_t state_ = 0x6f6e63652077736eu;
};

std::string name_of(const Witness& witness) { return fmt::format("{:016x}", witness.digest); }

}  // namespace

Witness witness_of(const Delivery& delivery) {
  Digest digest;
  digest.add(delivery.key);
  digest.add(delivery.body);
  digest.add(static_cast<std::uint64_t>(delivery.timestamp_ms));
  return {delivery.offset, digest.value()};
}

Status WitnessCheck::seek(Source& source, std::string_view partition) {
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
