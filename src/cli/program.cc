// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <stdlib.h>

#include <csignal>
#include <exception>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/exception.h"
#include "base/failpoint.h"
#include "cli/checks.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/parse_error.h"
#include "cli/version.h"

namespace once::cli {
namespace {

constexpr const char* description =
    "Once makes every message count exactly once, and proves it.\n"
    "\n"
    "Start here:\n"
    "  once demo                                   see crashes and duplicates do no harm\n"
    "  once topic create file:data/orders          a topic of the embedded log in ./data\n"
    "  echo hello | once produce file:data/orders  send a message\n"
    "  once consume file:data/orders               read it back\n"
    "  once run points.toml                        a pipeline that is described in a file\n"
    "  once trace ID --store sqlite:shop.db        what happened to this id?\n"
    "  once COMMAND --help                         flags and examples of a command";

constexpr const char* footer =
    "Exit codes: 0 done, 1 promise broken, 2 usage, 3 stop, 4 try again, 5 outcome unknown,\n"
    "6 a message can never succeed, 7 corrupt data, 8 not known. docs/cli.md explains them.";

std::string version_text() { return fmt::format("once {} ({})", ONCE_VERSION, ONCE_COMPILER); }

int answer_parse_failure(const Command& program, Context& context, std::span<char* const> arguments,
                         const ParseFailure& failure) {
  // Nobody knows what was meant as what: each may be an address without a scheme.
  for (const std::string_view argument : arguments) {
    context.output.secrets.learn(argument);
    context.output.secrets.learn_shape(argument);
  }
  context.output.complain(
      Error{Remedy::stop, "usage", explain(program.text(), arguments, failure), std::nullopt});
  return exit_usage;
}

// -o json must also hold for an error in the rest of the command line.
bool asks_for_json(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "-ojson" || argument == "--output=json" || argument == "-ojsonl") return true;
    const bool flag = argument == "-o" || argument == "--output";
    if (flag && i + 1 < argc && std::string_view(argv[i + 1]).starts_with("json")) return true;
  }
  return false;
}

// Before anything can fail: addresses that stand in the command line, also as --store=ADDRESS. What
// has no scheme is an address only where one is expected, and is refused there without being shown.
void learn_addresses(std::span<char* const> arguments, Secrets& secrets) {
  for (std::string_view argument : arguments) {
    if (argument.starts_with("--") && argument.find('=') < argument.find(':'))
      argument.remove_prefix(argument.find('=') + 1);
    if (without_credentials(argument) != argument) secrets.learn(argument);
  }
}

int run_action(Context& context) {
  Result<int> result = context.action();
  const Status flushed = context.output.flush();  // what a failed command found is shown too
  if (result && flushed) return *result;
  if (result) result = fail(flushed.error());
  context.output.complain(result.error());
  return exit_code_of(result.error());
}

}  // namespace

// `once help park replay` is `once park replay --help`.
void add_help(const Command& app, Context& context) {
  const auto words = std::make_shared<std::vector<std::string>>();
  const Command command = app.add_command("help", "Show the flags and examples of a command");
  command.add_option("COMMAND", *words, "Which one; without it, what commands there are")
      .value_text("...");
  command.callback([app, &context, words] {
    context.action = [app, &context, words]() -> Result<int> {
      const CommandText program = app.text();
      const CommandText* shown = &program;
      for (const std::string& word : *words) {
        context.output.secrets.learn_shape(word);
        const CommandText* next = find_command(*shown, word);
        if (next == nullptr) return fail_usage(no_such_command(*shown, word));
        shown = next;
      }
      context.output.write_lines(app.help_of(*words));
      return exit_ok;
    };
  });
}

void add_commands(const Command& app, Context& context) {
  add_demo(app, context);
  add_topic(app, context);
  add_produce(app, context);
  add_consume(app, context);
  add_init(app, context);
  add_run(app, context);
  add_audit(app, context);
  add_bridge(app, context);
  add_status(app, context);
  add_trace(app, context);
  add_ledger(app, context);
  add_park(app, context);
  add_later(app, context);
  add_outbox(app, context);
  add_claims(app, context);
  add_position(app, context);
  add_horizon(app, context);
  add_scope(app, context);
  add_operations(app, context);
  add_completion(app, context);
  add_manual(app, context);
  add_help(app, context);
}

void add_output(const Command& command, Context& context) {
  static const std::map<std::string, Format> formats{
      {"table", Format::table}, {"json", Format::json}, {"jsonl", Format::jsonl}};
  command.add_option("-o,--output", context.output.format, "table, json, or jsonl for streams")
      .check(one_of(formats))
      .value_text("FORMAT");
}

int run(int argc, char** argv) {
  // At the limit of a file's size a write fails, as on a full disk, instead of ending the process.
  std::signal(SIGXFSZ, SIG_IGN);
  Context context;
  Parser parser(description, "once");
  const Command program = parser.root();
  program.footer(footer);
  parser.version(version_text());
  add_commands(program, context);
  const std::span<char* const> arguments(argv + 1,
                                         argc > 0 ? static_cast<std::size_t>(argc - 1) : 0);
  learn_addresses(arguments, context.output.secrets);
  if (asks_for_json(argc, argv)) context.output.format = Format::json;
  if (!arm_point_from_environment()) {
    context.output.complain(Error{
        Remedy::stop, "usage",
        "ONCE_POINT names no point where this program can be killed; unset it", std::nullopt});
    return exit_usage;
  }
  try {
    const Parsed parsed = parser.parse({arguments.begin(), arguments.end()});
    if (parsed.failure) return answer_parse_failure(program, context, arguments, *parsed.failure);
    if (!parsed.shown) return run_action(context);
    std::fputs(parsed.shown->c_str(), stdout);
    return exit_ok;
  } catch (const std::exception& error) {
    const Error failure = error_from_exception(error);
    context.output.complain(failure);
    return exit_code_of(failure);
  }
}

}  // namespace once::cli
