// SPDX-License-Identifier: Apache-2.0
#include "cli/running.h"
#include "cli/flags.h"

#include <fmt/format.h>
#include <once/clock.h>

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

// What happened, told by any thread, for the one that writes. Until that one begins, what is told
// is written at once: then there is only the thread that opens the pipelines.
class EventQueue {
 public:
  explicit EventQueue(Output& output) : output_(output) {}

  void begin() {
    const std::scoped_lock lock(mutex_);
    begun_ = true;
  }
  // Of a pipeline; of the only one, if the name is empty.
  void add(const std::string& pipeline, LogLine line) {
    if (!pipeline.empty()) {
      line.text = fmt::format("{}: {}", pipeline, line.text);
      line.fields["pipeline"] = pipeline;
    }
    const std::scoped_lock lock(mutex_);
    if (!begun_)
      output_.log(line);
    else if (lines_.size() < lines_max)
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

  Output& output_;
  std::mutex mutex_;
  bool begun_ = false;
  std::vector<LogLine> lines_;
  std::uint64_t dropped_ = 0;
};

class QueueLog final : public RunLog {
 public:
  QueueLog(EventQueue& events, const std::string& pipeline)
      : events_(events), pipeline_(pipeline) {}
  void tell(Severity severity, std::string_view kind, std::string_view text) override {
    events_.add(
        pipeline_,
        {system_clock().now_ms(), severity, std::string(text), {{"kind", kind}, {"text", text}}});
  }

 private:
  EventQueue& events_;
  const std::string& pipeline_;
};

// The same for a pipeline of a group as the runner wants it.
operate::Member member_of(RunningPipeline pipeline, EventQueue& events) {
  return {.name = pipeline.name,
          .open = [pipeline, &events](operate::Patience& patience) -> Result<operate::OpenedJob> {
            QueueLog log(events, pipeline.name);
            return pipeline.open(patience, log);
          },
          .observer = [name = pipeline.name,
                       &events](const Event& event) { events.add(name, line_of(event)); }};
}

// What is known while it runs, for people.
class Watch {
 public:
  Watch(std::int64_t stats_every_s, const operate::RunnerGroup& group, EventQueue& events,
        Output& output)
      : stats_every_s_(stats_every_s),
        group_(group),
        events_(events),
        output_(output),
        progress_(output) {}

