// SPDX-License-Identifier: Apache-2.0
#include "audit/stream_audit.h"

#include <fmt/format.h>

#include <optional>

#include "model/sha256.h"

namespace once::audit {
namespace {

constexpr std::size_t intervals_max = 1'000'000;

}  // namespace

std::array<std::uint8_t, 16> digest_of_id(std::string_view id) {
  Sha256 hash("audit");
  hash.field(id);
  return hash.digest128();
}

StreamAudit::StreamAudit(AuditOptions options)
    : options_(std::move(options)), sorter_(options_.directory, options_.bytes_max) {
  report_.id_is_expected = options_.id_is_expected;
}

std::uint32_t StreamAudit::number_of(std::string_view partition) {
  const auto found = numbers_.find(partition);
  if (found != numbers_.end()) return found->second;
  const auto number = static_cast<std::uint32_t>(partitions_.size());
  partitions_.emplace_back(partition);
  numbers_.emplace(partition, number);
  return number;
}

Status StreamAudit::take(const Delivery& delivery) {
  ++report_.messages;
  if (const auto id = options_.id.id_of(delivery))
    ONCE_TRY(sorter_.add({.digest = digest_of_id(*id),
                          .partition = number_of(delivery.partition),
                          .offset = delivery.offset}));
  else
    ++report_.without_id;
  return take_sequence(delivery);
}

Status StreamAudit::take_sequence(const Delivery& delivery) {
  const Stamp& stamp = delivery.stamp;
  if (stamp.producer == 0) return {};
  log::IntervalSet& seen = sequences_[{number_of(delivery.partition), stamp.producer}];
  if (seen.contains(stamp.sequence)) {
    ++report_.repeated;
    return {};
  }
  const std::size_t before = seen.intervals().size();
  seen.insert({stamp.sequence, stamp.sequence + 1});
  holes_ += seen.intervals().size() - before;
  if (holes_ <= intervals_max) return {};
  return fail(Remedy::stop, "exhausted",
              fmt::format("the sequences of producers have more than {} holes", intervals_max));
}

// What was deleted from the beginning of a topic is no gap.
void StreamAudit::find_gaps() {
  for (const auto& [who, seen] : sequences_) {
    const auto& intervals = seen.intervals();
    for (std::size_t i = 1; i < intervals.size(); ++i) {
      const log::Interval missing{intervals[i - 1].end, intervals[i].begin};
      ++report_.gaps;
      report_.missing += missing.end - missing.begin;
      if (report_.gap_list.size() < options_.shown_max)
        report_.gap_list.push_back({partitions_[who.first], who.second, missing});
    }
  }
}

Result<AuditReport> StreamAudit::finish() {
  std::optional<Sighting> last;
  bool told = false;  // that the id of `last` is there twice
  ONCE_TRY(sorter_.visit([&](const Sighting& next) {
    if (last && last->digest == next.digest) {
      ++report_.surplus;
      if (!told) ++report_.duplicated_ids;
      if (!told && report_.doubled.size() < options_.shown_max)
        report_.doubled.push_back({{partitions_[last->partition], last->offset},
                                   {partitions_[next.partition], next.offset}});
      told = true;
      return;
    }
    last = next;
    told = false;
  }));
  find_gaps();
  return report_;
}

}  // namespace once::audit
