// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/demo.h"
#include "cli/flags.h"

#include <fmt/format.h>
#include <once/clock.h>
#include <once/open.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/file.h"
#include "cli/checks.h"
#include "cli/command.h"
#include "cli/demo/roles.h"
#include "cli/demo/scenes.h"
#include "cli/exit_code.h"

namespace once::cli {
namespace {

volatile std::sig_atomic_t interrupt_came = 0;  // written by a signal's handler, so it is global

void watch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupt_came = 1; };
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGHUP, &action, nullptr);
}

// Where the demo plays: the user's directory, which stays, or one of its own, which goes.
class Stage {
 public:
  static Result<std::unique_ptr<Stage>> open(const std::string& wanted) {
    if (wanted.empty()) {
      std::error_code ignored;
      const auto parent = std::filesystem::temp_directory_path(ignored);
      std::string name = (parent / "once-demo-XXXXXX").string();
      if (::mkdtemp(name.data()) == nullptr)
        return fail(error_from_errno(errno, "make directory", name));
      return std::unique_ptr<Stage>(new Stage(name, false));
    }
    const auto names = system_files().list(wanted);
    if (!names && names.error().tag != "missing") return fail(names.error());
    if (names && !names->empty())
      return fail_usage(fmt::format(
          "--dir {}: the directory is not empty; the demo needs a fresh one, since it counts "
          "everything it finds",
          wanted));
    // A first file makes the directory and shows whether we may write there.
    const std::string probe = wanted + "/.once-demo";
    ONCE_TRY(replace_file(system_files(), probe, ""));
    ONCE_TRY(system_files().remove(probe));
    std::error_code ignored;
    const auto absolute = std::filesystem::absolute(wanted, ignored);
    return std::unique_ptr<Stage>(new Stage(ignored ? wanted : absolute.string(), true));
  }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  ~Stage() {
    std::error_code ignored;
    if (!stays_) std::filesystem::remove_all(directory_, ignored);
  }
  // What went wrong must be there to be looked at.
  void keep() { stays_ = true; }

  const std::string& directory() const { return directory_; }
  bool stays() const { return stays_; }

 private:
  Stage(std::string directory, bool stays) : directory_(std::move(directory)), stays_(stays) {}

  const std::string directory_;
  bool stays_;
};

void introduce(const DemoSettings& settings, Output& output) {
  output.talk_lines(fmt::format(
      "A shop takes {} orders. Each order takes stock and is paid; each payment gives points.\n"
      "The parts of the shop are four processes around an embedded log and an SQLite database:\n"
      "\n"
      "  gate --> log: orders --> orders --> shop.db (+ outbox) --> relay --> log: payments --> "
      "points\n"
      "\n"
      "While they work, one of them is killed with SIGKILL at a random moment, {} times; owners\n"
      "are frozen and replaced while they still live; {:.0f} % of the orders are sent a second "
      "time;\n"
      "answers and acks get lost; messages overtake each other. Seed {}.\n",
      grouped(settings.messages), settings.kills, settings.duplicates * 100, settings.seed));
}

void say_what_is_next(const DemoSettings& settings, const Stage& stage, Output& output) {
  if (!stage.stays()) {
    output.talk_lines(
        "\nThe log and the databases are gone now. To keep them and look at them yourself:\n"
        "  once demo --dir shop");
    return;
  }
  output.talk_lines(fmt::format(
      "\nLook for yourself; everything is still in {0}:\n"
      "  sqlite3 {0}/shop.db 'SELECT order_id, count(*) FROM orders GROUP BY 1 HAVING count(*) > "
      "1'\n"
      "  sqlite3 {0}/naive.db 'SELECT order_id, count(*) FROM orders GROUP BY 1 HAVING count(*) > "
      "1'\n"
      "  once consume file:{0}/orders -o json\n"
      "  once topic show file:{0}/payments",
      settings.directory));
}

