// SPDX-License-Identifier: Apache-2.0
#include "simulation/history.h"

#include <fmt/format.h>

#include <algorithm>

namespace once::simulation {

std::string History::text(const Token& token) const {
  return fmt::format("{}/{} producer {:x} sequence {}", token.where.first, token.where.second,
                     token.producer, token.sequence);
}

void History::asked(const PartitionName& where, const Stamp& stamp,
                    std::span<const Message> messages) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    Fate& fate = fates_[{where, stamp.producer, stamp.sequence + i}];
    ++fate.open;
    if (std::find(fate.contents.begin(), fate.contents.end(), messages[i]) == fate.contents.end())
      fate.contents.push_back(messages[i]);
  }
}

void History::finished(const PartitionName& where, const Stamp& stamp, std::size_t count,
                       const Result<Receipt>& answer) {
  for (std::size_t i = 0; i < count; ++i) {
    const Token token{where, stamp.producer, stamp.sequence + i};
    Fate& fate = fates_[token];
    --fate.open;
    if (!answer) {
      // `retry` and a fence mean that nothing happened; after anything else nobody knows.
      if (answer.error().remedy != Remedy::retry && answer.error().tag != "fenced")
        fate.maybe = true;
      continue;
    }
    fate.maybe = true;
    fate.acknowledged = true;
    if (i != 0 || answer->offset < 0) continue;
    if (fate.offset && *fate.offset != answer->offset)
      violate(fmt::format("I6: {} was answered with offset {} and later with {}", text(token),
                          *fate.offset, answer->offset));
    fate.offset = answer->offset;
  }
}

void History::entered(const PartitionName& where, const Stamp& stamp, std::int64_t end_offset) {
  fences_[where].push_back({stamp.producer, stamp.epoch, end_offset});
}

bool History::was_acknowledged(const PartitionName& where, const Stamp& stamp) const {
  const auto found = fates_.find({where, stamp.producer, stamp.sequence});
  return found != fates_.end() && found->second.acknowledged;
}

void History::check(const PartitionName& where, const std::vector<Record>& records, bool ordered) {
  std::map<Token, std::int64_t> found;
  for (const Record& record : records) {
    const Token token{where, record.stamp.producer, record.stamp.sequence};
    const auto [first, fresh] = found.try_emplace(token, record.offset);
    if (!fresh)
      violate(fmt::format("I2: {} is at offset {} and again at {}", text(token), first->second,
                          record.offset));
    check_record(where, record);
  }
  for (auto at = fates_.lower_bound({where, 0, 0}); at != fates_.end() && at->first.where == where;
       ++at) {
    const auto& [token, fate] = *at;
    const auto place = found.find(token);
    if (fate.acknowledged && place == found.end())
      violate(fmt::format("I1: {} was acknowledged and is gone", text(token)));
    if (!fate.maybe && fate.open == 0 && place != found.end())
      violate(fmt::format("I4: {} was refused and is at offset {}", text(token), place->second));
    if (fate.offset && place != found.end() && place->second != *fate.offset)
      violate(fmt::format("I6: {} is at offset {}, its receipt said {}", text(token), place->second,
                          *fate.offset));
  }
  check_order(where, records, ordered);
  check_fences(where, records);
}

void History::check_record(const PartitionName& where, const Record& record) {
  const Token token{where, record.stamp.producer, record.stamp.sequence};
  const auto fate = fates_.find(token);
  if (fate == fates_.end()) {
    violate(fmt::format("I3: {} was never sent and is at offset {}", text(token), record.offset));
    return;
  }
  const auto& contents = fate->second.contents;
  if (std::find(contents.begin(), contents.end(), record.message) == contents.end())
    violate(fmt::format("I3: {} was sent with other content (id \"{}\" at offset {})", text(token),
                        record.message.id, record.offset));
}

void History::check_order(const PartitionName& where, const std::vector<Record>& records,
                          bool ordered) {
  std::int64_t last_offset = -1;
  std::map<std::uint64_t, std::uint64_t> next;
  for (const Record& record : records) {
    if (record.offset <= last_offset)
      violate(fmt::format("I5: {}/{} has offset {} after {}", where.first, where.second,
                          record.offset, last_offset));
    last_offset = record.offset;
    std::uint64_t& expected = next[record.stamp.producer];
    if (ordered && record.stamp.sequence != expected)
      violate(fmt::format("I5: {}/{} offset {}: producer {:x} has sequence {}, expected {}",
                          where.first, where.second, record.offset, record.stamp.producer,
                          record.stamp.sequence, expected));
    expected = record.stamp.sequence + 1;
  }
}

void History::check_fences(const PartitionName& where, const std::vector<Record>& records) {
  for (const Fence& fence : fences_[where])
    for (const Record& record : records)
      if (record.stamp.producer == fence.producer && record.offset >= fence.end_offset &&
          record.stamp.epoch < fence.epoch)
        violate(fmt::format("I7: {}/{} offset {} has epoch {}, but {} had entered at offset {}",
                            where.first, where.second, record.offset, record.stamp.epoch,
                            fence.epoch, fence.end_offset));
}

}  // namespace once::simulation
