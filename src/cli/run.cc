// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <once/open.h>
#include <once/pipeline.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "base/file.h"
#include "base/url.h"
#include "cli/checks.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/running.h"
#include "cli/try.h"
#include "config/recipe.h"
#include "open/advice.h"
#include "open/look.h"
#include "operate/check.h"
#include "operate/pipeline_role.h"

namespace once::cli {
namespace {

struct RunFlags {
  std::string path;
  bool check = false;
  std::size_t try_count = 0;  // 0: not only to try
  RunningFlags running;
};

// What a file holds, without the newline that editors put at its end.
std::optional<std::string> content_of(const std::string& path) {
  auto content = read_file(system_files(), path, secret_bytes_max);
  if (!content) return std::nullopt;
  if (content->ends_with('\n')) content->pop_back();
  if (content->ends_with('\r')) content->pop_back();
  return std::move(*content);
}

std::optional<std::string> variable(const std::string& name) {
  if (name.starts_with("file:")) return content_of(name.substr(5));
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

// The language of the statements has to be known before the store is opened: nothing is touched
// while the file is wrong.
Result<SqlDialect> dialect_of(const std::string& store_url) {
  const Url url = ONCE_TRY(parse_url(store_url));
  if (url.scheme.starts_with("postgres")) return SqlDialect::postgresql;
  if (url.scheme == "mysql" || url.scheme == "mariadb") return SqlDialect::mysql;
  return SqlDialect::sqlite;
}

// Everything that a run is made of, in the order in which it has to go.
struct Parts {
  std::shared_ptr<const Recipe> recipe;
  std::unique_ptr<Store> store;
  std::unique_ptr<Source> source;
  std::string promise;
};

// Nothing is opened while the file is wrong. A source that is only opened is no member of its group
// yet, so that nobody waits for it while the store is away.
using OpenSource = Result<std::unique_ptr<Source>> (*)(std::string_view url);
Result<Parts> open_parts(const Plan& plan, operate::Patience& patience, OpenSource open) {
  Parts parts;
  parts.recipe = ONCE_TRY(Recipe::make(plan, ONCE_TRY(dialect_of(plan.store_url))));
  parts.source = ONCE_TRY(patience.until_there(the_source, [&] { return open(plan.source_url); }));
  parts.store =
      ONCE_TRY(patience.until_there(the_store, [&] { return open_store(plan.store_url); }));
  parts.promise = ONCE_TRY(verify(parts.source->traits(), parts.store->traits(),
                                  handler_of(parts.recipe), plan.options));
  ONCE_TRY(patience.until_there(the_store, [&] { return parts.recipe->check(*parts.store); }));
  return parts;
}

operate::Job job_of(const Plan& plan, const Parts& parts) {
  operate::Job job{.name = plan.file,
                   .source = *parts.source,
                   .store = *parts.store,
                   .handler = handler_of(parts.recipe),
                   .options = plan.options,
                   .relay_name = plan.relay_name,
                   .has_effects = !plan.steps.empty(),
                   .takes_turns = operate::is_for_one_process(plan.source_url)};
  for (const EmitRule& emit : plan.emits)
    job.destinations.push_back({emit.to, emit.destination, plan.text_of(emit.place)});
  return job;
}

Result<int> tell_promise(const Plan& plan, const Parts& parts, Output& output) {
  const std::string source = output.secrets.redacted(parts.source->traits().name);
  const std::string store = output.secrets.redacted(parts.store->traits().name);
  if (output.json()) {
    output.write_json({{"promise", parts.promise},
                       {"scope", plan.options.scope},
                       {"source", source},
                       {"store", store},
                       {"warnings", parts.source->traits().warnings},
                       {"steps", plan.steps.size()},
                       {"emits", plan.emits.size()}});
  } else {
    output.write_line(
        fmt::format("{}: {} -> {}, scope {}", plan.file, source, store, plan.options.scope));
    output.write_line(parts.promise);
  }
  return exit_ok;
}

Result<int> check_plan(const Plan& plan, operate::Patience& patience, Output& output) {
  const Parts parts = ONCE_TRY(open_parts(plan, patience, open_source));
  ONCE_TRY(operate::check_job(job_of(plan, parts), plan.source_url));
  tell_warnings(*parts.source, output);
  for (const std::string& advice : advice_about(plan.source_url)) output.talk("warning: " + advice);
  return tell_promise(plan, parts, output);
}

// The source is only looked at: a pipeline that runs keeps its partitions.
Result<int> try_plan(const Plan& plan, std::size_t count, operate::Patience& patience,
                     Output& output) {
  const Parts parts = ONCE_TRY(open_parts(plan, patience, open_source_to_look));
  write_rehearsed(ONCE_TRY(rehearse(*parts.source, *parts.store, handler_of(parts.recipe),
                                    plan.options, count)),
                  output);
  return exit_ok;
}

Result<int> run_plan(const RunFlags& flags, const Plan& plan, Output& output) {
  if (flags.check || flags.try_count > 0) {
    operate::Patience patience(flags.running.wait_s.value_or(0), log_to(output));
    return flags.check ? check_plan(plan, patience, output)
                       : try_plan(plan, flags.try_count, patience, output);
  }
  SignalWatch signals;
  operate::Patience patience(flags.running.wait_s, log_to(output));
  return run_in_turns([&]() -> Result<std::optional<int>> {
    const Parts parts = ONCE_TRY(open_parts(plan, patience, open_source));
    tell_warnings(*parts.source, output);
    output.log(Severity::info, "promise", fmt::format("{}: {}", plan.file, parts.promise));
    return run_until_stopped(job_of(plan, parts), {flags.running.stats_every_s}, patience, signals,
                             output);
  });
}

// One byte more than is allowed says that it is too long.
std::string read_stdin() {
  std::string text(plan_bytes_max + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), stdin));
  return text;
}

Result<int> run_file(const RunFlags& flags, Output& output) {
  set_log(flags.running, output);
  if (flags.check && flags.try_count > 0) return fail_usage("--check and --try exclude each other");
  const bool is_stdin = flags.path == "-";
  const std::string text =
      is_stdin ? read_stdin() : ONCE_TRY(read_file(system_files(), flags.path, plan_bytes_max));
  const Plan plan = ONCE_TRY(parse_plan(text, is_stdin ? "stdin" : flags.path, variable));
  plan.teach(output.secrets);
  return run_plan(flags, plan, output);
}

constexpr const char* examples =
    "Examples:\n"
    "  once run points.toml --check          what can be promised, and is everything there?\n"
    "  once run points.toml --try 10         what would the next messages do?\n"
    "  once run points.toml                  until it is stopped: Ctrl-C or SIGTERM\n"
    "  once run points.toml -o json --quiet  statistics as JSON at the end\n"
    "  once run - < points.toml              the file from stdin\n"
    "docs/run.md explains every key of the file; examples/run has one for each story.";

}  // namespace

void add_run(CLI::App& app, Context& context) {
  const auto flags = std::make_shared<RunFlags>();
  CLI::App& command = *app.add_subcommand("run", "Run a pipeline that is described in a file");
  command.add_option("FILE", flags->path, "The description, in TOML; - reads it from stdin")
      ->required()
      ->option_text(" ");
  command.add_flag("--check", flags->check,
                   "Only check: the file, the database, and what can be promised");
  command
      .add_option("--try", flags->try_count,
                  "Only show what the next N messages would do, and roll back")
      ->check(whole_number(1, 1000))
      ->option_text("N");
  add_running_flags(command, flags->running);
  add_output(command, context);
  command.footer(examples);
  command.callback([&context, flags] {
    context.action = [&context, flags] { return run_file(*flags, context.output); };
  });
}

}  // namespace once::cli
