// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
#include <once/result.h>

#include <cstdint>
#include <span>
#include <vector>

#include "log/producer_table.h"
#include "log/reader.h"

namespace once::log {

// Neighbours in an append that were judged alike and lie one behind the other in the log.
struct Run {
  std::uint32_t begin = 0;  // place of the first in the append
  std::uint32_t count = 0;
  bool is_duplicate = false;
  std::int64_t offset = -1;  // of the first, or of its original; -1: not known

  bool operator==(const Run&) const = default;
};

// What became of the messages of one append, each of them.
struct Verdict {
  Stamp stamp;
  std::vector<Run> runs;  // in order, all messages together

  // The contract's short form: where the first message is, and how many were there before.
  Receipt receipt() const;
  // Whether the place of an original has to be looked up in the log.
  bool needs_lookup() const;

  bool operator==(const Verdict&) const = default;
};

// Adds runs for the duplicates with these sequences, from the places of their originals (sorted,
// not overlapping); `first_sequence` is that of the append.
void add_duplicates(std::vector<Run>& into, std::uint64_t first_sequence, Interval sequences,
                    std::span<const Placed> originals);

// Adds the runs of a later part of the same append, whose first message is at this place in it.
void add_part(Verdict& into, const Verdict& part, std::uint32_t begin);

// Finds the originals that are not known, by reading. What retention has deleted stays -1.
[[nodiscard]] Status look_up(Verdict& verdict, Reader& reader, const End& durable);

}  // namespace once::log
