// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/clock.h>
#include <once/handler.h>
#include <once/pipeline.h>
#include <once/source.h>
#include <once/store.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace once {

constexpr const char* name_of(Verdict::Kind kind) {
  switch (kind) {
    case Verdict::Kind::fresh: return "fresh";
    case Verdict::Kind::duplicate: return "duplicate";
    case Verdict::Kind::mismatch: return "mismatch";
    case Verdict::Kind::too_old: return "too_old";
  }
  return "?";
}

// What one message would do.
struct Rehearsed {
  struct Write {
    std::string statement;
    std::optional<std::int64_t> rows;  // unset: only the commit would tell
  };
  struct Emit {
    std::string destination;
    Message message;
  };

  std::string partition;
  std::int64_t offset = 0;
  std::string id;  // empty: the message has none
  std::optional<std::string> key;
  std::optional<Verdict::Kind> verdict;  // unset: the ledger was not asked
  Outcome outcome;                       // of a duplicate: the one that is recorded
  std::uint32_t attempts = 0;
  std::vector<Write> writes;
  std::vector<Emit> emits;
};

// Handles the next messages of a topic as a lane does, one after the other in one transaction of
// the store, which is rolled back at the end: nothing is recorded, sent or acknowledged, no
// partition is taken and no position moves. A pipeline may run beside it; it waits for rows that
// are locked meanwhile, as for any other transaction.
//
// `source` must not be a member of a group. It is read from the store's positions, until there are
// `count` messages or no more. What a store does or checks only at a commit is not seen.
[[nodiscard]] Result<std::vector<Rehearsed>> rehearse(Source& source, Store& store,
                                                      const Handler& handler,
                                                      PipelineOptions options, std::size_t count,
                                                      Clock& clock = system_clock());

}  // namespace once
