// SPDX-License-Identifier: Apache-2.0
#include "runtime/event_log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <span>

namespace once {
namespace {

constexpr std::int64_t ns_per_ms = 1'000'000;
constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

std::string name_of(const Dependency& on, std::string_view subject) {
  return fmt::format("{}{}{}", on.name, subject.empty() ? "" : " ", subject);
}

}  // namespace

std::string list_of(const std::vector<std::string>& names) {
  constexpr std::size_t names_told_max = 8;
  const std::size_t told = std::min(names.size(), names_told_max);
  std::string list = fmt::format("{}", fmt::join(std::span(names).first(told), ", "));
  if (told < names.size()) list += fmt::format(" and {} more", names.size() - told);
  return list;
}

EventLog::EventLog(Observer observer, Clock& clock, EventPace pace)
    : observer_(std::move(observer)), clock_(clock), pace_(pace), due_ns_(never) {}

void EventLog::away(const Dependency& on, std::string_view subject, const void* waiter,
                    const Error& why) {
  const std::lock_guard order(order_mutex_);
  Events events;
  {
    const std::lock_guard lock(mutex_);
    const std::int64_t now_ns = clock_.ticks_ns();
    Outage& outage = outages_[{on.away, std::string(subject)}];
    if (outage.on == nullptr || (outage.waiters.empty() && !outage.told)) {
      outage.on = &on;
      outage.since_ns = now_ns;
      outage.exhausted_since_ns = -1;
      outage.repetition.next_ns = now_ns + pace_.grace_ms * ns_per_ms;
      look_again_at(outage.repetition.next_ns);
    }
    outage.waiters.insert(waiter);
    if (why.tag != "exhausted")
      outage.exhausted_since_ns = -1;
    else if (outage.exhausted_since_ns < 0)
      outage.exhausted_since_ns = now_ns;
    outage.why = why;
    outage_count_ = outages_.size();
    collect_due(now_ns, events);
  }
  notify(events);
}

void EventLog::back(const Dependency& on, std::string_view subject, const void* waiter) {
  if (outage_count_ == 0) return;
  const std::lock_guard order(order_mutex_);
  Events events;
  {
    const std::lock_guard lock(mutex_);
    const auto found = outages_.find({on.away, std::string(subject)});
    if (found == outages_.end()) return;
    Outage& outage = found->second;
    outage.waiters.erase(waiter);
    if (!outage.waiters.empty()) return;
    if (outage.told && on.back) {
      Event event = event_of(outage, subject, clock_.ticks_ns());
      event.severity = Severity::info;
      event.kind = *on.back;
      event.tag.clear();
      event.text = fmt::format("{} {} after {:.1f} s", name_of(on, subject), on.is_back,
                               static_cast<double>(event.duration_ms) / 1000);
      events.push_back(std::move(event));
    }
    outages_.erase(found);
    outage_count_ = outages_.size();
  }
  notify(events);
}

void EventLog::leave(const Dependency& on, std::string_view subject, const void* waiter) {
  if (outage_count_ == 0) return;
  const std::lock_guard lock(mutex_);
  const auto found = outages_.find({on.away, std::string(subject)});
  if (found != outages_.end()) found->second.waiters.erase(waiter);
}

void EventLog::count(Event event, std::string_view group) {
  const std::lock_guard order(order_mutex_);
  Events events;
  {
    const std::lock_guard lock(mutex_);
    const std::int64_t now_ns = clock_.ticks_ns();
    RepeatedKey key{event.kind, std::string(group)};
    if (repeated_.size() >= groups_max && !repeated_.contains(key)) key.second.clear();
    Repeated& repeated = repeated_[std::move(key)];
    repeated.held_back += event.count;
    repeated.latest = std::move(event);
    look_again_at(repeated.repetition.next_ns);
    collect_due(now_ns, events);
  }
  notify(events);
}

void EventLog::tell(const Event& event) {
  const std::lock_guard order(order_mutex_);
  notify({event});
}

void EventLog::tick() {
  if (clock_.ticks_ns() < due_ns_) return;
  const std::lock_guard order(order_mutex_);
  Events events;
  {
    const std::lock_guard lock(mutex_);
    collect_due(clock_.ticks_ns(), events);
  }
  notify(events);
}

void EventLog::finish() {
  const std::lock_guard order(order_mutex_);
  Events events;
  {
    const std::lock_guard lock(mutex_);
    outages_.clear();
    outage_count_ = 0;
    for (auto& [key, repeated] : repeated_) repeated.repetition.next_ns = 0;
    due_ns_ = 0;
    collect_due(clock_.ticks_ns(), events);
  }
  notify(events);
}

std::optional<Error> EventLog::exhausted_for(std::int64_t ms) const {
  if (outage_count_ == 0) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const std::int64_t before_ns = clock_.ticks_ns() - ms * ns_per_ms;
  for (const auto& [key, outage] : outages_)
    if (!outage.waiters.empty() && outage.exhausted_since_ns >= 0 &&
        outage.exhausted_since_ns <= before_ns)
      return outage.why;
  return std::nullopt;
}

std::string EventLog::waiting() const {
  const std::lock_guard lock(mutex_);
  const Outage* longest = nullptr;
  for (const auto& [key, outage] : outages_)
    if (!outage.waiters.empty() && (longest == nullptr || outage.since_ns < longest->since_ns))
      longest = &outage;
  return longest == nullptr ? "" : longest->why.text;
}

Event EventLog::event_of(const Outage& outage, std::string_view subject, std::int64_t now_ns) {
  return {.severity = outage.on->severity,
          .kind = outage.on->away,
          .text = fmt::format("waiting for {}: {}", name_of(*outage.on, subject), outage.why.text),
          .subject = std::string(subject),
          .tag = outage.why.tag,
          .duration_ms = (now_ns - outage.since_ns) / ns_per_ms};
}

// The first time it is told, and whenever it was not due for a whole interval, it begins anew.
void EventLog::schedule(Repetition& repetition, std::int64_t now_ns) const {
  const bool goes_on = repetition.interval_ms > 0 &&
                       now_ns - repetition.next_ns < repetition.interval_ms * ns_per_ms;
  repetition.interval_ms =
      goes_on ? std::min(repetition.interval_ms * 2, pace_.repeat_ms_max) : pace_.repeat_ms;
  repetition.next_ns = now_ns + repetition.interval_ms * ns_per_ms;
}

void EventLog::collect_due(std::int64_t now_ns, Events& events) {
  if (now_ns < due_ns_) return;
  due_ns_ = never;
  for (auto& [key, outage] : outages_) {
    if (outage.waiters.empty()) continue;
    if (now_ns >= outage.repetition.next_ns) {
      outage.told = true;
      events.push_back(event_of(outage, key.second, now_ns));
      schedule(outage.repetition, now_ns);
    }
    look_again_at(outage.repetition.next_ns);
  }
  for (auto& [key, repeated] : repeated_) {
    if (repeated.held_back == 0) continue;
    if (now_ns >= repeated.repetition.next_ns) {
      events.push_back(repeated.latest);
      events.back().count = std::exchange(repeated.held_back, 0);
      schedule(repeated.repetition, now_ns);
      continue;
    }
    look_again_at(repeated.repetition.next_ns);
  }
}

void EventLog::look_again_at(std::int64_t at_ns) {
  if (at_ns < due_ns_) due_ns_ = at_ns;
}

// Looking on never changes the work, so what an observer throws ends here.
void EventLog::notify(const Events& events) const {
  if (!observer_) return;
  for (const Event& event : events) try {
      observer_(event);
    } catch (...) {
    }
}

}  // namespace once
