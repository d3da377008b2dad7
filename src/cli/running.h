// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/source.h>

#include <cstdint>
#include <functional>
#include <optional>

#include "cli/output.h"
#include "cli/signals.h"
#include "operate/job.h"
#include "operate/patience.h"

namespace CLI {
class App;
}  // namespace CLI

namespace once::cli {

// What every command that runs a pipeline can be told.
struct RunningFlags {
  std::int64_t stats_every_s = 0;  // 0: only on a terminal
  bool quiet = false;
  LogFormat log_format = LogFormat::text;
  Severity log_level = Severity::info;
  std::optional<std::int64_t> wait_s;  // for what is away at the start; unset: for ever
};
void add_running_flags(CLI::App& command, RunningFlags& flags);
void set_log(const RunningFlags& flags, Output& output);

// Writes what happens at once, in the thread that reports it.
Observer log_to(Output& output);

// Tells what a person should know about the source before relying on it.
void tell_warnings(const Source& source, Output& output);

// How a run is shown.
struct RunningView {
  std::int64_t stats_every_s = 0;
  bool report = true;  // write at the end what became of the messages
};

// Runs a job to its end, or until a signal comes; shows how it goes, and what became of the
// messages. Besides the threads of the runner, one waits for signals and draws. Answers the exit
// code; nothing, if another process took the turn: then it is to be called again with everything
// opened anew, and stands by.
[[nodiscard]] Result<std::optional<int>> run_until_stopped(operate::Job job,
                                                           const RunningView& view,
                                                           operate::Patience& patience,
                                                           SignalWatch& signals, Output& output);
// Runs `turn`, which ends with run_until_stopped, until there is an exit code.
[[nodiscard]] Result<int> run_in_turns(const std::function<Result<std::optional<int>>()>& turn);

}  // namespace once::cli
