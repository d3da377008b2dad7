// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <once/clock.h>
#include <once/open.h>
#include <once/pipeline.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "base/file.h"
#include "base/url.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/relay_thread.h"
#include "cli/signals.h"
#include "config/recipe.h"

namespace once::cli {
namespace {

constexpr std::int64_t ns_per_second = 1'000'000'000;
constexpr std::int64_t tick_ms = 100;
// For how long a run that has reached its end tries to send what it emitted, and one that was told
// to stop.
constexpr std::int64_t send_at_end_ms = 30'000;
constexpr std::int64_t send_at_stop_ms = 1'000;

struct RunFlags {
  std::string path;
  bool check = false;
  bool quiet = false;
  std::int64_t stats_every_s = 0;
};

std::optional<std::string> variable(const std::string& name) {
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

Result<Parts> open_parts(const Plan& plan) {
  Parts parts;
  parts.recipe = ONCE_TRY(Recipe::make(plan, ONCE_TRY(dialect_of(plan.store_url))));
  parts.source = ONCE_TRY(open_source(plan.source_url));
  parts.store = ONCE_TRY(open_store(plan.store_url));
  parts.promise = ONCE_TRY(verify(parts.source->traits(), parts.store->traits(),
                                  handler_of(parts.recipe), plan.options));
  ONCE_TRY(parts.recipe->check(*parts.store));
  return parts;
}

// What is known while it runs, for people.
class Watch {
 public:
  Watch(const RunFlags& flags, const Pipeline& pipeline, const RelayThread& relay, Output& output)
      : flags_(flags), pipeline_(pipeline), relay_(relay), output_(output), progress_(output) {}

  void tick() {
    const std::int64_t now_ns = system_clock().ticks_ns();
    if (now_ns - seen_ns_ < ns_per_second) return;
    const Statistics now = pipeline_.statistics();
    const std::uint64_t handled = handled_by(now);
    const double seconds = static_cast<double>(now_ns - seen_ns_) / 1e9;
    const auto per_second = static_cast<double>(handled - seen_) / seconds;
    seen_ns_ = now_ns;
    seen_ = handled;
    const std::string line = line_of(now, static_cast<std::int64_t>(per_second));
    progress_.show(line, now_ns);
    if (flags_.stats_every_s == 0 || now_ns - told_ns_ < flags_.stats_every_s * ns_per_second)
      return;
    told_ns_ = now_ns;
    progress_.clear();
    output_.talk(line);
  }

  void finish() {
    progress_.clear();
    if (output_.json())
      output_.write_json(json());
    else
      output_.write_table(table());
  }

 private:
  static std::uint64_t handled_by(const Statistics& s) {
    return s.applied + s.rejected + s.no_effect + s.parked + s.duplicates + s.skipped;
  }
  static std::string number(std::uint64_t count) {
    return grouped(static_cast<std::int64_t>(count));
  }
  double seconds() const {
    return static_cast<double>(system_clock().ticks_ns() - began_ns_) / 1e9;
  }

  std::string line_of(const Statistics& s, std::int64_t per_second) const {
    return fmt::format("  {} messages/s, lag {}, applied {}, duplicates {}, parked {}",
                       grouped(per_second), s.lag < 0 ? "?" : grouped(s.lag), number(s.applied),
                       number(s.duplicates + s.skipped), number(s.parked));
  }

  Table table() const {
    const Statistics s = pipeline_.statistics();
    Table made({"applied", "rejected", "no effect", "parked", "duplicates", "skipped", "retried",
                "emitted", "seconds"});
    made.row({number(s.applied), number(s.rejected), number(s.no_effect), number(s.parked),
              number(s.duplicates), number(s.skipped), number(s.retried), number(relay_.sent()),
              fmt::format("{:.1f}", seconds())});
    return made;
  }

  Json json() const {
    const Statistics s = pipeline_.statistics();
    return {{"delivered", s.delivered},
            {"applied", s.applied},
            {"rejected", s.rejected},
            {"no_effect", s.no_effect},
            {"parked", s.parked},
            {"duplicates", s.duplicates},
            {"skipped", s.skipped},
            {"mismatched", s.mismatched},
            {"too_old", s.too_old},
            {"retried", s.retried},
            {"transactions", s.transactions},
            {"rolled_back", s.rolled_back},
            {"rechecked", s.rechecked},
            {"forgotten", s.forgotten},
            {"emitted", relay_.sent()},
            {"lag", s.lag},
            {"seconds", seconds()}};
  }

  const RunFlags& flags_;
  const Pipeline& pipeline_;
  const RelayThread& relay_;
  Output& output_;
  Progress progress_;
  const std::int64_t began_ns_ = system_clock().ticks_ns();
  std::int64_t seen_ns_ = began_ns_;
  std::int64_t told_ns_ = began_ns_;
  std::uint64_t seen_ = 0;
};

// The threads: this one polls, each lane has one, the relay has one, and one waits for signals and
// draws. First the pipeline ends, then what it emitted is sent.
Result<int> run_parts(const RunFlags& flags, const Plan& plan, Parts& parts, SignalWatch& signals,
                      Output& output) {
  auto relay = ONCE_TRY(RelayThread::open(*parts.store, plan));
  auto pipeline =
      ONCE_TRY(Pipeline::make(*parts.source, *parts.store, handler_of(parts.recipe), plan.options));
  Watch watch(flags, *pipeline, *relay, output);
  relay->start([&] { pipeline->stop(); });
  signals.start([&] { pipeline->stop(); }, [&] { watch.tick(); }, tick_ms);
  const Status ran = pipeline->run();
  const Status sent = relay->finish(signals.came() == 0 ? send_at_end_ms : send_at_stop_ms);
  signals.stop();
  watch.finish();
  if (!ran) return fail(ran.error());
  if (!sent) return fail(sent.error());
  return signals.came() == SIGINT ? exit_interrupted : exit_ok;
}

Result<int> tell_promise(const Plan& plan, const Parts& parts, Output& output) {
  const std::string source = plan.redacted(parts.source->traits().name);
  const std::string store = parts.store->traits().name;
  if (output.json())
    output.write_json({{"promise", parts.promise},
                       {"scope", plan.options.scope},
                       {"source", source},
                       {"store", store},
                       {"steps", plan.steps.size()},
                       {"emits", plan.emits.size()}});
  else
    output.write(fmt::format("{}: {} -> {}, scope {}\n{}\n", plan.file, source, store,
                             plan.options.scope, parts.promise));
  return exit_ok;
}

Result<int> run_plan(const RunFlags& flags, const Plan& plan, Output& output) {
  SignalWatch signals;
  Parts parts = ONCE_TRY(open_parts(plan));
  if (flags.check) return tell_promise(plan, parts, output);
  output.talk(fmt::format("{}: {}", plan.file, parts.promise));
  return run_parts(flags, plan, parts, signals, output);
}

Result<int> run_file(const RunFlags& flags, Output& output) {
  output.quiet = flags.quiet;
  const std::string text = ONCE_TRY(read_file(system_files(), flags.path));
  const Plan plan = ONCE_TRY(parse_plan(text, flags.path, variable));
  auto result = run_plan(flags, plan, output);
  if (result) return result;
  Error error = std::move(result).error();
  error.text = plan.redacted(std::move(error.text));
  return fail(std::move(error));
}

constexpr const char* examples =
    "Examples:\n"
    "  once run points.toml --check          what can be promised, and is everything there?\n"
    "  once run points.toml                  until it is stopped: Ctrl-C or SIGTERM\n"
    "  once run points.toml -o json --quiet  statistics as JSON at the end\n"
    "docs/run.md explains every key of the file; examples/run has one for each story.";

}  // namespace

void add_run(CLI::App& app, Context& context) {
  const auto flags = std::make_shared<RunFlags>();
  CLI::App& command = *app.add_subcommand("run", "Run a pipeline that is described in a file");
  command.add_option("FILE", flags->path, "The description, in TOML")->required()->option_text(" ");
  command.add_flag("--check", flags->check,
                   "Only check: the file, the database, and what can be promised");
  command.add_option("--stats-every", flags->stats_every_s, "Tell how it goes every N seconds")
      ->check(CLI::Range(1, 86400).description(""))
      ->option_text("N");
  command.add_flag("--quiet", flags->quiet, "No talk on stderr but errors");
  add_output(command, context);
  command.footer(examples);
  command.callback([&context, flags] {
    context.action = [&context, flags] { return run_file(*flags, context.output); };
  });
}

}  // namespace once::cli
