// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/books.h"
#include "cli/checks.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/id_text.h"
#include "operate/ledger.h"
#include "operate/message_json.h"

namespace once::cli {
namespace {

using operate::LedgerEntry;

struct LedgerFlags {
  BooksFlags books;
  std::string id;
  operate::LedgerQuery query;
  std::string reason;
};

void write(Output& output, const std::vector<LedgerEntry>& entries, std::string_view none) {
  Json json = Json::array();
  Table table({"scope", "id", "outcome", "recorded", "born", "partition", "offset", "detail"});
  for (const auto& [scope, record] : entries) {
    json.push_back(json_of(scope, record));
    table.row({scope, text_of_id(record.id), name_of(record.outcome.kind),
               time_text(record.recorded_ms), time_text(record.born_ms), record.partition,
               fmt::format("{}", record.offset), operate::text_or_base64(record.outcome.detail)});
  }
  write_list(output, json, table, none);
}

Result<int> list(const LedgerFlags& flags, Output& output) {
  Books books = ONCE_TRY(flags.books.open());
  const auto page = ONCE_TRY(operate::ledger_page(books, flags.query));
  write(output, page.entries,
        flags.query.outcome ? "no id has this outcome" : "the ledger is empty");
  if (page.next) output.talk(next_page_text(page.next->scope, page.next->record.id));
  return exit_ok;
}

Result<int> show(const LedgerFlags& flags, Output& output) {
  Books books = ONCE_TRY(flags.books.open());
  write(output, ONCE_TRY(operate::find_in_ledger(books, flags.id)), "");
  return exit_ok;
}

Result<int> force(const LedgerFlags& flags, Output& output) {
  Books books = ONCE_TRY(flags.books.open());
  const LedgerEntry was = ONCE_TRY(operate::release_id(books, flags.id, flags.reason));
  if (output.json())
    output.write_json(operate::released_json(was));
  else
    output.write_line(
        fmt::format("\"{}\" is free in scope {}: the next delivery with it counts as new",
                    text_of_id(flags.id), was.scope));
  return exit_ok;
}

using Verb = Result<int> (*)(const LedgerFlags&, Output&);

Command add_verb(const Command& ledger, Context& context, const std::shared_ptr<LedgerFlags>& flags,
                 const std::string& name, const std::string& about, Verb verb) {
  const Command command = ledger.add_command(name, about);
  if (name != "ls")
    command.add_option("ID", flags->id, "The id, as `ls` shows it")
        .required()
        .check(id_text())
        .value_text(" ");
  add_books(command, flags->books);
  add_output(command, context);
  command.callback([&context, flags, verb] {
    context.action = [&context, flags, verb] { return verb(*flags, context.output); };
  });
  return command;
}

}  // namespace

void add_ledger(const Command& app, Context& context) {
  const Command ledger = app.add_command("ledger", "The ids a store remembers: list, show, force");
  const auto flags = std::make_shared<LedgerFlags>();
  const Command ls = add_verb(ledger, context, flags, "ls", "List ids with their outcomes", list);
  static const std::map<std::string, Outcome::Kind> outcomes{{"applied", Outcome::Kind::applied},
                                                             {"rejected", Outcome::Kind::rejected},
                                                             {"parked", Outcome::Kind::parked},
                                                             {"later", Outcome::Kind::later}};
  ls.add_option("--outcome", flags->query.outcome, "Only those with this outcome")
      .check(one_of(outcomes))
      .value_text("applied|rejected|parked|later");
  ls.add_option("--from", flags->query.from_id, "Start at this id")
      .check(id_text())
      .value_text("ID");
  ls.add_option("--limit", flags->query.count_max, "At most this many (100)")
      .check(whole_number(1, 1'000'000))
      .value_text("N");
  ls.footer("Example:\n  once ledger ls --store sqlite:shop.db --scope payments --limit 20");
  add_verb(ledger, context, flags, "show", "Show what the ledger keeps of an id", show)
      .footer("Example:\n  once ledger show order-100 --store sqlite:shop.db -o json");
  const Command forced = add_verb(ledger, context, flags, "force",
                                  "Free an id on purpose: the next delivery counts as new", force);
  forced.add_option("--reason", flags->reason, "Why; goes to the operation log")
      .required()
      .value_text("TEXT");
  forced.footer(
      "Example:\n  once ledger force order-100 --store sqlite:shop.db --reason 'refunded by hand'\n"
      "The effect of the id is not undone; if the message comes again, it has a second one.");
}

}  // namespace once::cli
