// SPDX-License-Identifier: Apache-2.0
#include "cli/relay_thread.h"

#include <fmt/format.h>
#include <once/clock.h>
#include <once/open.h>
#include <once/records.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "base/exception.h"

namespace once::cli {
namespace {

constexpr std::int64_t idle_ms = 50;
constexpr std::int64_t away_ms_max = 5'000;
constexpr std::int64_t ns_per_ms = 1'000'000;

std::string producer_name(const Plan& plan, const EmitRule& emit) {
  return fmt::format("{}/{}", plan.relay_name, emit.destination);
}

// Whoever renamed a destination would leave behind what still waits for it.
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

Result<bool> is_new(Store& store, const std::string& scope) {
  if (store.records() == nullptr) return false;
  const auto scopes = ONCE_TRY(store.records()->scopes());
  return std::find(scopes.begin(), scopes.end(), scope) == scopes.end();
}

// A new store counts from 0. A destination that knows its relay from an older store would take the
// first messages for duplicates.
Status check_producer(Sink& sink, const Plan& plan, const EmitRule& emit) {
  const std::string name = producer_name(plan, emit);
  const std::uint32_t partitions = ONCE_TRY(sink.partitions());
  for (std::uint32_t partition = 0; partition < partitions; ++partition) {
    const Stamp stamp = ONCE_TRY(sink.enter(partition, name));
    if (stamp.sequence == 0) continue;
    return fail(plan.error_at(
        emit.place, "config",
        fmt::format("the store is new to the scope \"{}\", but {} has {} messages of the relay "
                    "\"{}\", sent from another store: the first messages would count as duplicates "
                    "of those and be lost. Give the relay another name: [relay] name = \"...\"",
                    plan.options.scope, emit.to, stamp.sequence, plan.relay_name)));
  }
  return {};
}

Error unsent(Error error) {
  error.text += "; what was not sent waits in the outbox for the next run";
  return error;
}

}  // namespace

Result<std::unique_ptr<RelayThread>> RelayThread::open(Store& store, const Plan& plan) {
  std::unique_ptr<RelayThread> made(new RelayThread());
  ONCE_TRY(check_left_behind(store, plan));
  const bool fresh = ONCE_TRY(is_new(store, plan.options.scope));
  std::set<std::string> opened;
  for (const EmitRule& emit : plan.emits) {
    if (!opened.insert(emit.destination).second) continue;
    auto sink = open_sink(emit.to);
    if (!sink) {
      Error error = plan.error_at(emit.place, sink.error().tag, sink.error().text);
      error.remedy = sink.error().remedy;
      return fail(std::move(error));
    }
    if (fresh) ONCE_TRY(check_producer(**sink, plan, emit));
    Sink* to = sink->get();
    RelayOptions options;
    options.name = producer_name(plan, emit);
    options.destinations = {emit.destination};
    auto relay = ONCE_TRY(Relay::make(
        store, [to](std::string_view) -> Result<Sink*> { return to; }, options));
    made->targets_.push_back({std::move(*sink), std::move(relay)});
  }
  return made;
}

RelayThread::~RelayThread() { static_cast<void>(finish(0)); }

void RelayThread::start(std::function<void()> on_failure) {
  on_failure_ = std::move(on_failure);
  if (!targets_.empty()) thread_ = std::thread([this] { work(); });
}

Result<std::size_t> RelayThread::step() {
  std::size_t sent = 0;
  for (const Target& target : targets_) sent += ONCE_TRY(target.relay->step());
  sent_ += sent;
  return sent;
}

// Whether to go on. While finishing nobody waits for more to come.
bool RelayThread::wait(std::int64_t wait_ms) {
  std::unique_lock lock(mutex_);
  if (finishing_ && (wait_ms == idle_ms || system_clock().ticks_ns() >= give_up_ns_)) return false;
  const bool was_finishing = finishing_;
  changed_.wait_for(lock, std::chrono::milliseconds(wait_ms),
                    [&] { return finishing_ != was_finishing; });
  return true;
}

void RelayThread::work() {
  try {
    send();
  } catch (const std::exception& exception) {
    {
      const std::scoped_lock lock(mutex_);
      error_ = unsent(error_from_exception(exception));
    }
    on_failure_();
  }
}

void RelayThread::send() {
  std::int64_t away_ms = idle_ms;
  while (true) {
    const auto sent = step();
    if (sent && *sent > 0) {
      away_ms = idle_ms;
      continue;
    }
    if (sent) {
      if (!wait(idle_ms)) return;
      continue;
    }
    const bool may_try_again =
        sent.error().remedy == Remedy::retry || sent.error().remedy == Remedy::recheck;
    away_ms = std::min(away_ms * 2, away_ms_max);  // never the wait of an idle relay
    if (may_try_again && wait(away_ms)) continue;
    {
      const std::scoped_lock lock(mutex_);
      error_ = unsent(sent.error());
    }
    return on_failure_();
  }
}

Status RelayThread::finish(std::int64_t patience_ms) {
  if (thread_.joinable()) {
    {
      const std::scoped_lock lock(mutex_);
      finishing_ = true;
      give_up_ns_ = system_clock().ticks_ns() + patience_ms * ns_per_ms;
    }
    changed_.notify_all();
    thread_.join();
  }
  if (error_) return fail(*error_);
  return {};
}

}  // namespace once::cli
