// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "operate/books.h"
#include "operate/failure_group.h"
#include "operate/json.h"
#include "operate/replay.h"

namespace once::operate {

// All that is parked in a scope, by number.
[[nodiscard]] Result<std::vector<ParkedSummary>> parked_in(Books& books, const std::string& scope);

struct ParkedMessage {
  std::string scope;
  ParkedRecord record;
};
// A whole message; an error of the tag "not_known" if none is parked under this number.
[[nodiscard]] Result<ParkedMessage> find_parked(Books& books, std::int64_t number);

// Which parked messages of a scope, in exactly one of these ways.
struct ParkSelection {
  std::vector<std::int64_t> numbers = {};
  std::optional<std::int64_t> group = {};  // of failures
  std::string failure = {};                // in their reasons
  bool all = false;

  int ways() const;
};

// What a replay or a drop is about to do.
struct ParkChange {
  enum class Action : std::uint8_t { replay, drop };

  Action action = Action::replay;
  std::string scope;
  std::string to = {};                       // a URL; for a replay
  std::vector<ParkedSummary> messages = {};  // in the order in which they came
  // For a replay: that some of them came from a topic of another name; empty: none did.
  std::string detour = {};
  // For a replay, why each of them would not count as new when it comes back; empty: it would.
  std::vector<std::string> obstacles = {};

  std::vector<std::int64_t> numbers() const;
  std::size_t hindered() const;
};
const char* name_of(ParkChange::Action action);

[[nodiscard]] Result<ParkChange> plan_replay(Books& books, const ParkSelection& selection,
                                             const std::string& to);
[[nodiscard]] Result<ParkChange> plan_drop(Books& books, const ParkSelection& selection);

// Sends the messages and answers how many were sent from here: all of them, or it is an error.
[[nodiscard]] Result<std::size_t> replay_parked(Books& books, const ParkChange& change,
                                                const std::string& reason, const OnSent& on_sent);
[[nodiscard]] Status drop_parked(Books& books, const ParkChange& change, const std::string& reason);

struct ResumedReplay {
  std::string url;
  std::uint64_t sent = 0;
};
// Sends what interrupted replays left behind. Asked twice, it does no harm.
[[nodiscard]] Result<std::vector<ResumedReplay>> resume_replays(Books& books,
                                                                const OnSent& on_sent);

Json json_of(const ParkedSummary& message);
Json json_of(const std::string& scope, const FailureGroup& group,
             const std::vector<ParkedSummary>& parked);
// A change that is only planned, and one that was made. `sent` is for a replay.
Json planned_json(const ParkChange& change);
Json done_json(const ParkChange& change, std::optional<std::size_t> sent);

}  // namespace once::operate
