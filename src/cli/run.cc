// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <once/open.h>
#include <once/pipeline.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/url.h"
#include "cli/checks.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/running.h"
#include "cli/try.h"
#include "config/recipe.h"
#include "open/look.h"
#include "operate/check.h"
#include "operate/pipeline_role.h"

namespace once::cli {
namespace {

struct RunFlags {
  std::string path;
  std::string pipeline;  // empty: all of the file
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

// Stores by their URLs: pipelines with the same one use it together, so that they do not wait for
// each other's locks. Closed when the last of them is. Any thread may call it.
class SharedStores {
 public:
  using Open = Result<LookedAtStore> (*)(std::string_view url);
  explicit SharedStores(Open how) : open_(how) {}

  Result<LookedAtStore> open(const std::string& url) {
    const std::scoped_lock lock(mutex_);
    Known& known = stores_[url];
    if (auto store = known.store.lock()) return LookedAtStore{std::move(store), known.state};
    LookedAtStore made = ONCE_TRY(open_(url));
    known = {made.store, made.state};
    return made;
  }

 private:
  struct Known {
    std::weak_ptr<Store> store;
    StoreState state = StoreState::current;
  };
  const Open open_;
  std::mutex mutex_;
  std::map<std::string, Known> stores_;
};

// Everything that a run is made of, in the order in which it has to go.
struct Parts {
  std::shared_ptr<const Recipe> recipe;
  LookedAtStore store;
  std::unique_ptr<Source> source;
  std::vector<SinkTraits> sinks;
  std::string promise;
  std::vector<std::string> unchecked;  // what of the file could not be checked
};

Result<LookedAtStore> open_store_to_run(std::string_view url) {
  return LookedAtStore{ONCE_TRY(open_store(url))};
}

// Nothing is opened while the file is wrong.
Result<std::shared_ptr<const Recipe>> recipe_of(const Plan& plan) {
  return Recipe::make(plan, ONCE_TRY(dialect_of(plan.store_url)));
}

Result<std::vector<SinkTraits>> sinks_of(const Plan& plan) {
  std::vector<SinkTraits> sinks;
  for (const EmitTarget& target : plan.destinations()) {
    auto traits = sink_traits_of(target.to);
    if (!traits) {
      Error error = std::move(traits).error();
      error.text = fmt::format("{}: {}", plan.text_of(target.place), error.text);
      return fail(std::move(error));
    }
    sinks.push_back(std::move(*traits));
  }
  return sinks;
}

// A source that is only opened is no member of its group yet, so that nobody waits for it while the
// store is away.
using OpenSource = Result<std::unique_ptr<Source>> (*)(std::string_view url);
Result<Parts> open_parts(const Plan& plan, operate::Patience& patience, OpenSource open,
                         SharedStores& stores) {
  Parts parts;
  parts.recipe = ONCE_TRY(recipe_of(plan));
  parts.source = ONCE_TRY(patience.until_there(the_source, [&] { return open(plan.source_url); }));
  parts.store =
      ONCE_TRY(patience.until_there(the_store, [&] { return stores.open(plan.store_url); }));
  parts.sinks = ONCE_TRY(sinks_of(plan));
  parts.promise = ONCE_TRY(verify(parts.source->traits(), parts.store.store->traits(),
                                  handler_of(parts.recipe), plan.options, parts.sinks));
  parts.unchecked = ONCE_TRY(
      patience.until_there(the_store, [&] { return parts.recipe->check(*parts.store.store); }));
  return parts;
}

// What people know a pipeline by.
std::string label_of(const Plan& plan) {
  return plan.name.empty() ? plan.file : fmt::format("{}, pipeline {}", plan.file, plan.name);
}

operate::Job job_of(const Plan& plan, const Parts& parts) {
  operate::Job job{.name = plan.file,
                   .source = *parts.source,
                   .store = *parts.store.store,
                   .handler = handler_of(parts.recipe),
                   .options = plan.options,
                   .relay_name = plan.relay_name,
                   .has_effects = !plan.steps.empty(),
                   .takes_turns = operate::is_for_one_process(plan.source_url)};
  for (const EmitTarget& target : plan.destinations())
    job.destinations.push_back({target.to, target.destination, plan.text_of(target.place)});
  return job;
}

std::string_view word_of(StoreState state) {
  switch (state) {
    case StoreState::none: return "none";
    case StoreState::older: return "older";
    case StoreState::current: break;
  }
  return "current";
}

// What a check could not look at, since it makes nothing.
void tell_unchecked(const Parts& parts, Output& output) {
  const std::string store = output.secrets.redacted(parts.store.store->traits().name);
  if (parts.store.state == StoreState::none)
    output.talk(fmt::format("note: {} has no tables or keys of Once yet: a run makes them", store));
  if (parts.store.state == StoreState::older)
    output.talk(
        fmt::format("note: {} was made by an older version of Once: a run upgrades it; its "
                    "positions were not checked",
                    store));
  for (const std::string& one : parts.unchecked) output.talk("note: " + one);
}

Json promise_json(const Plan& plan, const Parts& parts, const Output& output) {
  Json json = {{"promise", parts.promise},
               {"scope", plan.options.scope},
               {"source", output.secrets.redacted(parts.source->traits().name)},
               {"store", output.secrets.redacted(parts.store.store->traits().name)},
               {"partitions", parts.source->traits().partitions},
               {"warnings", parts.source->traits().warnings},
               {"steps", plan.steps.size()},
               {"emits", plan.emits.size()},
               {"park_to", nullptr},
               {"later", plan.may_put_off()},
               {"store_state", word_of(parts.store.state)},
               {"unchecked", parts.unchecked}};
  if (plan.park) json["park_to"] = output.secrets.redacted(plan.park->to);
  if (!plan.name.empty()) json["pipeline"] = plan.name;
  return json;
}

void write_promise(const Plan& plan, const Parts& parts, Output& output) {
  output.write_line(fmt::format("{}: {} -> {}, scope {}", label_of(plan),
                                output.secrets.redacted(parts.source->traits().name),
                                output.secrets.redacted(parts.store.store->traits().name),
                                plan.options.scope));
  output.write_line(parts.promise);
  if (plan.park)
    output.write_line("copies of parked messages go to " + output.secrets.redacted(plan.park->to));
  if (plan.may_put_off())
    output.write_line("messages that are put off wait in the store until they are due");
}

Result<Json> check_plan(const Plan& plan, operate::Patience& patience, SharedStores& stores,
                        Output& output) {
  const Parts parts = ONCE_TRY(open_parts(plan, patience, open_source, stores));
  ONCE_TRY(operate::check_job(job_of(plan, parts), plan.source_url));
  tell_warnings(*parts.source, output);
  for (const std::string& advice : advice_about(plan.source_url)) output.talk("warning: " + advice);
  tell_unchecked(parts, output);
  if (!output.json()) write_promise(plan, parts, output);
  return promise_json(plan, parts, output);
}

// The source is only looked at: a pipeline that runs keeps its partitions.
Result<Json> try_plan(const Plan& plan, std::size_t count, operate::Patience& patience,
                      SharedStores& stores, Output& output) {
  const Parts parts = ONCE_TRY(open_parts(plan, patience, open_source_to_look, stores));
  const auto messages = ONCE_TRY(
      rehearse(*parts.source, *parts.store.store, handler_of(parts.recipe), plan.options, count));
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
  operate::Patience patience(flags.running.wait_s.value_or(0), log_to(output));
  SharedStores stores(flags.check ? open_store_to_look : open_store_to_run);
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
                                    SharedStores& stores, RunLog& log) {
  const auto parts =
      std::make_shared<Parts>(ONCE_TRY(open_parts(plan, patience, open_source, stores)));
  tell_warnings(*parts->source, log);
  log.tell(Severity::info, "promise",
           plan.name.empty() ? fmt::format("{}: {}", plan.file, parts->promise) : parts->promise);
  return operate::OpenedJob{parts, job_of(plan, *parts)};
}

Result<int> run_plans(const RunFlags& flags, const std::vector<Plan>& plans, Output& output) {
  SignalWatch signals;
  SharedStores stores(open_store_to_run);
  std::vector<RunningPipeline> pipelines;
  for (const Plan& plan : plans) {
    if (const auto recipe = recipe_of(plan); !recipe)
      return fail(operate::of_pipeline(plan.name, recipe.error()));
    pipelines.push_back({plan.name, [&](operate::Patience& patience, RunLog& log) {
                           return open_job(plan, patience, stores, log);
                         }});
  }
  return run_until_stopped(std::move(pipelines), flags.running.wait_s,
                           {flags.running.stats_every_s}, signals, output);
}

// All of the file, or the one that was asked for.
Result<std::vector<Plan>> chosen(std::vector<Plan> plans, const std::string& name) {
  if (name.empty()) return plans;
  std::vector<std::string_view> known;
  for (const Plan& plan : plans) {
    if (plan.name == name) return std::vector<Plan>{plan};
    known.push_back(plan.name);
  }
  if (plans.front().name.empty())
    return fail_usage(fmt::format("--pipeline {}: {} has no [[pipeline]]: it is one pipeline", name,
                                  plans.front().file));
  return fail_usage(fmt::format("{} has no pipeline \"{}\"; it has {}", plans.front().file, name,
                                fmt::join(known, ", ")));
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
  const std::vector<Plan> plans = ONCE_TRY(chosen(
      ONCE_TRY(parse_plans(text, is_stdin ? "stdin" : flags.path, variable)), flags.pipeline));
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

void add_run(CLI::App& app, Context& context) {
  const auto flags = std::make_shared<RunFlags>();
  CLI::App& command = *app.add_subcommand("run", "Run the pipelines that are described in a file");
  command.add_option("FILE", flags->path, "The description, in TOML; - reads it from stdin")
      ->required()
      ->option_text(" ");
  command
      .add_option("--pipeline", flags->pipeline,
                  "Only this one of the file's pipelines; without it, all of them")
      ->option_text("NAME");
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
