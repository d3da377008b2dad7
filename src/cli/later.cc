// SPDX-License-Identifier: Apache-2.0
#include "operate/later.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/books.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/id_text.h"
#include "operate/record_json.h"

namespace once::cli {
namespace {

struct LaterFlags {
  BooksFlags books;
  operate::WaitingSelection chosen;
  std::string reason;
};

Result<int> list(const LaterFlags& flags, Output& output) {
  Books books = ONCE_TRY(flags.books.open());
  Json json = Json::array();
  Table table({"scope", "number", "due", "attempts", "id", "reason"});
  for (const auto& [scope, record] : ONCE_TRY(operate::waiting_in(books))) {
    json.push_back(operate::json_of(scope, record));
    table.row({scope, fmt::format("{}", record.number), time_text(record.due_ms),
               grouped(record.attempts), text_of_id(record.message.id), record.reason});
  }
  write_list(output, json, table, "no message waits");
  return exit_ok;
}

Status check_selection(const LaterFlags& flags) {
  if (flags.chosen.ways() != 1) return fail_usage("choose messages by their numbers, or --all");
  if (flags.reason.empty()) return fail_usage("--reason is needed: it goes to the operation log");
  return {};
}

void tell_done(Output& output, const std::string& action, const std::string& done,
               const std::vector<std::int64_t>& numbers) {
  if (output.json())
    return output.write_json({{"action", action}, {"count", numbers.size()}, {"numbers", numbers}});
  Table table({done});
  table.row({grouped(static_cast<std::int64_t>(numbers.size()))});
  output.write_table(table);
}

Result<int> hasten(const LaterFlags& flags, Output& output) {
  ONCE_TRY(check_selection(flags));
  Books books = ONCE_TRY(flags.books.open());
  const auto numbers = ONCE_TRY(operate::hasten_waiting(books, flags.chosen, flags.reason));
  tell_done(output, "now", "due now", numbers);
  return exit_ok;
}

Result<int> drop(const LaterFlags& flags, Output& output) {
  ONCE_TRY(check_selection(flags));
  Books books = ONCE_TRY(flags.books.open());
  const auto numbers = ONCE_TRY(operate::drop_waiting(books, flags.chosen, flags.reason));
  tell_done(output, "drop", "dropped", numbers);
  return exit_ok;
}

using Verb = Result<int> (*)(const LaterFlags&, Output&);

Command add_verb(const Command& parent, Context& context, const std::shared_ptr<LaterFlags>& flags,
                 const std::string& name, const std::string& about, Verb verb) {
  const Command command = parent.add_command(name, about);
  add_books(command, flags->books);
  add_output(command, context);
  command.callback([&context, flags, verb] {
    context.action = [&context, flags, verb] { return verb(*flags, context.output); };
  });
  return command;
}

void add_change(const Command& command, const std::shared_ptr<LaterFlags>& flags) {
  command.add_option("NUMBER", flags->chosen.numbers, "Messages by their numbers")
      .value_text("...");
  command.add_flag("--all", flags->chosen.all, "All that wait in the scope");
  command.add_option("--reason", flags->reason, "Why; goes to the operation log")
      .value_text("TEXT");
}

}  // namespace

void add_later(const Command& app, Context& context) {
  const Command later =
      app.add_command("later", "Messages that wait in the store until they are due");
  const auto flags = std::make_shared<LaterFlags>();
  add_verb(later, context, flags, "ls", "List messages that wait", list)
      .footer("Example:\n  once later ls --store sqlite:shop.db");
  const Command now = add_verb(later, context, flags, "now",
                               "Handle messages now instead of when they are due", hasten);
  add_change(now, flags);
  now.footer(
      "The pipeline handles them when it looks next. With order by key, one that waits behind\n"
      "another of its key goes on waiting behind it.\n"
      "Example:\n  once later now --all --reason 'the bank is back' --store sqlite:shop.db");
  const Command dropped =
      add_verb(later, context, flags, "drop", "Give messages up: they are never handled", drop);
  add_change(dropped, flags);
  dropped.footer(
      "Their ids stay in the ledger, as parked: a copy is a duplicate. once ledger force frees an\n"
      "id.\nExample:\n  once later drop 3 --reason 'a test order' --store sqlite:shop.db");
}

}  // namespace once::cli
