// SPDX-License-Identifier: Apache-2.0
#include "cli/running.h"

#include <fmt/format.h>
#include <once/clock.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cli/checks.h"
#include "cli/exit_code.h"
#include "operate/event_json.h"
#include "operate/runner.h"

namespace once::cli {
namespace {

constexpr std::int64_t ns_per_second = 1'000'000'000;

constexpr std::string_view overdue =
    "what is in hand cannot be finished: ending as after a crash. What is not committed is handled "
    "after the next start";

LogLine line_of(const Event& event) {
  return {system_clock().now_ms(), event.severity, operate::text_of(event),
          operate::json_of(event)};
}

// What happened, told by any thread, for the one that writes.
class EventQueue {
 public:
  void add(const Event& event) {
    LogLine line = line_of(event);
    const std::scoped_lock lock(mutex_);
    if (lines_.size() < lines_max)
      lines_.push_back(std::move(line));
    else
      ++dropped_;
  }
  std::vector<LogLine> take() {
    const std::scoped_lock lock(mutex_);
    if (dropped_ > 0) {
      const std::string text = fmt::format("{} events were not written in time", dropped_);
      lines_.push_back({system_clock().now_ms(),
                        Severity::warning,
                        text,
                        {{"kind", "dropped"}, {"text", text}, {"count", dropped_}}});
      dropped_ = 0;
    }
    return std::exchange(lines_, {});
  }

 private:
  static constexpr std::size_t lines_max = 10'000;

  std::mutex mutex_;
  std::vector<LogLine> lines_;
  std::uint64_t dropped_ = 0;
};

// What is known while it runs, for people.
class Watch {
 public:
  Watch(std::int64_t stats_every_s, const operate::Runner& runner, EventQueue& events,
        Output& output)
      : stats_every_s_(stats_every_s),
        runner_(runner),
        events_(events),
        output_(output),
        progress_(output) {}

  void tick() {
    write_events();
    const std::int64_t now_ns = system_clock().ticks_ns();
    if (now_ns - seen_ns_ < ns_per_second) return;
    const operate::RunStatistics now = runner_.statistics();
    const std::uint64_t handled = handled_by(now.pipeline);
    const double seconds = static_cast<double>(now_ns - seen_ns_) / 1e9;
    const auto per_second = static_cast<double>(handled - seen_) / seconds;
    seen_ns_ = now_ns;
    seen_ = handled;
    const std::string line = progress_of(now.pipeline, static_cast<std::int64_t>(per_second));
    progress_.show("  " + line, now_ns);
    if (stats_every_s_ == 0 || now_ns - told_ns_ < stats_every_s_ * ns_per_second) return;
    told_ns_ = now_ns;
    progress_.clear();
    Json fields{{"kind", "statistics"}, {"text", line}};
    fields.update(operate::json_of(now));
    output_.log({system_clock().now_ms(), Severity::info, line, std::move(fields)});
  }

  void clear() {
    progress_.clear();
    write_events();
  }

  void report() {
    if (output_.json())
      output_.write_json(json());
    else
      output_.write_table(table());
  }

 private:
  void write_events() {
    for (const LogLine& line : events_.take()) {
      progress_.clear();
      output_.log(line);
    }
  }
  static std::uint64_t handled_by(const Statistics& s) {
    return s.applied + s.rejected + s.no_effect + s.parked + s.duplicates + s.skipped + s.passed;
  }
  double seconds() const {
    return static_cast<double>(system_clock().ticks_ns() - began_ns_) / 1e9;
  }

  // "no_effect" is a name for programs.
  static std::string title_of(std::string_view name) {
    std::string title(name);
    std::replace(title.begin(), title.end(), '_', ' ');
    return title;
  }

  static std::string lag_of(const Statistics& s) {
    if (s.lag < 0) return "?";
    if (s.partitions <= s.lag_partitions) return grouped(s.lag);
    return fmt::format("{} ({} of {} partitions)", grouped(s.lag), s.lag_partitions, s.partitions);
  }

  static std::string progress_of(const Statistics& s, std::int64_t per_second) {
    std::string line = fmt::format("{} messages/s, lag {}", grouped(per_second), lag_of(s));
    for (const auto& figure : pipeline_figures())
      if (figure.shown == Figure<Statistics>::Shown::in_progress)
        line += fmt::format(", {} {}", title_of(figure.name), grouped(figure.read(s)));
    if (!s.waiting.empty()) line += fmt::format("; waiting: {}", s.waiting);
    return line;
  }

