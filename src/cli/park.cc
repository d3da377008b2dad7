// SPDX-License-Identifier: Apache-2.0
#include "operate/park.h"

#include <fmt/format.h>
#include <once/clock.h>

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assemble/pipeline.h"
#include "assemble/plans.h"
#include "base/url.h"
#include "cli/books.h"
#include "cli/checks.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/id_text.h"

namespace once::cli {
namespace {

using operate::ParkChange;
using operate::ParkedSummary;

struct ParkFlags {
  BooksFlags books;
  operate::ParkSelection chosen;
  std::string to;
  std::string reason;
  bool dry_run = false;
};

std::string count_text(std::size_t count) { return grouped(static_cast<std::int64_t>(count)); }

// --- ls

void list_groups(const std::string& scope, const std::vector<ParkedSummary>& parked, Json& json,
                 Table& table) {
  for (const operate::FailureGroup& group : operate::failure_groups(parked)) {
    json.push_back(operate::json_of(scope, group, parked));
    table.row({scope, fmt::format("{}", group.number), count_text(group.members.size()),
               time_text(parked[group.members.front()].parked_ms),
               time_text(parked[group.members.back()].parked_ms), group.reason});
  }
}

void list_each(const std::string& scope, const std::vector<ParkedSummary>& parked, Json& json,
               Table& table) {
  for (const ParkedSummary& message : parked) {
    Json entry = {{"scope", scope}};
    entry.update(operate::json_of(message));
    json.push_back(std::move(entry));
    table.row({scope, fmt::format("{}", message.number), time_text(message.parked_ms),
               text_of_id(message.id), message.reason});
  }
}

Result<int> list(const ParkFlags& flags, Output& output) {
  const bool each = flags.chosen.all;
  Books books = ONCE_TRY(flags.books.open());
  Json json = Json::array();
  Table table(
      each ? std::vector<std::string>{"scope", "number", "parked", "id", "reason"}
           : std::vector<std::string>{"scope", "group", "messages", "first", "last", "reason"});
  for (const std::string& scope : books.user_scopes()) {
    const auto parked = ONCE_TRY(operate::parked_in(books, scope));
    (each ? list_each : list_groups)(scope, parked, json, table);
  }
  write_list(output, json, table, "nothing is parked");
  return exit_ok;
}

// --- show

Result<int> show(const ParkFlags& flags, Output& output) {
  Books books = ONCE_TRY(flags.books.open());
  const auto found = ONCE_TRY(operate::find_parked(books, flags.chosen.numbers.front()));
  write_parked(output, found.scope, found.record);
  return exit_ok;
}

// --- replay and drop

Status check_selection(const ParkFlags& flags) {
  if (flags.chosen.ways() != 1)
    return fail_usage("say which messages: by NUMBER, or one of --group, --failure and --all");
  if (flags.reason.empty() && !flags.dry_run)
    return fail_usage("--reason TEXT is needed: it goes to the operation log");
  return {};
}

void tell_detour(Output& output, const ParkChange& change) {
  if (!change.detour.empty()) output.talk("warning: " + change.detour);
}

void show_plan(Output& output, const ParkChange& change) {
  tell_detour(output, change);
  if (output.json()) return output.write_json(operate::planned_json(change));
  Table table({"number", "parked", "id", "reason", "note"});
  for (std::size_t i = 0; i < change.messages.size(); ++i) {
    const ParkedSummary& message = change.messages[i];
    table.row({fmt::format("{}", message.number), time_text(message.parked_ms),
               text_of_id(message.id), message.reason,
               change.obstacles.empty() ? "" : change.obstacles[i]});
  }
  if (!change.messages.empty()) output.write_table(table);
  output.talk(fmt::format(
      "dry run: {} would {} {} of scope {}; nothing was changed", name_of(change.action),
      change.action == ParkChange::Action::replay ? "send" : "give up",
      change.messages.size() == 1 ? "1 message"
                                  : fmt::format("{} messages", change.messages.size()),
      change.scope));
}

void show_done(Output& output, const ParkChange& change, std::optional<std::size_t> sent) {
  tell_detour(output, change);
  if (output.json()) return output.write_json(operate::done_json(change, sent));
  if (!sent) {
    Table table({"dropped"});
    table.row({count_text(change.messages.size())});
    return output.write_table(table);
  }
  Table table({"replayed", "sent", "to"});
  table.row({count_text(change.messages.size()), count_text(*sent), shown_url(change.to)});
  output.write_table(table);
  if (change.hindered() > 0)
    output.talk(fmt::format("{} of them may not count as new; --dry-run would have said why",
                            change.hindered()));
}

operate::OnSent show_sent(Progress& progress) {
  return [&progress](std::uint64_t sent) {
    progress.show("  sent " + count_text(sent), system_clock().ticks_ns());
  };
}

Result<int> replay(const ParkFlags& flags, Output& output) {
  ONCE_TRY(check_selection(flags));
  Books books = ONCE_TRY(flags.books.open());
  const ParkChange change = ONCE_TRY(operate::plan_replay(books, flags.chosen, flags.to));
  if (flags.dry_run) return show_plan(output, change), exit_ok;
  Progress progress(output);
  const std::size_t sent =
      ONCE_TRY(operate::replay_parked(books, change, flags.reason, show_sent(progress)));
  progress.clear();
  show_done(output, change, sent);
  return exit_ok;
}

Result<int> drop(const ParkFlags& flags, Output& output) {
  ONCE_TRY(check_selection(flags));
  Books books = ONCE_TRY(flags.books.open());
  const ParkChange change = ONCE_TRY(operate::plan_drop(books, flags.chosen));
  if (flags.dry_run) return show_plan(output, change), exit_ok;
  ONCE_TRY(operate::drop_parked(books, change, flags.reason));
  show_done(output, change, std::nullopt);
  return exit_ok;
}

// --- resume

Result<int> resume(const ParkFlags& flags, Output& output) {
  Books books = ONCE_TRY(flags.books.open());
  Json json = Json::array();
  Table table({"sent", "to"});
  Progress progress(output);
  for (const auto& one : ONCE_TRY(operate::resume_replays(books, show_sent(progress)))) {
    json.push_back({{"sent", one.sent}, {"to", shown_url(one.url)}});
    table.row({count_text(one.sent), shown_url(one.url)});
  }
  progress.clear();
  write_list(output, json, table, "no replay was interrupted");
  return exit_ok;
}

// --- add

struct AddFlags {
  std::string path;
  std::string pipeline;
  operate::SetAsideRequest request;
};

Result<int> add(const AddFlags& flags, Output& output) {
  const std::vector<Plan> plans =
      ONCE_TRY(assemble::chosen(ONCE_TRY(assemble::plans_in(flags.path)), flags.pipeline));
  if (plans.size() > 1) return fail_usage("say which pipeline of the file: --pipeline NAME");
  const Plan& plan = plans.front();
  plan.teach(output.secrets);
  operate::Patience patience(0, {});
  assemble::SharedStores stores(assemble::SharedStores::to_run);
  const auto message = ONCE_TRY(assemble::set_aside(plan, flags.request, patience, stores));
  if (output.json()) return output.write_json(operate::json_of(message)), exit_ok;
  output.write_line(fmt::format("offset {} of partition {} is parked in scope {}, id {}",
                                message.offset, message.partition, message.scope,
                                text_of_id(message.id)));
  return exit_ok;
}

void add_add(const Command& park, Context& context) {
  const auto flags = std::make_shared<AddFlags>();
  const Command command = park.add_command(
      "add", "Park one message that a pipeline has not handled yet, so that it passes it");
  command.add_option("FILE", flags->path, "The description of the pipeline, in TOML")
      .required()
      .value_text(" ");
  command.add_option("--pipeline", flags->pipeline, "Which of the file's pipelines")
      .value_text("NAME");
  command.add_option("--partition", flags->request.partition, "Where the message is")
      .required()
      .value_text("NAME");
  command.add_option("--offset", flags->request.offset, "Where it is in the partition")
      .required()
      .check(whole_number(0, std::numeric_limits<std::int64_t>::max()))
      .value_text("N");
  command.add_option("--reason", flags->request.reason, "Why; goes to the operation log")
      .required()
      .value_text("TEXT");
  add_output(command, context);
  command.footer(
      "For a message that ends the run again and again. It is parked whole, as the pipeline parks\n"
      "messages: once park show, replay and drop work on it. The pipeline may run meanwhile.\n"
      "Example:\n  once park add points.toml --partition orders/0 --offset 17 --reason 'ticket "
      "812'");
  command.callback([&context, flags] {
    context.action = [&context, flags] { return add(*flags, context.output); };
  });
}

// --- The parser

using Verb = Result<int> (*)(const ParkFlags&, Output&);

Command add_verb(const Command& park, Context& context, const std::shared_ptr<ParkFlags>& flags,
                 const std::string& name, const std::string& about, Verb verb) {
  const Command command = park.add_command(name, about);
  add_books(command, flags->books);
  add_output(command, context);
  command.callback([&context, flags, verb] {
    context.action = [&context, flags, verb] { return verb(*flags, context.output); };
  });
  return command;
}

void add_selection(const Command& command, const std::shared_ptr<ParkFlags>& flags) {
  command.add_option("NUMBER", flags->chosen.numbers, "Messages by their numbers")
      .value_text("...");
  command
      .add_option("--group", flags->chosen.group,
                  "All of this failure group; once park ls lists them")
      .value_text("N");
  command.add_option("--failure", flags->chosen.failure, "All whose reason contains this text")
      .value_text("TEXT");
  command.add_flag("--all", flags->chosen.all, "All of the scope");
  command.add_option("--reason", flags->reason, "Why; goes to the operation log")
      .value_text("TEXT");
  command.add_flag("--dry-run", flags->dry_run, "Show what would happen and change nothing");
}

}  // namespace

void add_park(const Command& app, Context& context) {
  const Command park = app.add_command("park", "Parked messages: list, show, add, replay, drop");
  const auto flags = std::make_shared<ParkFlags>();
  const Command ls =
      add_verb(park, context, flags, "ls", "List failures, alike ones together", list);
  ls.add_flag("--all", flags->chosen.all, "Each message instead of groups");
  ls.footer("Example:\n  once park ls --store sqlite:shop.db");
  const Command shown_one = add_verb(park, context, flags, "show", "Show a whole message", show);
  shown_one.add_option("NUMBER", flags->chosen.numbers, "Its number")
      .required()
      .single()
      .value_text(" ");
  shown_one.footer("Example:\n  once park show 3 --store sqlite:shop.db -o json");
  add_add(park, context);
  const Command replayed = add_verb(park, context, flags, "replay",
                                    "Send messages once more; their ids count as new", replay);
  add_selection(replayed, flags);
  replayed.add_option("--to", flags->to, "The topic to send them to: file:DIR/TOPIC")
      .required()
      .value_text("URL");
  replayed.footer(
      "Examples:\n"
      "  once park replay --group 3 --to file:data/orders --store sqlite:shop.db --dry-run\n"
      "  once park replay 3 4 --to file:data/orders --reason 'account made' --store "
      "sqlite:shop.db");
  const Command dropped = add_verb(park, context, flags, "drop",
                                   "Give messages up; their ids stay in the ledger", drop);
  add_selection(dropped, flags);
  dropped.footer(
      "Example:\n  once park drop --failure 'test order' --reason 'not real' --store "
      "sqlite:shop.db");
  add_verb(park, context, flags, "resume", "Send what an interrupted replay left behind", resume)
      .footer("Example:\n  once park resume --store sqlite:shop.db\nAsked twice, it does no harm.");
}

}  // namespace once::cli