Result<DemoResult> perform(const DemoSettings& settings, Output& output) {
  const std::int64_t start_ns = system_clock().ticks_ns();
  DemoResult result;
  result.settings = settings;
  ONCE_TRY(prepare_stage(settings));
  Conductor conductor(settings, output, [] { return interrupt_came != 0; });

  auto store = ONCE_TRY(open_sqlite_store(settings.directory + "/shop.db"));
  result.once_report = ONCE_TRY(conductor.run(once_scene(settings, *store)));
  store.reset();
  result.once = ONCE_TRY(audit(settings, {"shop.db", "orders"}));
  result.receipts = ONCE_TRY(read_receipts(settings.directory));
  output.talk(fmt::format("With Once: done in {:.1f} s, {} kills, {} stale owners refused.",
                          result.once_report.seconds, result.once_report.kills,
                          result.once.refused));
  output.talk_lines(
      "Now the same log through the usual recipe: look the id up, do the work, mark the id,\n"
      "publish, commit the offset. The same kills, the same lost acks, the same replaced owners.");

  Database naive = ONCE_TRY(Database::open(settings.directory + "/naive.db"));
  result.naive_report = ONCE_TRY(conductor.run(naive_scene(settings, naive, result.once.in_log)));
  result.naive = ONCE_TRY(audit(settings, {"naive.db", "naive-orders"}));
  output.talk_lines(fmt::format("With the recipe: done in {:.1f} s, {} kills.\n",
                                result.naive_report.seconds, result.naive_report.kills));
  result.seconds = static_cast<double>(system_clock().ticks_ns() - start_ns) / 1e9;
  return result;
}

Result<int> demo(DemoSettings settings, Output& output) {
  const auto stage = ONCE_TRY(Stage::open(settings.directory));
  settings.directory = stage->directory();
  watch_interrupts();
  introduce(settings, output);
  auto result = perform(settings, output);
  if (!result) {
    Error error = result.error();
    if (error.tag == "stuck" || error.tag == "child") stage->keep();
    if (stage->stays()) error.text += fmt::format("; what was done is in {}", settings.directory);
    return fail(std::move(error));
  }
  if (output.json())
    output.write_json(json_of(*result));
  else
    output.write_table(table_of(*result));
  ONCE_TRY(output.flush());
  if (!result->kept()) {
    stage->keep();
    return fail(Remedy::stop, "broken",
                fmt::format("{}; look at it in {}", verdict_of(*result), settings.directory));
  }
  output.talk_lines("\n" + verdict_of(*result));
  say_what_is_next(settings, *stage, output);
  return exit_ok;
}

// A child must not outlive its parent, however that ends.
Status die_with(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) return fail_usage("this command is for the demo itself");
  return {};
}

void add_settings(const Command& command, DemoSettings& settings) {
  command.add_option("--messages", settings.messages, "How many orders (500)")
      .check(whole_number(1, 10'000'000))
      .value_text("N");
  command
      .add_option("--duplicates", settings.duplicates,
                  "Which part of the orders is sent a second time, 0 to 1 (0.1)")
      .check(ratio())
      .value_text("RATIO");
  command.add_option("--kills", settings.kills, "How many processes are killed (30)")
      .check(whole_number(0, 100'000))
      .value_text("N");
  command.add_option("--seed", settings.seed, "For orders, copies and the moments of the kills (1)")
      .check(whole_number(0, INT64_MAX))
      .value_text("N");
  command
      .add_option("--dir", settings.directory,
                  "Play in this new or empty directory, and leave it there")
      .value_text("DIR");
}

void add_role(const Command& app, Context& context, const std::shared_ptr<DemoSettings>& settings) {
  const Command command = app.add_hidden_command("demo-role", "A child process of the demo");
  const auto role = std::make_shared<std::string>();
  const auto parent = std::make_shared<pid_t>();
  command.add_option("role", *role, "Which part").required();
  command.add_option("--parent", *parent, "The process that started it").required();
  command.add_option("--number", settings->number, "Its number").required();
  add_settings(command, *settings);
  command.callback([&context, settings, role, parent] {
    context.action = [settings, role, parent]() -> Result<int> {
      ONCE_TRY(die_with(*parent));
      ONCE_TRY(play_role(*role, *settings));
      return exit_ok;
    };
  });
}

}  // namespace

void add_demo(const Command& app, Context& context) {
  const auto settings = std::make_shared<DemoSettings>();
  const Command command = app.add_command(
      "demo", "A shop under kills, duplicates and lost answers: see that every order counts once");
  add_settings(command, *settings);
  add_output(command, context);
  command.footer(
      "Examples:\n"
      "  once demo                          about ten seconds; leaves nothing behind\n"
      "  once demo --dir shop               the same, and shop/ stays to be looked at\n"
      "  once demo --kills 100 --seed 7     more of it\n"
      "Exit code 0 means that nothing was lost or doubled, 1 that something was.");
  command.callback([&context, settings] {
    context.action = [&context, settings] { return demo(*settings, context.output); };
  });
  add_role(app, context, settings);
}

}  // namespace once::cli