  Table table() const {
    const operate::RunStatistics now = runner_.statistics();
    std::vector<std::string> titles;
    std::vector<std::string> cells;
    const auto add = [&](const auto& figures, const auto& from) {
      for (const auto& figure : figures) {
        if (figure.shown == std::decay_t<decltype(figure)>::Shown::in_full) continue;
        titles.push_back(title_of(figure.name));
        cells.push_back(grouped(figure.read(from)));
      }
    };
    add(pipeline_figures(), now.pipeline);
    add(relay_figures(), now.relays);
    titles.emplace_back("seconds");
    cells.push_back(fmt::format("{:.1f}", seconds()));
    Table made(std::move(titles));
    made.row(std::move(cells));
    return made;
  }

  Json json() const {
    Json made = operate::json_of(runner_.statistics());
    made["seconds"] = seconds();
    return made;
  }

  const std::int64_t stats_every_s_;
  const operate::Runner& runner_;
  EventQueue& events_;
  Output& output_;
  Progress progress_;
  const std::int64_t began_ns_ = system_clock().ticks_ns();
  std::int64_t seen_ns_ = began_ns_;
  std::int64_t told_ns_ = began_ns_;
  std::uint64_t seen_ = 0;
};

}  // namespace

void add_running_flags(CLI::App& command, RunningFlags& flags) {
  command.add_option("--stats-every", flags.stats_every_s, "Tell how it goes every N seconds")
      ->check(whole_number(1, 86400))
      ->option_text("N");
  command.add_flag("--quiet", flags.quiet, "Only errors on stderr");
  static const std::map<std::string, LogFormat> formats{{"text", LogFormat::text},
                                                        {"json", LogFormat::json}};
  command.add_option("--log", flags.log_format, "How stderr is written: text, or json by the line")
      ->transform(one_of(formats))
      ->option_text("FORMAT");
  static const std::map<std::string, Severity> levels{{"debug", Severity::debug},
                                                      {"info", Severity::info},
                                                      {"warning", Severity::warning},
                                                      {"error", Severity::error}};
  command
      .add_option("--log-level", flags.log_level, "Log this and worse: debug, info, warning, error")
      ->transform(one_of(levels))
      ->option_text("LEVEL");
  command
      .add_option("--wait", flags.wait_s,
                  "Wait N seconds for what is away at the start (without limit)")
      ->check(whole_number(0, 1'000'000'000))
      ->option_text("N");
}

void set_log(const RunningFlags& flags, Output& output) {
  output.quiet = flags.quiet;
  output.log_format = flags.log_format;
  output.log_level = flags.log_level;
}

Observer log_to(Output& output) {
  return [&output](const Event& event) { output.log(line_of(event)); };
}

void tell_warnings(const Source& source, Output& output) {
  for (const std::string& warning : source.traits().warnings)
    output.log(Severity::warning, "source", warning);
}

Result<std::optional<int>> run_until_stopped(operate::Job job, const RunningView& view,
                                             operate::Patience& patience, SignalWatch& signals,
                                             Output& output) {
  EventQueue events;
  const std::string name = job.name;
  job.options.observer = [&](const Event& event) { events.add(event); };
  const auto runner = ONCE_TRY(operate::Runner::make(std::move(job), patience));
  Watch watch(view.stats_every_s, *runner, events, output);
  Status ran;
  {
    // The watch for signals calls none of these outside of its scope, even if an exception leaves
    // this function because a thread or memory could not be had.
    const SignalWatch::Scope stoppable(signals, {.on_signal = [&] { runner->stop(); },
                                                 .on_overdue =
                                                     [&] {
                                                       output.log(Severity::warning, "overdue",
                                                                  overdue);
                                                       runner->give_up();
                                                     },
                                                 .on_tick = [&] { watch.tick(); }});
    ran = runner->run();
  }
  watch.clear();
  if (runner->was_overtaken()) {
    output.log(Severity::warning, name_of(EventKind::standing_by),
               fmt::format("{}: {}; standing by", name, ran.error().text));
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
