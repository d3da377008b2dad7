// SPDX-License-Identifier: Apache-2.0
#include "operate/runner.h"

#include <fmt/format.h>

#include "operate/pipeline_role.h"

namespace once::operate {
namespace {

// For how long a run that has reached its end tries to send what it emitted, and one that was told
// to stop.
constexpr std::int64_t send_at_end_ms = 30'000;
constexpr std::int64_t send_at_stop_ms = 1'000;

}  // namespace

Json json_of(const RunStatistics& statistics) {
  const Statistics& s = statistics.pipeline;
  return {{"delivered", s.delivered},
          {"applied", s.applied},
          {"rejected", s.rejected},
          {"no_effect", s.no_effect},
          {"parked", s.parked},
          {"duplicates", s.duplicates},
          {"skipped", s.skipped},
          {"passed", s.passed},
          {"mismatched", s.mismatched},
          {"too_old", s.too_old},
          {"ahead", s.ahead},
          {"retried", s.retried},
          {"transactions", s.transactions},
          {"rolled_back", s.rolled_back},
          {"rechecked", s.rechecked},
          {"forgotten", s.forgotten},
          {"emitted", statistics.emitted},
          {"emits_parked", statistics.emits_parked},
          {"lag", s.lag}};
}

Result<std::unique_ptr<Runner>> Runner::make(Job job, Patience& patience, Tell tell,
                                             TellError tell_error) {
  std::unique_ptr<Runner> made(new Runner(std::move(job), std::move(tell)));
  const Job& its = made->job_;
  made->pipeline_ = ONCE_TRY(patience.until_there("the store", [&] {
    return Pipeline::make(its.source, its.store, its.handler, its.options);
  }));
  made->relays_ = ONCE_TRY(patience.until_there(
      "a destination", [&] { return RelayThreads::open(its, made->tell_, tell_error); }));
  return made;
}

Status Runner::run() {
  const Status ran = in_turn([this] {
    relays_->start([this] { pipeline_->stop(); });
    return pipeline_->run();
  });
  was_overtaken_ = !ran && ran.error().tag == "fenced" && takes_turns() && !stopped_;
  const bool is_at_end = !stopped_ && !was_overtaken_;
  const Status sent = relays_->finish(is_at_end ? send_at_end_ms : send_at_stop_ms);
  return ran ? sent : ran;
}

// Where only one process can read the source, the others wait here until it is their turn.
Status Runner::in_turn(const std::function<Status()>& work) {
  if (!takes_turns()) return work();
  const std::string& scope = job_.options.scope;
  PipelineRole role(job_.store, scope);
  const bool ours = ONCE_TRY(role.await(
      [this] { return stopped_.load(); },
      [&](const std::string& holder) {
        tell_(fmt::format("{}: {} runs the scope \"{}\"; standing by", job_.name, holder, scope));
      }));
  if (!ours) return {};
  role.keep();
  return work();
}

void Runner::stop() {
  stopped_ = true;
  pipeline_->stop();
}

RunStatistics Runner::statistics() const {
  return {pipeline_->statistics(), relays_->sent(), relays_->parked()};
}

}  // namespace once::operate
