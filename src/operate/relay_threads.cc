// SPDX-License-Identifier: Apache-2.0
#include "operate/relay_threads.h"

#include <fmt/format.h>
#include <once/clock.h>
#include <once/open.h>

#include <chrono>
#include <set>
#include <utility>

#include "base/exception.h"
#include "operate/shared_sinks.h"

namespace once::operate {
namespace {

constexpr std::int64_t ns_per_ms = 1'000'000;

Error unsent(Error error) {
  error.text += "; what was not sent waits in the outbox for the next run";
  return error;
}

}  // namespace

Result<std::unique_ptr<RelayThreads>> RelayThreads::open(const Job& job) {
  std::unique_ptr<RelayThreads> made(new RelayThreads(job));
  std::set<std::string> seen;
  for (const Destination& destination : job.destinations)
    if (seen.insert(destination.name).second) ONCE_TRY(made->add(destination));
  return made;
}

Status RelayThreads::add(const Destination& destination) {
  RelayOptions options;
  options.name = fmt::format("{}/{}", job_.relay_name, destination.name);
  options.destinations = {destination.name};
  options.observer = job_.options.observer;
  options.redact = job_.options.redact;
  auto line = std::make_unique<Line>();
  line->destination = destination.name;
  line->relay = ONCE_TRY(Relay::make(
      job_.store,
      [to = destination.url,
       sinks = job_.sinks](std::string_view) -> Result<std::shared_ptr<Sink>> {
        if (sinks != nullptr) return sinks->open(to);
        return open_sink(to);
      },
      options));
  lines_.push_back(std::move(line));
  return {};
}

RelayThreads::~RelayThreads() { static_cast<void>(finish(0)); }

void RelayThreads::start(std::function<void()> on_failure) {
  on_failure_ = std::move(on_failure);
  for (const auto& line : lines_) line->thread = std::thread([this, &line = *line] { work(line); });
}

RelayState RelayThreads::state() const {
  RelayState sum;
  for (const auto& line : lines_) {
    sum.sent += line->sent;
    sum.parked += line->parked;
  }
  return sum;
}

void RelayThreads::keep(const Error& error) {
  const std::scoped_lock lock(mutex_);
  if (!error_) error_ = unsent(error);
}

// Whether to go on. While finishing an idle line ends at once, and the others when it is time.
bool RelayThreads::wait(std::int64_t wait_ms, bool is_idle) {
  std::unique_lock lock(mutex_);
  if (finishing_ && (is_idle || system_clock().ticks_ns() >= give_up_ns_)) return false;
  const bool was_finishing = finishing_;
  changed_.wait_for(lock, std::chrono::milliseconds(wait_ms),
                    [&] { return finishing_ != was_finishing; });
  return true;
}

void RelayThreads::work(Line& line) {
  try {
    while (true) {
      const Status done =
          run_relay(*line.relay, {}, [&](const RelayStep& step) { return go_on(line, step); });
      count(line, line.relay->state());
      if (done) return;
      const bool needs_person = !is_transient(done.error().remedy);
      if (needs_person && wait_for_person(line, done.error())) continue;
      keep(done.error());
      if (needs_person && !has_other_work()) on_failure_();
      return;
    }
  } catch (const std::exception& exception) {
    keep(error_from_exception(exception));
    on_failure_();
  }
}

// Whether to try again. At the end there is nothing to wait for where only a person can help.
bool RelayThreads::wait_for_person(Line& line, const Error& error) {
  if (!has_other_work()) return false;
  if (line.said != error.text) {
    line.said = error.text;
    if (job_.options.observer)
      job_.options.observer(
          {.severity = Severity::error,
           .kind = EventKind::destination_away,
           .text = error.text + "; its messages wait in the outbox, and the rest goes on",
           .subject = line.destination,
           .tag = error.tag});
  }
  return wait(RelayPace().away_ms_max, true);
}

void RelayThreads::count(Line& line, const RelayState& state) {
  line.sent = state.sent;
  line.parked = state.parked;
}

bool RelayThreads::go_on(Line& line, const RelayStep& step) {
  count(line, step.state);
  if (step.sent > 0) {
    line.said.clear();  // what comes back is told again
    return true;
  }
  // What another process sends is not lost, and is not ours to wait for but for a while.
  return wait(step.rest_ms, step.is_idle());
}

Status RelayThreads::finish(std::int64_t patience_ms) {
  {
    const std::scoped_lock lock(mutex_);
    finishing_ = true;
    give_up_ns_ = system_clock().ticks_ns() + patience_ms * ns_per_ms;
  }
  changed_.notify_all();
  for (const auto& line : lines_)
    if (line->thread.joinable()) line->thread.join();
  if (error_) return fail(*error_);
  return {};
}

}  // namespace once::operate
