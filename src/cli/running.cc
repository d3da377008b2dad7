// SPDX-License-Identifier: Apache-2.0
#include "cli/running.h"

#include <fmt/format.h>
#include <once/clock.h>
#include <once/pipeline.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <functional>
#include <memory>
#include <string>

#include "cli/exit_code.h"
#include "cli/relay_threads.h"
#include "operate/pipeline_role.h"

namespace once::cli {
namespace {

constexpr std::int64_t ns_per_second = 1'000'000'000;
// For how long a run that has reached its end tries to send what it emitted, and one that was told
// to stop.
constexpr std::int64_t send_at_end_ms = 30'000;
constexpr std::int64_t send_at_stop_ms = 1'000;

constexpr std::string_view overdue =
    "what is in hand cannot be finished: ending as after a crash. What is not committed is handled "
    "after the next start";

// What is known while it runs, for people.
class Watch {
 public:
  Watch(std::int64_t stats_every_s, const Pipeline& pipeline, RelayThreads& relay, Output& output)
      : stats_every_s_(stats_every_s),
        pipeline_(pipeline),
        relay_(relay),
        output_(output),
        progress_(output) {}

  void tick() {
    tell_notes();
    const std::int64_t now_ns = system_clock().ticks_ns();
    if (now_ns - seen_ns_ < ns_per_second) return;
    const Statistics now = pipeline_.statistics();
    const std::uint64_t handled = handled_by(now);
    tell_waiting(handled == seen_ ? now.waiting : "");
    const double seconds = static_cast<double>(now_ns - seen_ns_) / 1e9;
    const auto per_second = static_cast<double>(handled - seen_) / seconds;
    seen_ns_ = now_ns;
    seen_ = handled;
    const std::string line = line_of(now, static_cast<std::int64_t>(per_second));
    progress_.show(line, now_ns);
    if (stats_every_s_ == 0 || now_ns - told_ns_ < stats_every_s_ * ns_per_second) return;
    told_ns_ = now_ns;
    progress_.clear();
    output_.talk(line);
  }

  void clear() {
    progress_.clear();
    tell_notes();
  }

  void report() {
    if (output_.json())
      output_.write_json(json());
    else
      output_.write_table(table());
  }

 private:
  // What lasts from one tick to the next is told, once; a conflict that is over soon is not.
  void tell_waiting(const std::string& why) {
    const bool lasts = why.empty() == waiting_.empty();
    waiting_ = why;
    if (!lasts || why.empty() == told_waiting_.empty()) return;
    told_waiting_ = why;
    progress_.clear();
    output_.talk(why.empty() ? "going on" : fmt::format("waiting, and trying again: {}", why));
  }

  void tell_notes() {
    for (const std::string& note : relay_.take_notes()) {
      progress_.clear();
      output_.talk(note);
    }
  }
  static std::uint64_t handled_by(const Statistics& s) {
    return s.applied + s.rejected + s.no_effect + s.parked + s.duplicates + s.skipped;
  }
  static std::string number(std::uint64_t count) {
    return grouped(static_cast<std::int64_t>(count));
  }
  double seconds() const {
    return static_cast<double>(system_clock().ticks_ns() - began_ns_) / 1e9;
  }

  std::string line_of(const Statistics& s, std::int64_t per_second) const {
    return fmt::format("  {} messages/s, lag {}, applied {}, duplicates {}, parked {}",
                       grouped(per_second), s.lag < 0 ? "?" : grouped(s.lag), number(s.applied),
                       number(s.duplicates + s.skipped), number(s.parked));
  }

  Table table() const {
    const Statistics s = pipeline_.statistics();
    Table made({"applied", "rejected", "no effect", "parked", "mismatched", "too old", "ahead",
                "duplicates", "skipped", "retried", "emitted", "seconds"});
    made.row({number(s.applied), number(s.rejected), number(s.no_effect), number(s.parked),
              number(s.mismatched), number(s.too_old), number(s.ahead), number(s.duplicates),
              number(s.skipped), number(s.retried), number(relay_.sent()),
              fmt::format("{:.1f}", seconds())});
    return made;
  }

