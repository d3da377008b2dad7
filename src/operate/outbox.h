// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "operate/books.h"
#include "operate/json.h"

namespace once::operate {

// A destination that a relay has sent to, or that has rows.
struct DestinationRecord {
  std::string name;
  std::size_t pending = 0;
  bool more_pending = false;  // than could be counted
  std::size_t parked = 0;
  std::int64_t restarts = 0;
  std::string sender = {};    // the process that sends; empty: none does
  bool is_sent_to = false;    // the sender has been heard of within its lease
  std::string trouble = {};   // what the last relay has reported that cannot send there ...
  bool has_diverged = false;  // ... since it has diverged, which a restart repairs
};
[[nodiscard]] Result<std::vector<DestinationRecord>> destinations_in(Books& books);

// What the last relay has reported that cannot send to a destination of this name; empty: nothing.
[[nodiscard]] Result<std::string> trouble_at(Store& store, const std::string& name);

// Which messages that are parked in the outbox.
struct EmitSelection {
  std::vector<std::int64_t> numbers = {};
  std::string destination = {};
  bool all = false;

  int ways() const;
};
// In the order of their numbers. A number that is not parked is an error.
[[nodiscard]] Result<std::vector<ParkedRecord>> parked_emits(Books& books,
                                                             const EmitSelection& selection);

// The same, to be changed: where nothing is chosen, that is an error.
[[nodiscard]] Result<std::vector<ParkedRecord>> emits_to_change(Books& books,
                                                                const EmitSelection& selection);

// What waits to be sent, by destination and in the order in which it leaves; at most `count_max` of
// each. An empty name stands for all destinations.
struct PendingEmit {
  std::string destination;
  OutboxRow row;
};
[[nodiscard]] Result<std::vector<PendingEmit>> pending_emits(Books& books, const std::string& name,
                                                             std::size_t count_max);

std::vector<std::int64_t> numbers_of(const std::vector<ParkedRecord>& rows);

// Gives messages up: they are never sent.
[[nodiscard]] Status drop_emits(Books& books, const std::vector<ParkedRecord>& rows,
                                const std::string& reason);
// Back to where they came from, behind what is pending there.
[[nodiscard]] Status retry_emits(Books& books, const std::vector<ParkedRecord>& rows,
                                 const std::string& reason);

// Gives up everything that is pending for a destination, which is restarted: what a relay has sent
// without an answer may be there. Answers what was pending. With `only_look` nothing is changed.
[[nodiscard]] Result<DestinationRecord> drop_pending(Books& books, const std::string& name,
                                                     const std::string& reason, bool only_look);

// Lets relays send to a destination as a new producer, from sequence 0. Answers what it is then.
// One that a relay is sending to, or that no relay has found diverged, needs no restart: what is
// under way or was sent without an answer would arrive twice, so it is refused unless it is forced.
[[nodiscard]] Result<DestinationRecord> restart_destination(Books& books, const std::string& name,
                                                            const std::string& reason, bool force);

Json json_of(const DestinationRecord& record);
Json json_of(const PendingEmit& emit);

}  // namespace once::operate
