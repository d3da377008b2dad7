// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <functional>

#include "cli/output.h"

namespace CLI {
class App;
}  // namespace CLI

namespace once::cli {

// What the command line was parsed into. Belongs to `run`; outlives the parser.
struct Context {
  Output output;
  std::function<Result<int>()> action;  // of the chosen command; answers the exit code
};

// Each adds a command to the parser; parsing then sets `context.action`.
void add_topic(CLI::App& app, Context& context);
void add_produce(CLI::App& app, Context& context);
void add_consume(CLI::App& app, Context& context);
void add_init(CLI::App& app, Context& context);
void add_run(CLI::App& app, Context& context);
void add_audit(CLI::App& app, Context& context);
void add_bridge(CLI::App& app, Context& context);
void add_status(CLI::App& app, Context& context);
void add_trace(CLI::App& app, Context& context);
void add_ledger(CLI::App& app, Context& context);
void add_park(CLI::App& app, Context& context);
void add_outbox(CLI::App& app, Context& context);
void add_later(CLI::App& app, Context& context);
void add_claims(CLI::App& app, Context& context);
void add_position(CLI::App& app, Context& context);
void add_horizon(CLI::App& app, Context& context);
void add_scope(CLI::App& app, Context& context);
void add_help(CLI::App& app, Context& context);
void add_demo(CLI::App& app, Context& context);
void add_completion(CLI::App& app, Context& context);
void add_manual(CLI::App& app, Context& context);

// All of them, in the order in which the help shows them.
void add_commands(CLI::App& app, Context& context);

// Every command has -o; a stream of values also takes jsonl.
void add_output(CLI::App& command, Context& context);

// The whole program: parses, runs the command, tells errors, answers the exit code.
int run(int argc, char** argv);

}  // namespace once::cli
