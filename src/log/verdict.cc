// SPDX-License-Identifier: Apache-2.0
#include "log/verdict.h"

#include <algorithm>
#include <utility>

namespace once::log {
namespace {

void add(std::vector<Run>& into, const Run& run) {
  if (!into.empty()) {
    Run& last = into.back();
    const bool follows = last.offset < 0 ? run.offset < 0 : last.offset + last.count == run.offset;
    if (last.is_duplicate == run.is_duplicate && follows) {
      last.count += run.count;
      return;
    }
  }
  into.push_back(run);
}

}  // namespace

Receipt Verdict::receipt() const {
  Receipt receipt{runs.empty() ? -1 : runs.front().offset, 0};
  for (const Run& run : runs)
    if (run.is_duplicate) receipt.duplicates += run.count;
  return receipt;
}

bool Verdict::needs_lookup() const {
  return std::any_of(runs.begin(), runs.end(), [](const Run& run) { return run.offset < 0; });
}

void add_part(Verdict& into, const Verdict& part, std::uint32_t begin) {
  for (Run run : part.runs) {
    run.begin += begin;
    add(into.runs, run);
  }
}

void add_duplicates(std::vector<Run>& into, std::uint64_t first_sequence, Interval sequences,
                    std::span<const Placed> originals) {
  const auto add_part = [&](std::uint64_t begin, std::uint64_t end, std::int64_t offset) {
    if (begin < end)
      add(into, {static_cast<std::uint32_t>(begin - first_sequence),
                 static_cast<std::uint32_t>(end - begin), true, offset});
  };
  std::uint64_t next = sequences.begin;
  for (const Placed& original : originals) {
    const std::uint64_t begin = std::max(next, original.sequences.begin);
    const std::uint64_t end = std::min(sequences.end, original.sequences.end);
    if (begin >= end) continue;
    add_part(next, begin, -1);
    add_part(begin, end,
             original.offset + static_cast<std::int64_t>(begin - original.sequences.begin));
    next = end;
  }
  add_part(next, sequences.end, -1);
}

Status look_up(Verdict& verdict, Reader& reader, const End& durable) {
  std::vector<Run> runs;
  for (const Run& run : verdict.runs) {
    if (run.offset >= 0) {
      add(runs, run);
      continue;
    }
    const std::uint64_t begin = verdict.stamp.sequence + run.begin;
    const Interval wanted{begin, begin + run.count};
    const auto found = ONCE_TRY(reader.find(verdict.stamp.producer, wanted, durable));
    add_duplicates(runs, verdict.stamp.sequence, wanted, found);
  }
  verdict.runs = std::move(runs);
  return {};
}

}  // namespace once::log
