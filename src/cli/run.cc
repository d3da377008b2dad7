// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <once/pipeline.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "assemble/pipeline.h"
#include "assemble/plans.h"
#include "cli/checks.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/running.h"
#include "cli/try.h"
#include "open/look.h"

namespace once::cli {
namespace {

struct RunFlags {
  std::string path;
  std::string pipeline;  // empty: all of the file
  bool check = false;
  std::size_t try_count = 0;  // 0: not only to try
  RunningFlags running;
};

// What a check could not look at, since it makes nothing, and what it found.
void tell_findings(const Plan& plan, const assemble::Checked& checked, Output& output) {
  for (const std::string& warning : checked.findings.warnings)
    output.log(Severity::warning, "check", warning);
  for (const std::string& advice : advice_about(plan.source_url)) output.talk("warning: " + advice);
  const std::string store = output.secrets.redacted(checked.parts.store.store->traits().name);
  const std::string file = output.secrets.redacted(missing_file_of(plan.store_url));
  if (!file.empty())
    output.log(
        Severity::warning, "check",
        fmt::format("the file {} of the store does not exist: a run makes it, with no tables "
                    "but those of Once",
                    file));
  else if (checked.parts.store.state == StoreState::none)
    output.talk(fmt::format("note: {} has no tables or keys of Once yet: a run makes them", store));
  if (checked.parts.store.state == StoreState::older)
    output.talk(
        fmt::format("note: {} was made by an older version of Once: a run upgrades it; its "
                    "positions were not checked",
                    store));
  for (const std::string& one : checked.findings.unchecked) output.talk("note: " + one);
}

void write_promise(const Plan& plan, const assemble::Parts& parts, Output& output) {
  output.write_line(fmt::format("{}: {} -> {}, scope {}", assemble::label_of(plan),
                                output.secrets.redacted(parts.source->traits().name),
                                output.secrets.redacted(parts.store.store->traits().name),
                                plan.options.scope));
  output.write_line(parts.promise);
  if (plan.park)
    output.write_line("copies of parked messages go to " + output.secrets.redacted(plan.park->to));
  if (plan.may_put_off())
    output.write_line("messages that are put off wait in the store until they are due");
}

Result<Json> check_plan(const Plan& plan, operate::Patience& patience,
                        assemble::SharedStores& stores, Output& output) {
  const assemble::Checked checked = ONCE_TRY(assemble::check(plan, patience, stores));
  tell_findings(plan, checked, output);
  if (!output.json()) write_promise(plan, checked.parts, output);
  Json json = assemble::json_of(plan, checked);
  for (const char* url : {"source", "store", "park_to"})
    if (json[url].is_string()) json[url] = output.secrets.redacted(json[url].get<std::string>());
  return json;
}

Result<Json> try_plan(const Plan& plan, std::size_t count, operate::Patience& patience,
                      assemble::SharedStores& stores, Output& output) {
  const auto messages = ONCE_TRY(assemble::rehearse(plan, count, patience, stores));
  if (!output.json()) {
    if (!plan.name.empty()) output.write_line(fmt::format("{}:", plan.name));
    write_rehearsed(messages, output);
  }
  Json json = rehearsed_json(messages);
  if (!plan.name.empty()) json["pipeline"] = plan.name;
  return json;
}

// Without running anything: one pipeline after the other.
Result<int> look_at_plans(const RunFlags& flags, const std::vector<Plan>& plans, Output& output) {
  using assemble::SharedStores;
  operate::Patience patience(flags.running.wait_s.value_or(0), log_to(output));
  SharedStores stores(flags.check ? SharedStores::to_look : SharedStores::to_run);
  Json list = Json::array();
  for (const Plan& plan : plans) {
    auto found = flags.check ? check_plan(plan, patience, stores, output)
                             : try_plan(plan, flags.try_count, patience, stores, output);
    if (!found) return fail(operate::of_pipeline(plan.name, std::move(found).error()));
    list.push_back(std::move(*found));
  }
  const bool is_list = !plans.front().name.empty();
  if (output.json())
    output.write_json(is_list ? Json{{"pipelines", std::move(list)}} : list.front());
  return exit_ok;
}

Result<operate::OpenedJob> open_job(const Plan& plan, operate::Patience& patience,
                                    assemble::SharedStores& stores, RunLog& log) {
  assemble::Opened opened = ONCE_TRY(assemble::open(plan, patience, stores));
  tell_warnings(opened.parts->source->traits(), opened.parts->sinks, log);
  const std::string& promise = opened.parts->promise;
  log.tell(Severity::info, "promise",
           plan.name.empty() ? fmt::format("{}: {}", plan.file, promise) : promise);
  return operate::OpenedJob{std::move(opened.parts), std::move(opened.job)};
}

Result<int> run_plans(const RunFlags& flags, const std::vector<Plan>& plans, Output& output) {
  SignalWatch signals;
  assemble::SharedStores stores(assemble::SharedStores::to_run);
  std::vector<RunningPipeline> pipelines;
  for (const Plan& plan : plans) {
    if (const Status right = assemble::check_recipe(plan); !right)
      return fail(operate::of_pipeline(plan.name, right.error()));
    pipelines.push_back({plan.name, [&](operate::Patience& patience, RunLog& log) {
                           return open_job(plan, patience, stores, log);
                         }});
  }
  return run_until_stopped(std::move(pipelines), flags.running.wait_s,
                           {flags.running.stats_every_s}, signals, output);
}

// One byte more than is allowed says that it is too long.
std::string read_stdin() {
  std::string text(plan_bytes_max + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), stdin));
  return text;
}

