// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace once {

// What a pipeline or a relay tells about itself: what it counts, and what happens to it.

enum class Severity : std::uint8_t { debug, info, warning, error };

enum class EventKind : std::uint8_t {
  store_away,  // it cannot be used at present, and is asked again and again
  store_back,
  source_away,
  source_back,
  destination_away,
  destination_back,
  claim_awaited,  // of an effect outside the store: another process runs it, or a lease ran out
  claim_free,
  statement_failing,  // a statement of the handler fails for all messages, in a way that may pass
  statement_passes,
  partitions_assigned,
  partitions_revoked,
  partitions_awaited,  // this process has none: others of its group have them all, or it is new
  message_parked,
  message_retried,
  fenced,         // another owner has taken what this process was working on
  standing_by,    // another process does it
  took_over,      // this process does it from now on
  clocks_differ,  // the store's clock and that of this machine
};

constexpr const char* name_of(Severity severity) {
  switch (severity) {
    case Severity::debug: return "debug";
    case Severity::info: return "info";
    case Severity::warning: return "warning";
    case Severity::error: return "error";
  }
  return "?";
}
[[nodiscard]] const char* name_of(EventKind kind);

struct Event {
  Severity severity = Severity::info;
  EventKind kind = EventKind::store_away;
  std::string text = {};          // for people: what happened, where, and what to do
  std::string subject = {};       // the partitions or the destination concerned, if any
  std::string tag = {};           // of the error that caused it, if one did
  std::uint64_t count = 1;        // how many such events this one stands for
  std::int64_t duration_ms = -1;  // for how long it has lasted; -1: it has no duration

  bool operator==(const Event&) const = default;
};

// Called from any thread, one call at a time. It must not block, since a lane may be waiting for
// it; it may call `statistics` and `stop`. Repetitions are counted, not told one by one: the first
// event of a kind comes at once, further ones as a count after some time.
using Observer = std::function<void(const Event&)>;

// What a pipeline counts. `pipeline_figures` says what each number means; it and everything that is
// shown, written or summed up follow from one table (runtime/figures.h).
template <class Number>
struct Counts {
  Number delivered{0};
  Number applied{0};
  Number rejected{0};
  Number no_effect{0};
  Number parked{0};
  Number mismatched{0};
  Number too_old{0};
  Number ahead{0};
  Number duplicates{0};
  Number skipped{0};
  Number passed{0};
  Number retried{0};
  Number deferred{0};
  Number transactions{0};
  Number rolled_back{0};
  Number rechecked{0};
  Number forgotten{0};
  Number batch_count{0};  // the present size of a batch
};

struct Statistics : Counts<std::uint64_t> {
  // Messages the topic has that no process of the scope has handled, as far as the ends of its
  // partitions are known: of `lag_partitions` of them. -1: of none.
  std::int64_t lag = -1;
  std::size_t lag_partitions = 0;
  std::size_t partitions = 0;  // of the topic; 0: not known
  // Why nothing moves: what the store or the source answered last, while it is asked again and
  // again. Empty while they do what they are asked.
  std::string waiting = {};
};

// One number of a `Statistics` or a `RelayState`. Reports, JSON and metrics are made from these
// tables: a number that is added there appears everywhere.
template <class Of>
struct Figure {
  enum class Shown : std::uint8_t {
    in_full,      // only where everything is shown, as in JSON
    in_summary,   // also in the table at the end of a run
    in_progress,  // also in the line that shows how it goes
  };

  std::string_view name;  // one word, with underscores
  std::string_view unit;  // what is counted
  std::string_view help;
  bool grows = true;  // a total since the start; otherwise a present value
  Shown shown = Shown::in_full;
  std::int64_t (*read)(const Of&) = nullptr;
};

[[nodiscard]] std::span<const Figure<Statistics>> pipeline_figures();

}  // namespace once
