// SPDX-License-Identifier: Apache-2.0
#include "operate/runner.h"

#include <fmt/format.h>
#include <once/clock.h>

#include "operate/check.h"
#include "operate/pipeline_role.h"

namespace once::operate {
namespace {

// For how long a run that has reached its end tries to send what it emitted, and one that was told
// to stop.
constexpr std::int64_t send_at_end_ms = 30'000;
constexpr std::int64_t send_at_stop_ms = 1'000;

}  // namespace

Json json_of(const RunStatistics& statistics) {
  Json made = Json::object();
  for (const auto& figure : pipeline_figures())
    made[figure.name] = figure.read(statistics.pipeline);
  for (const auto& figure : relay_figures()) made[figure.name] = figure.read(statistics.relays);
  return made;
}

Result<std::unique_ptr<Runner>> Runner::make(Job job, Patience& patience) {
  if (job.options.observer)
    job.options.observer = [tell = job.options.observer, scope = job.options.scope,
                            store = std::string(hint_place_of(job).store)](const Event& event) {
      Event whole = event;
      whole.text = once::with_complete_hints(event.text, {.scope = scope, .store = store});
      tell(whole);
    };
  std::unique_ptr<Runner> made(new Runner(std::move(job)));
  if (const Status opened = made->open(patience); !opened)
    return fail(with_complete_hints(opened.error(), made->job_));
  return made;
}

Status Runner::open(Patience& patience) {
  const Job& its = job_;
  pipeline_ = ONCE_TRY(patience.until_there(
      the_store, [&] { return Pipeline::make(its.source, its.store, its.handler, its.options); }));
  ONCE_TRY(patience.until_there(a_destination, [&] { return check_start(its); }));
  relays_ = ONCE_TRY(RelayThreads::open(its));
  return {};
}

Status Runner::run() {
  const Status ran = in_turn([this] {
    relays_->start([this] { pipeline_->stop(); });
    return pipeline_->run();
  });
  was_overtaken_ = !ran && ran.error().tag == "fenced" && takes_turns() && !stopped_;
  const bool is_at_end = !stopped_ && !was_overtaken_;
  const Status sent = relays_->finish(is_at_end ? send_at_end_ms : send_at_stop_ms);
  const Status& ended = ran ? sent : ran;
  if (!ended) return fail(with_complete_hints(ended.error(), job_));
  return {};
}

// Where only one process can read the source, the others wait here until it is their turn.
Status Runner::in_turn(const std::function<Status()>& work) {
  if (!takes_turns()) return work();
  const std::string& scope = job_.options.scope;
  PipelineRole role(job_.store, scope);
  EventLog events(job_.options.observer, system_clock());
  bool stood_by = false;
  const bool ours = ONCE_TRY(role.await([this] { return stopped_.load(); }, events,
                                        [&](const std::string& holder) {
                                          stood_by = true;
                                          tell_turn(EventKind::standing_by,
                                                    fmt::format("{}: {} runs the scope \"{}\"; "
                                                                "standing by",
                                                                job_.name, holder, scope));
                                        }));
  if (!ours) return {};
  if (stood_by)
    tell_turn(EventKind::took_over,
              fmt::format("{}: this process runs the scope \"{}\" now", job_.name, scope));
  role.keep();
  return work();
}

void Runner::tell_turn(EventKind kind, std::string text) const {
  if (!job_.options.observer) return;
  job_.options.observer({.severity = Severity::info,
                         .kind = kind,
                         .text = std::move(text),
                         .subject = job_.options.scope});
}

void Runner::stop() {
  stopped_ = true;
  pipeline_->stop();
}

RunStatistics Runner::statistics() const { return {pipeline_->statistics(), relays_->state()}; }

}  // namespace once::operate
