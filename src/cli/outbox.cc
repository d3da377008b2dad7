// SPDX-License-Identifier: Apache-2.0
#include "operate/outbox.h"

#include <fmt/format.h>
#include <once/outbox.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/books.h"
#include "cli/checks.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/id_text.h"
#include "model/ledger.h"

namespace once::cli {
namespace {

struct OutboxFlags {
  BooksFlags books;
  operate::EmitSelection chosen;
  std::string reason;
  bool pending = false;
  std::size_t limit = 100;  // of each destination
  bool dry_run = false;
  bool force = false;
};

std::string count_text(std::size_t count) { return grouped(static_cast<std::int64_t>(count)); }

Result<int> list(const OutboxFlags& flags, Output& output) {
  Books books = ONCE_TRY(flags.books.open());
  Json json = Json::array();
  Table table({"destination", "pending", "parked", "restarts", "sender", "trouble"});
  for (const operate::DestinationRecord& at : ONCE_TRY(operate::destinations_in(books))) {
    json.push_back(operate::json_of(at));
    table.row({at.name, count_text(at.pending) + (at.more_pending ? "+" : ""),
               count_text(at.parked), grouped(at.restarts), at.sender,
               at.has_diverged ? "diverged" : at.trouble});
  }
  write_list(output, json, table, "nothing was ever emitted from this store");
  return exit_ok;
}

Result<int> show_pending(const OutboxFlags& flags, Output& output) {
  if (flags.chosen.all || !flags.chosen.numbers.empty())
    return fail_usage("--pending shows what waits, of one --destination NAME or of all");
  Books books = ONCE_TRY(flags.books.open());
  Json json = Json::array();
  Table table({"number", "destination", "partition", "sequence", "id"});
  for (const operate::PendingEmit& emit :
       ONCE_TRY(operate::pending_emits(books, flags.chosen.destination, flags.limit))) {
    json.push_back(operate::json_of(emit));
    const auto& route = emit.row.route;
    table.row({fmt::format("{}", emit.row.number), emit.destination,
               route ? fmt::format("{}", route->partition) : "",
               route ? fmt::format("{}", route->sequence) : "", text_of_id(emit.row.message.id)});
  }
  write_list(output, json, table, "nothing is pending in the outbox");
  return exit_ok;
}

Result<int> show(const OutboxFlags& flags, Output& output) {
  if (flags.pending) return show_pending(flags, output);
  Books books = ONCE_TRY(flags.books.open());
  operate::EmitSelection asked = flags.chosen;
  asked.all = asked.ways() == 0;
  const auto rows = ONCE_TRY(operate::parked_emits(books, asked));
  if (rows.size() == 1 && asked.numbers.size() == 1) {
    write_parked(output, std::string(outbox_scope), rows[0]);
    return exit_ok;
  }
  Json json = Json::array();
  Table table({"number", "destination", "parked", "id", "reason"});
  for (const ParkedRecord& row : rows) {
    json.push_back(json_of(std::string(outbox_scope), row));
    table.row({fmt::format("{}", row.number), row.partition, time_text(row.parked_ms),
               text_of_id(row.message.id), row.reason});
  }
  write_list(output, json, table, "nothing is parked in the outbox");
  return exit_ok;
}

Status check_reason(const OutboxFlags& flags) {
  if (flags.reason.empty() && !flags.dry_run)
    return fail_usage("--reason is needed: it goes to the operation log");
  return {};
}

Status check_selection(const OutboxFlags& flags) {
  if (flags.chosen.ways() != 1)
    return fail_usage("choose messages by their numbers, --destination, or --all");
  return check_reason(flags);
}

void tell_done(Output& output, const std::string& action, const std::vector<ParkedRecord>& rows) {
  if (output.json())
    return output.write_json(
        {{"action", action}, {"count", rows.size()}, {"numbers", operate::numbers_of(rows)}});
  Table table({action == "drop" ? "dropped" : "pending again"});
  table.row({count_text(rows.size())});
  output.write_table(table);
}

void tell_dry_run(Output& output, const std::string& what) {
  output.talk(fmt::format("dry run: {} would be dropped; nothing was changed", what));
}

Result<int> drop_pending(const OutboxFlags& flags, Output& output) {
  if (flags.chosen.ways() != 1 || flags.chosen.destination.empty())
    return fail_usage(
        "--pending needs --destination NAME, and nothing else: all that waits for it");
  ONCE_TRY(check_reason(flags));
  Books books = ONCE_TRY(flags.books.open());
  const auto was =
      ONCE_TRY(operate::drop_pending(books, flags.chosen.destination, flags.reason, flags.dry_run));
  const std::string count = count_text(was.pending) + (was.more_pending ? "+" : "");
  if (flags.dry_run) tell_dry_run(output, fmt::format("{} pending messages", count));
  if (static_cast<std::int64_t>(was.pending) > dropped_ids_max)
    output.talk(fmt::format("note: the operation log gets the ids of the oldest {} of them",
                            grouped(dropped_ids_max)));
  if (output.json()) {
    output.write_json({{"action", "drop"},
                       {"destination", was.name},
                       {"pending", was.pending},
                       {"more_pending", was.more_pending},
                       {"dry_run", flags.dry_run}});
  } else if (!flags.dry_run) {
    Table table({"destination", "dropped"});
    table.row({was.name, count});
    output.write_table(table);
  }
  return exit_ok;
}

Result<int> drop(const OutboxFlags& flags, Output& output) {
  if (flags.pending) return drop_pending(flags, output);
  ONCE_TRY(check_selection(flags));
  Books books = ONCE_TRY(flags.books.open());
  const auto rows = ONCE_TRY(operate::emits_to_change(books, flags.chosen));
  if (flags.dry_run) {
    tell_dry_run(output, fmt::format("{} parked messages", count_text(rows.size())));
    if (output.json())
      output.write_json({{"action", "drop"},
                         {"count", rows.size()},
                         {"numbers", operate::numbers_of(rows)},
                         {"dry_run", true}});
    return exit_ok;
  }
  ONCE_TRY(operate::drop_emits(books, rows, flags.reason));
  tell_done(output, "drop", rows);
  return exit_ok;
}

Result<int> retry(const OutboxFlags& flags, Output& output) {
  ONCE_TRY(check_selection(flags));
  Books books = ONCE_TRY(flags.books.open());
  const auto rows = ONCE_TRY(operate::emits_to_change(books, flags.chosen));
  ONCE_TRY(operate::retry_emits(books, rows, flags.reason));
  tell_done(output, "retry", rows);
  return exit_ok;
}

Result<int> restart(const OutboxFlags& flags, Output& output) {
  ONCE_TRY(check_reason(flags));
  Books books = ONCE_TRY(flags.books.open());
  const auto restarted = ONCE_TRY(
      operate::restart_destination(books, flags.chosen.destination, flags.reason, flags.force));
  if (output.json()) {
    output.write_json({{"action", "restart"},
                       {"destination", restarted.name},
                       {"restarts", restarted.restarts},
                       {"pending", restarted.pending}});
    return exit_ok;
  }
  Table table({"restarted", "restarts"});
  table.row({restarted.name, grouped(restarted.restarts)});
  output.write_table(table);
  return exit_ok;
}

using Verb = Result<int> (*)(const OutboxFlags&, Output&);

Command add_verb(const Command& outbox, Context& context, const std::shared_ptr<OutboxFlags>& flags,
                 const std::string& name, const std::string& about, Verb verb) {
  const Command command = outbox.add_command(name, about);
  add_store(command, flags->books);
  add_output(command, context);
  command.callback([&context, flags, verb] {
    context.action = [&context, flags, verb] { return verb(*flags, context.output); };
  });
  return command;
}

void add_numbers(const Command& command, const std::shared_ptr<OutboxFlags>& flags) {
  command.add_option("NUMBER", flags->chosen.numbers, "Parked messages by their numbers")
      .value_text("...");
  command.add_option("--destination", flags->chosen.destination, "All that are parked for this one")
      .value_text("NAME");
}

void add_change(const Command& command, const std::shared_ptr<OutboxFlags>& flags) {
  add_numbers(command, flags);
  command.add_flag("--all", flags->chosen.all, "All that are parked in the outbox");
  command.add_option("--reason", flags->reason, "Why; goes to the operation log")
      .value_text("TEXT");
}

}  // namespace

void add_outbox(const Command& app, Context& context) {
  const Command outbox = app.add_command(
      "outbox", "Emitted messages: what waits, what can never be sent, a new beginning");
  const auto flags = std::make_shared<OutboxFlags>();
  add_verb(outbox, context, flags, "ls", "List destinations with what is pending and parked", list)
      .footer("Example:\n  once outbox ls --store sqlite:shop.db");
  const Command shown_rows = add_verb(outbox, context, flags, "show",
                                      "Show parked messages, or a whole one by its number", show);
  add_numbers(shown_rows, flags);
  shown_rows.add_flag("--pending", flags->pending,
                      "What waits to be sent, instead of what is parked");
  shown_rows
      .add_option("--limit", flags->limit, "With --pending: how many of each destination; 100")
      .check(whole_number(1, 10'000))
      .value_text("N");
  shown_rows.footer(
      "Examples:\n  once outbox show --store sqlite:shop.db\n"
      "  once outbox show 3 --store sqlite:shop.db -o json\n"
      "  once outbox show --pending --store sqlite:shop.db");
  const Command dropped =
      add_verb(outbox, context, flags, "drop",
               "Give messages up that are parked, or pending: they are never sent", drop);
  add_change(dropped, flags);
  dropped.add_flag("--pending", flags->pending,
                   "All that waits for the destination, instead of what is parked; a message that "
                   "was sent without an answer may be there");
  dropped.add_flag("--dry-run", flags->dry_run, "Show what would happen and change nothing");
  dropped.footer(
      "Examples:\n  once outbox drop 3 --reason 'a test order' --store sqlite:shop.db\n"
      "  once outbox drop --pending --destination run/orders/file:data/paid \\\n"
      "    --reason 'nobody reads it any more' --store sqlite:shop.db");
  const Command retried = add_verb(outbox, context, flags, "retry",
                                   "Send parked messages after all, behind what is pending", retry);
  add_change(retried, flags);
  retried.footer(
      "Example:\n  once outbox retry --all --reason 'the limit was raised' --store "
      "sqlite:shop.db");
  const Command restarted =
      add_verb(outbox, context, flags, "restart",
               "Send to a destination as a new producer, from sequence 0", restart);
  restarted
      .add_option("DESTINATION", flags->chosen.destination, "Its name; once outbox ls lists them")
      .required()
      .value_text(" ");
  restarted.add_option("--reason", flags->reason, "Why; goes to the operation log")
      .value_text("TEXT");
  restarted.add_flag("--force", flags->force,
                     "Even if a relay is sending there, or none has found it diverged: what is on "
                     "its way, or was sent without an answer, is sent twice");
  restarted.footer(
      "For a store or destination that was restored or created again (error[diverged]). What is\n"
      "pending is sent as a new producer; what was sent since the backup and is produced again is\n"
      "sent again. A relay that runs takes it up by itself.\n"
      "Example:\n  once outbox restart run/orders/file:data/paid --reason 'restored the backup of "
      "Monday' --store sqlite:shop.db");
}

}  // namespace once::cli
