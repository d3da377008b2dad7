// SPDX-License-Identifier: Apache-2.0
#include "cli/relay_threads.h"

#include <fmt/format.h>
#include <once/clock.h>
#include <once/open.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "base/exception.h"
#include "open/topics.h"

namespace once::cli {
namespace {

constexpr std::int64_t idle_ms = 50;
constexpr std::int64_t away_ms_max = 2'000;  // less than a lease: waiting does not lose the role
constexpr std::int64_t ns_per_ms = 1'000'000;

std::string producer_name(const Plan& plan, const EmitRule& emit) {
  return fmt::format("{}/{}", plan.relay_name, emit.destination);
}

// Renaming a destination would leave behind what still waits for it.
Status check_left_behind(Store& store, const Plan& plan) {
  if (store.outbox() == nullptr) return {};
  const std::string prefix = fmt::format("run/{}/", plan.options.scope);
  for (const std::string& waiting : ONCE_TRY(store.outbox()->destinations())) {
    if (!waiting.starts_with(prefix)) continue;
    const bool known = std::any_of(plan.emits.begin(), plan.emits.end(), [&](const EmitRule& emit) {
      return emit.destination == waiting;
    });
    if (!known)
      return fail(
          Remedy::stop, "config",
          fmt::format("{}: messages wait in the outbox for \"{}\", which the file no longer "
                      "names; put that [[emit]] back until they are sent",
                      plan.file, waiting.substr(prefix.size())));
  }
  return {};
}

Error unsent(Error error) {
  error.text += "; what was not sent waits in the outbox for the next run";
  return error;
}

bool may_try_again(const Error& error) {
  return error.remedy == Remedy::retry || error.remedy == Remedy::recheck;
}

}  // namespace

Result<std::unique_ptr<RelayThreads>> RelayThreads::open(Store& store, const Plan& plan) {
  std::unique_ptr<RelayThreads> made(new RelayThreads(plan));
  ONCE_TRY(check_left_behind(store, plan));
  std::set<std::string> seen;
  for (const EmitRule& emit : plan.emits)
    if (seen.insert(emit.destination).second) ONCE_TRY(made->add(store, emit));
  return made;
}

Status RelayThreads::add(Store& store, const EmitRule& emit) {
  if (const auto there = describe_topic_at(emit.to); !there) {
    Error error = plan_.error_at(emit.place, there.error().tag, there.error().text);
    error.remedy = there.error().remedy;
    return fail(std::move(error));
  }
  RelayOptions options;
  options.name = producer_name(plan_, emit);
  options.destinations = {emit.destination};
  auto line = std::make_unique<Line>();
  line->to = emit.to;
  line->relay = ONCE_TRY(Relay::make(
      store,
      [to = emit.to](std::string_view) -> Result<std::shared_ptr<Sink>> { return open_sink(to); },
      options));
  lines_.push_back(std::move(line));
  return {};
}

RelayThreads::~RelayThreads() { static_cast<void>(finish(0)); }

void RelayThreads::start(std::function<void()> on_failure) {
  on_failure_ = std::move(on_failure);
  for (const auto& line : lines_) line->thread = std::thread([this, &line = *line] { work(line); });
}

std::uint64_t RelayThreads::sent() const {
  std::uint64_t sum = 0;
  for (const auto& line : lines_) sum += line->sent;
  return sum;
}

std::uint64_t RelayThreads::parked() const {
  std::uint64_t sum = 0;
  for (const auto& line : lines_) sum += line->parked;
  return sum;
}

std::vector<std::string> RelayThreads::take_notes() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(notes_, {});
}

void RelayThreads::note(Line& line, std::string text) {
  if (line.said == text) return;
  line.said = text;
  if (text.empty()) return;
  const std::scoped_lock lock(mutex_);
  notes_.push_back(std::move(text));
}

void RelayThreads::failed(const Error& error) {
  {
    const std::scoped_lock lock(mutex_);
    if (error_) return;
    error_ = unsent(error);
  }
  on_failure_();
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
    std::int64_t away_ms = idle_ms;
    while (go_on(line, line.relay->step(), away_ms)) continue;
  } catch (const std::exception& exception) {
    failed(error_from_exception(exception));
  }
}

bool RelayThreads::go_on(Line& line, const Result<std::size_t>& step, std::int64_t& away_ms) {
  const RelayState state = line.relay->state();
  line.sent = state.sent;
  if (state.parked > line.parked)
    note(line,
         fmt::format("{}: {} messages can never be sent there and were parked: once outbox ls",
                     line.to, state.parked));
  line.parked = state.parked;
  if (step) {
    away_ms = idle_ms;
    if (*step > 0) return true;
    if (!state.sender.empty())
      note(line, fmt::format("{}: {} sends; standing by", line.to, state.sender));
    // What another process sends is not lost, and is not ours to wait for but for a while.
    return wait(idle_ms, state.sender.empty());
  }
  if (may_try_again(step.error())) {
    note(line, fmt::format("{}: waiting: {}", line.to, step.error().text));
    away_ms = std::min(away_ms * 2, away_ms_max);
    if (wait(away_ms, false)) return true;
  }
  failed(step.error());
  return false;
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

}  // namespace once::cli