  void tick() {
    write_events();
    const std::int64_t now_ns = system_clock().ticks_ns();
    if (now_ns - seen_ns_ < ns_per_second) return;
    const double seconds = static_cast<double>(now_ns - seen_ns_) / 1e9;
    seen_ns_ = now_ns;
    std::vector<LogLine> lines;
    std::string drawn;
    for (const auto& [name, now] : group_.statistics()) {
      const std::uint64_t handled = handled_by(now.pipeline);
      // A turn that was lost and begun again counts from the beginning.
      const std::uint64_t before = std::min(std::exchange(seen_[name], handled), handled);
      const auto per_second = static_cast<double>(handled - before) / seconds;
      lines.push_back(line_of(name, now, static_cast<std::int64_t>(per_second)));
      drawn += (drawn.empty() ? "  " : " | ") + lines.back().text;
    }
    progress_.show(drawn, now_ns);
    if (stats_every_s_ == 0 || now_ns - told_ns_ < stats_every_s_ * ns_per_second) return;
    told_ns_ = now_ns;
    progress_.clear();
    for (const LogLine& line : lines) output_.log(line);
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

  static LogLine line_of(const std::string& name, const operate::RunStatistics& now,
                         std::int64_t per_second) {
    const std::string text = progress_of(now.pipeline, per_second);
    Json fields{{"kind", "statistics"}, {"text", text}};
    if (!name.empty()) fields["pipeline"] = name;
    fields.update(operate::json_of(now));
    return {system_clock().now_ms(), Severity::info,
            name.empty() ? text : fmt::format("{}: {}", name, text), std::move(fields)};
  }

  // A row for each pipeline, with its name if it has one.
  Table table() const {
    std::vector<std::string> titles;
    std::vector<std::vector<std::string>> rows;
    for (const auto& [name, now] : group_.statistics()) {
      titles.clear();
      std::vector<std::string> cells;
      const auto add = [&](const auto& figures, const auto& from) {
        for (const auto& figure : figures) {
          if (figure.shown == std::decay_t<decltype(figure)>::Shown::in_full) continue;
          titles.push_back(title_of(figure.name));
          cells.push_back(grouped(figure.read(from)));
        }
      };
      if (!name.empty()) {
        titles.emplace_back("pipeline");
        cells.push_back(name);
      }
      add(pipeline_figures(), now.pipeline);
      add(relay_figures(), now.relays);
      titles.emplace_back("seconds");
      cells.push_back(fmt::format("{:.1f}", seconds()));
      rows.push_back(std::move(cells));
    }
    Table made(std::move(titles));
    for (auto& row : rows) made.row(std::move(row));
    return made;
  }

  // One that has no name is all there is.
  Json json() const {
    Json list = Json::array();
    for (const auto& [name, now] : group_.statistics()) {
      Json made = operate::json_of(now);
      if (name.empty()) {
        made["seconds"] = seconds();
        return made;
      }
      made["pipeline"] = name;
      list.push_back(std::move(made));
    }
    return {{"pipelines", std::move(list)}, {"seconds", seconds()}};
  }

  const std::int64_t stats_every_s_;
  const operate::RunnerGroup& group_;
  EventQueue& events_;
  Output& output_;
  Progress progress_;
  const std::int64_t began_ns_ = system_clock().ticks_ns();
  std::int64_t seen_ns_ = began_ns_;
  std::int64_t told_ns_ = began_ns_;
  std::map<std::string, std::uint64_t> seen_;  // by pipeline
};

}  // namespace

void add_running_flags(const Command& command, RunningFlags& flags) {
  command.add_option("--stats-every", flags.stats_every_s, "Tell how it goes every N seconds")
      .check(whole_number(1, 86400))
      .value_text("N");
  command.add_flag("--quiet", flags.quiet, "Only errors on stderr");
  static const std::map<std::string, LogFormat> formats{{"text", LogFormat::text},
                                                        {"json", LogFormat::json}};
  command.add_option("--log", flags.log_format, "How stderr is written: text, or json by the line")
      .check(one_of(formats))
      .value_text("FORMAT");
  static const std::map<std::string, Severity> levels{{"debug", Severity::debug},
                                                      {"info", Severity::info},
                                                      {"warning", Severity::warning},
                                                      {"error", Severity::error}};
  command
      .add_option("--log-level", flags.log_level, "Log this and worse: debug, info, warning, error")
      .check(one_of(levels))
      .value_text("LEVEL");
  command
      .add_option("--wait", flags.wait_s,
                  "Wait N seconds for what is away at the start (without limit)")
      .check(whole_number(0, 1'000'000'000))
      .value_text("N");
}

void set_log(const RunningFlags& flags, Output& output) {
  output.quiet = flags.quiet;
  output.log_format = flags.log_format;
  output.log_level = flags.log_level;
}

Observer log_to(Output& output) {
  return [&output](const Event& event) { output.log(line_of(event)); };
}

void tell_warnings(const SourceTraits& source, std::span<const SinkTraits> sinks, RunLog& log) {
  for (const std::string& warning : source.warnings) log.tell(Severity::warning, "source", warning);
  for (const SinkTraits& sink : sinks)
    for (const std::string& warning : sink.warnings)
      log.tell(Severity::warning, "destination", warning);
}

Result<int> run_until_stopped(std::vector<RunningPipeline> pipelines,
                              std::optional<std::int64_t> wait_s, const RunningView& view,
                              SignalWatch& signals, Output& output) {
  EventQueue events(output);
  std::vector<operate::Member> members;
  for (RunningPipeline& pipeline : pipelines)
    members.push_back(member_of(std::move(pipeline), events));
  const auto group = ONCE_TRY(operate::RunnerGroup::open(std::move(members), wait_s));
  events.begin();
  Watch watch(view.stats_every_s, *group, events, output);
  Status ran;
  {
    // The watch for signals calls none of these outside of its scope, even if an exception leaves
    // this function because a thread or memory could not be had.
    const SignalWatch::Scope stoppable(signals, {.on_signal = [&] { group->stop(); },
                                                 .on_overdue =
                                                     [&] {
                                                       output.log(Severity::warning, "overdue",
                                                                  overdue);
                                                       group->give_up();
                                                     },
                                                 .on_tick = [&] { watch.tick(); }});
    ran = group->run();
  }
  watch.clear();
  if (view.report) watch.report();
  if (!ran) return fail(ran.error());
  return signals.came() == SIGINT ? exit_interrupted : exit_ok;
}

}  // namespace once::cli
