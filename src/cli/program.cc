// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <stdlib.h>

#include <CLI/CLI.hpp>
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

// CLI11 reports by exception; help and version are reported that way too.
int answer_parse_error(CLI::App& app, Context& context, std::span<char* const> arguments,
                       const CLI::ParseError& error) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    app.exit(error);
    return exit_ok;
  }
  // Nobody knows what was meant as what: each may be an address without a scheme.
  for (const std::string_view argument : arguments) context.output.secrets.learn(argument);
  context.output.complain(
      Error{Remedy::stop, "usage", explain(app, arguments, error), std::nullopt});
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
void add_help(CLI::App& app, Context& context) {
  const auto words = std::make_shared<std::vector<std::string>>();
  CLI::App& command = *app.add_subcommand("help", "Show the flags and examples of a command");
  command.add_option("COMMAND", *words, "Which one; without it, what commands there are")
      ->option_text("...");
  command.callback([&app, &context, words] {
    context.action = [&app, &context, words]() -> Result<int> {
      const CLI::App* shown = &app;
      std::string path;  // before its name
      for (const std::string& word : *words) {
        const CLI::App* next = find_command(*shown, word);
        if (next == nullptr) return fail_usage(no_such_command(*shown, word));
        path += (path.empty() ? "" : " ") + shown->get_name();
        shown = next;
      }
      app.clear();  // it would show the help of the command that was parsed: this one
      context.output.write_lines(shown->help(path));
      return exit_ok;
    };
  });
}

void add_commands(CLI::App& app, Context& context) {
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
  add_completion(app, context);
  add_manual(app, context);
  add_help(app, context);
}

void add_output(CLI::App& command, Context& context) {
  static const std::map<std::string, Format> formats{
      {"table", Format::table}, {"json", Format::json}, {"jsonl", Format::jsonl}};
  command.add_option("-o,--output", context.output.format, "table, json, or jsonl for streams")
      ->transform(one_of(formats))
      ->option_text("FORMAT");
}

int run(int argc, char** argv) {
  // At the limit of a file's size a write fails, as on a full disk, instead of ending the process.
  std::signal(SIGXFSZ, SIG_IGN);
  Context context;
  CLI::App app(description, "once");
  app.footer(footer);
  app.set_version_flag("-V,--version", version_text(), "Print the version and exit");
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  add_commands(app, context);
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
    app.parse(argc, argv);
    return run_action(context);
  } catch (const CLI::ParseError& error) {
    return answer_parse_error(app, context, arguments, error);
  } catch (const std::exception& error) {
    const Error failure = error_from_exception(error);
    context.output.complain(failure);
    return exit_code_of(failure);
  }
}

}  // namespace once::cli
