// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/clock.h>
#include <once/observe.h>
#include <once/result.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace once {

// Something that work can have to wait for, and the two events that say so.
struct Dependency {
  EventKind away;
  std::optional<EventKind> back;  // unset: another event says so
  std::string_view name;          // for people
  Severity severity = Severity::warning;
  std::string_view is_back = "is back";
};
inline constexpr Dependency the_store{EventKind::store_away, EventKind::store_back, "the store"};
inline constexpr Dependency the_source{EventKind::source_away, EventKind::source_back,
                                       "the source"};
inline constexpr Dependency a_destination{EventKind::destination_away, EventKind::destination_back,
                                          "the destination"};
inline constexpr Dependency a_claim{EventKind::claim_awaited, EventKind::claim_free, "a claim",
                                    Severity::info, "is free"};
inline constexpr Dependency a_statement{EventKind::statement_failing, EventKind::statement_passes,
                                        "a statement", Severity::warning, "passes"};
inline constexpr Dependency the_group{EventKind::partitions_awaited, std::nullopt, "partitions",
                                      Severity::info};

// Names as an event tells them: the first ones, and how many more there are.
[[nodiscard]] std::string list_of(const std::vector<std::string>& names);

// How often something that goes on is told.
struct EventPace {
  std::int64_t grace_ms = 1'000;         // what is over sooner is not told as "away"
  std::int64_t repeat_ms = 30'000;       // the first repetition; each further one takes twice as
  std::int64_t repeat_ms_max = 600'000;  // long, up to this
};

// The one place that decides what an observer is told, and when: conditions that last are told
// when they have lasted for a while, again at growing intervals, and when they are over; things
// that happen often are told at once the first time, and then counted.
//
// Any thread. The observer is called by the thread that reports, or by the one that calls `tick`.
class EventLog {
 public:
  EventLog(Observer observer, Clock& clock, EventPace pace = {});

  // `waiter` cannot go on because of this dependency. Several may wait for the same: it is back
  // when none does.
  void away(const Dependency& on, std::string_view subject, const void* waiter, const Error& why);
  // It has answered this waiter. Costs nothing while nobody waits.
  void back(const Dependency& on, std::string_view subject, const void* waiter);
  // This waiter has nothing to do any more, which says nothing about the dependency.
  void leave(const Dependency& on, std::string_view subject, const void* waiter);

  // Something happened that may happen often; events of a kind and a group are counted together.
  void count(Event event, std::string_view group = {});
  // Something that is told in any case.
  void tell(const Event& event);

  // Tells what is due. Called often, by anyone; costs nothing while nothing is due.
  void tick();
  // Tells all counts that were held back: nothing comes after this.
  void finish();

  // What is waited for, if it has been exhausted for so long: waiting has not helped.
  std::optional<Error> exhausted_for(std::int64_t ms) const;

  // What is waited for at present, by the longest wait; empty: nothing.
  std::string waiting() const;

  static constexpr std::size_t groups_max = 1'000;

 private:
  // When something that goes on is told next.
  struct Repetition {
    std::int64_t next_ns = 0;
    std::int64_t interval_ms = 0;
  };
  struct Outage {
    const Dependency* on = nullptr;
    std::int64_t since_ns = 0;
    std::int64_t exhausted_since_ns = -1;  // -1: by now it is something else
    std::set<const void*> waiters;
    Error why;
    bool told = false;
    Repetition repetition;
  };
  struct Repeated {
    Event latest;
    std::uint64_t held_back = 0;  // happened since it was told
    Repetition repetition;
  };
  using OutageKey = std::pair<EventKind, std::string>;
  using RepeatedKey = std::pair<EventKind, std::string>;
  using Events = std::vector<Event>;

  static Event event_of(const Outage& outage, std::string_view subject, std::int64_t now_ns);
  void schedule(Repetition& repetition, std::int64_t now_ns) const;
  void collect_due(std::int64_t now_ns, Events& events);
  void look_again_at(std::int64_t at_ns);
  void notify(const Events& events) const;

  const Observer observer_;
  Clock& clock_;
  const EventPace pace_;

  std::mutex order_mutex_;  // taken before mutex_, held while the observer is called
  mutable std::mutex mutex_;
  std::map<OutageKey, Outage> outages_;       // guarded by mutex_
  std::map<RepeatedKey, Repeated> repeated_;  // guarded by mutex_
  std::atomic<std::size_t> outage_count_{0};
  std::atomic<std::int64_t> due_ns_;  // nothing has to be told before
};

}  // namespace once
