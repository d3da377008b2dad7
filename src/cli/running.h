// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/sink.h>
#include <once/source.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags.h"
#include "cli/output.h"
#include "cli/signals.h"
#include "operate/patience.h"
#include "operate/runner_group.h"

namespace once::cli {

// What every command that runs a pipeline can be told.
struct RunningFlags {
  std::int64_t stats_every_s = 0;  // 0: only on a terminal
  bool quiet = false;
  LogFormat log_format = LogFormat::text;
  Severity log_level = Severity::info;
  std::optional<std::int64_t> wait_s;  // for what is away at the start; unset: for ever
};
void add_running_flags(const Command& command, RunningFlags& flags);
void set_log(const RunningFlags& flags, Output& output);

// Writes what happens at once, in the thread that reports it.
Observer log_to(Output& output);

// What a pipeline tells while it is opened, from any thread.
class RunLog {
 public:
  virtual ~RunLog() = default;
  virtual void tell(Severity severity, std::string_view kind, std::string_view text) = 0;
};

// Tells what a person should know about the source and the destinations before relying on them.
void tell_warnings(const SourceTraits& source, std::span<const SinkTraits> sinks, RunLog& log);

// A pipeline to run.
struct RunningPipeline {
  std::string name;  // in log and statistics; empty: it is the only one
  // Opens everything that it needs, and tells what it promises.
  std::function<Result<operate::OpenedJob>(operate::Patience&, RunLog&)> open;
};

// How a run is shown.
struct RunningView {
  std::int64_t stats_every_s = 0;
  bool report = true;  // write at the end what became of the messages
};

// Opens pipelines and runs them to their ends, or until a signal comes or one fails; shows how it
// goes, and what became of the messages. Besides the threads of the runners, one waits for signals
// and draws. Answers the exit code.
[[nodiscard]] Result<int> run_until_stopped(std::vector<RunningPipeline> pipelines,
                                            std::optional<std::int64_t> wait_s,
                                            const RunningView& view, SignalWatch& signals,
                                            Output& output);

}  // namespace once::cli
