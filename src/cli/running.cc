// SPDX-License-Identifier: Apache-2.0
#include "cli/running.h"

#include <fmt/format.h>
#include <once/clock.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/exit_code.h"
#include "operate/runner.h"

namespace once::cli {
namespace {

constexpr std::int64_t ns_per_second = 1'000'000'000;

constexpr std::string_view overdue =
    "what is in hand cannot be finished: ending as after a crash. What is not committed is handled "
    "after the next start";

// Sentences and errors from any thread, for the one that writes.
class Notes {
 public:
  using Note = std::variant<std::string, Error>;

  void add(Note note) {
    const std::scoped_lock lock(mutex_);
    notes_.push_back(std::move(note));
  }
  std::vector<Note> take() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(notes_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<Note> notes_;
};

// What is known while it runs, for people.
class Watch {
 public:
  Watch(std::int64_t stats_every_s, const operate::Runner& runner, Notes& notes, Output& output)
      : stats_every_s_(stats_every_s),
        runner_(runner),
        notes_(notes),
        output_(output),
        progress_(output) {}

  void tick() {
    tell_notes();
    const std::int64_t now_ns = system_clock().ticks_ns();
    if (now_ns - seen_ns_ < ns_per_second) return;
    const Statistics now = runner_.statistics().pipeline;
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
    for (const Notes::Note& note : notes_.take()) {
      progress_.clear();
      if (const auto* error = std::get_if<Error>(&note))
        output_.complain(*error);
      else
        output_.talk(std::get<std::string>(note));
    }
  }
  static std::uint64_t handled_by(const Statistics& s) {
    return s.applied + s.rejected + s.no_effect + s.parked + s.duplicates + s.skipped + s.passed;
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
    const auto [s, emitted, emits_parked] = runner_.statistics();
    Table made({"applied", "rejected", "no effect", "parked", "mismatched", "too old", "ahead",
                "duplicates", "skipped", "passed", "retried", "emitted", "seconds"});
    made.row({number(s.applied), number(s.rejected), number(s.no_effect), number(s.parked),
              number(s.mismatched), number(s.too_old), number(s.ahead), number(s.duplicates),
              number(s.skipped), number(s.passed), number(s.retried), number(emitted),
              fmt::format("{:.1f}", seconds())});
    return made;
  }

  Json json() const {
    Json made = operate::json_of(runner_.statistics());
    made["seconds"] = seconds();
    return made;
  }

  const std::int64_t stats_every_s_;
  const operate::Runner& runner_;
  Notes& notes_;
  Output& output_;
  Progress progress_;
  const std::int64_t began_ns_ = system_clock().ticks_ns();
  std::int64_t seen_ns_ = began_ns_;
  std::int64_t told_ns_ = began_ns_;
  std::uint64_t seen_ = 0;
  std::string waiting_;       // why nothing moved at the last tick
  std::string told_waiting_;  // what people were told about that
};

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

Result<std::optional<int>> run_until_stopped(operate::Job job, const RunningView& view,
                                             operate::Patience& patience, SignalWatch& signals,
                                             Output& output) {
  Notes notes;
  const std::string name = job.name;
  const auto runner = ONCE_TRY(operate::Runner::make(
      std::move(job), patience, [&](std::string note) { notes.add(std::move(note)); },
      [&](const Error& error) { notes.add(error); }));
  Watch watch(view.stats_every_s, *runner, notes, output);
  Status ran;
  {
    // The watch for signals calls none of these outside of its scope, even if an exception leaves
    // this function because a thread or memory could not be had.
    const SignalWatch::Scope stoppable(signals, {.on_signal = [&] { runner->stop(); },
                                                 .on_overdue =
                                                     [&] {
                                                       output.talk(overdue);
                                                       runner->give_up();
                                                     },
                                                 .on_tick = [&] { watch.tick(); }});
    ran = runner->run();
  }
  watch.clear();
  if (runner->was_overtaken()) {
    output.talk(fmt::format("{}: {}; standing by", name, ran.error().text));
    return std::nullopt;
  }
  if (view.report) watch.report();
  if (!ran) return fail(ran.error());
  return signals.came() == SIGINT ? exit_interrupted : exit_ok;
}

Result<int> run_in_turns(const std::function<Result<std::optional<int>>()>& turn) {
  while (true)
    if (const std::optional<int> code = ONCE_TRY(turn())) return *code;
}

}  // namespace once::cli
