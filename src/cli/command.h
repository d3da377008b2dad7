// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <functional>

#include "cli/flags.h"
#include "cli/output.h"

namespace once::cli {

// What the command line was parsed into. Belongs to `run`; outlives the parser.
struct Context {
  Output output;
  std::function<Result<int>()> action;  // of the chosen command; answers the exit code
};

// Each adds a command to the parser; parsing then sets `context.action`.
void add_topic(const Command& app, Context& context);
void add_produce(const Command& app, Context& context);
void add_consume(const Command& app, Context& context);
void add_init(const Command& app, Context& context);
void add_run(const Command& app, Context& context);
void add_audit(const Command& app, Context& context);
void add_bridge(const Command& app, Context& context);
void add_status(const Command& app, Context& context);
void add_trace(const Command& app, Context& context);
void add_ledger(const Command& app, Context& context);
void add_park(const Command& app, Context& context);
void add_outbox(const Command& app, Context& context);
void add_later(const Command& app, Context& context);
void add_claims(const Command& app, Context& context);
void add_position(const Command& app, Context& context);
void add_horizon(const Command& app, Context& context);
void add_scope(const Command& app, Context& context);
void add_operations(const Command& app, Context& context);
void add_help(const Command& app, Context& context);
void add_demo(const Command& app, Context& context);
void add_completion(const Command& app, Context& context);
void add_manual(const Command& app, Context& context);

// All of them, in the order in which the help shows them.
void add_commands(const Command& app, Context& context);

// Every command has -o; a stream of values also takes jsonl.
void add_output(const Command& command, Context& context);

// The whole program: parses, runs the command, tells errors, answers the exit code.
int run(int argc, char** argv);

}  // namespace once::cli