Result<int> run_file(const RunFlags& flags, Output& output) {
  output.secrets.learn_shape(flags.path);  // it may be a URL by mistake
  set_log(flags.running, output);
  if (flags.check && flags.try_count > 0) return fail_usage("--check and --try exclude each other");
  std::vector<Plan> all = ONCE_TRY(
      flags.path == "-" ? parse_plans(read_stdin(), "stdin", assemble::system_environment())
                        : assemble::plans_in(flags.path));
  const std::vector<Plan> plans = ONCE_TRY(assemble::chosen(std::move(all), flags.pipeline));
  for (const Plan& plan : plans) plan.teach(output.secrets);
  return flags.check || flags.try_count > 0 ? look_at_plans(flags, plans, output)
                                            : run_plans(flags, plans, output);
}

constexpr const char* examples =
    "Examples:\n"
    "  once run points.toml --check          what can be promised, and is everything there?\n"
    "  once run points.toml --try 10         what would the next messages do?\n"
    "  once run points.toml                  until it is stopped: Ctrl-C or SIGTERM\n"
    "  once run points.toml -o json --quiet  statistics as JSON at the end\n"
    "  once run - < points.toml              the file from stdin\n"
    "  once run shop.toml --pipeline points  one of the [[pipeline]] of a file\n"
    "docs/run.md explains every key of the file; examples/run has one for each story.";

}  // namespace

void add_run(const Command& app, Context& context) {
  const auto flags = std::make_shared<RunFlags>();
  const Command command = app.add_command("run", "Run the pipelines that are described in a file");
  command.add_option("FILE", flags->path, "The description, in TOML; - reads it from stdin")
      .required()
      .value_text(" ");
  command
      .add_option("--pipeline", flags->pipeline,
                  "Only this one of the file's pipelines; without it, all of them")
      .value_text("NAME");
  command.add_flag("--check", flags->check,
                   "Only check: the file, the database, and what can be promised");
  command
      .add_option("--try", flags->try_count,
                  "Only show what the next N messages would do, and roll back")
      .check(whole_number(1, 1000))
      .value_text("N");
  add_running_flags(command, flags->running);
  add_output(command, context);
  command.footer(examples);
  command.callback([&context, flags] {
    context.action = [&context, flags] { return run_file(*flags, context.output); };
  });
}

}  // namespace once::cli