  Json json() const {
    const Statistics s = pipeline_.statistics();
    return {{"delivered", s.delivered},
            {"applied", s.applied},
            {"rejected", s.rejected},
            {"no_effect", s.no_effect},
            {"parked", s.parked},
            {"duplicates", s.duplicates},
            {"skipped", s.skipped},
            {"mismatched", s.mismatched},
            {"too_old", s.too_old},
            {"ahead", s.ahead},
            {"retried", s.retried},
            {"transactions", s.transactions},
            {"rolled_back", s.rolled_back},
            {"rechecked", s.rechecked},
            {"forgotten", s.forgotten},
            {"emitted", relay_.sent()},
            {"emits_parked", relay_.parked()},
            {"lag", s.lag},
            {"seconds", seconds()}};
  }

  const std::int64_t stats_every_s_;
  const Pipeline& pipeline_;
  RelayThreads& relay_;
  Output& output_;
  Progress progress_;
  const std::int64_t began_ns_ = system_clock().ticks_ns();
  std::int64_t seen_ns_ = began_ns_;
  std::int64_t told_ns_ = began_ns_;
  std::uint64_t seen_ = 0;
  std::string waiting_;       // why nothing moved at the last tick
  std::string told_waiting_;  // what people were told about that
};

// Where only one process can read the source, the others wait here until it is their turn.
Status take_turn(const Running& running, const SignalWatch& signals, Output& output,
                 const std::function<Status()>& work) {
  const std::string& scope = running.plan.options.scope;
  if (!operate::is_for_one_process(running.plan.source_url) || running.store.claims() == nullptr)
    return work();
  operate::PipelineRole role(running.store, scope);
  const bool ours =
      ONCE_TRY(role.await([&] { return signals.came() != 0; },
                          [&](const std::string& holder) {
                            output.talk(fmt::format("{}: {} runs the scope \"{}\"; standing by",
                                                    running.plan.file, holder, scope));
                          }));
  if (!ours) return {};  // told to stop
  role.keep();
  return work();
}

}  // namespace

void add_running_flags(CLI::App& command, RunningFlags& flags) {
  command.add_option("--stats-every", flags.stats_every_s, "Tell how it goes every N seconds")
      ->check(CLI::Range(1, 86400).description(""))
      ->option_text("N");
  command.add_flag("--quiet", flags.quiet, "No talk on stderr but errors");
  command
      .add_option("--wait", flags.wait_s,
                  "Wait N seconds for what is away at the start (without limit)")
      ->check(CLI::NonNegativeNumber.description(""))
      ->option_text("N");
}

void tell_warnings(const Source& source, Output& output) {
  for (const std::string& warning : source.traits().warnings) output.talk("warning: " + warning);
}

Result<int> run_until_stopped(const Running& running, operate::Patience& patience,
                              SignalWatch& signals, Output& output) {
  const Plan& plan = running.plan;
  // Threads end before what they call: relays before the pipeline, and the signal watch calls
  // neither outside of its scope, even if an exception leaves this function because a thread or
  // memory could not be had.
  auto pipeline = ONCE_TRY(patience.until_there("the store", [&] {
    return Pipeline::make(running.source, running.store, running.handler, plan.options);
  }));
  auto relay = ONCE_TRY(patience.until_there(
      "a destination", [&] { return RelayThreads::open(running.store, plan); }));
  Watch watch(running.stats_every_s, *pipeline, *relay, output);
  Status ran;
  Status sent;
  {
    const SignalWatch::Scope stoppable(signals, {.on_signal = [&] { pipeline->stop(); },
                                                 .on_overdue =
                                                     [&] {
                                                       output.talk(overdue);
                                                       running.source.leave();
                                                     },
                                                 .on_tick = [&] { watch.tick(); }});
    ran = take_turn(running, signals, output, [&] {
      relay->start([&] { pipeline->stop(); });
      return pipeline->run();
    });
    sent = relay->finish(signals.came() == 0 ? send_at_end_ms : send_at_stop_ms);
  }
  watch.clear();
  if (running.report) watch.report();
  if (!ran) return fail(ran.error());
  if (!sent) return fail(sent.error());
  return signals.came() == SIGINT ? exit_interrupted : exit_ok;
}

}  // namespace once::cli
