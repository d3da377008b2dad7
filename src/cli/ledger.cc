// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/books.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "operate/message_json.h"

namespace once::cli {
namespace {

struct LedgerFlags {
  BooksFlags books;
  std::string id;
  std::string from;
  std::size_t limit = 100;
  std::string reason;
};

// Records as they are collected, for both forms of output.
class LedgerList {
 public:
  void add(const std::string& scope, const LedgerRecord& record) {
    json_.push_back(json_of(scope, record));
    table_.row({scope, operate::text_or_base64(record.id), name_of(record.outcome.kind),
                time_text(record.recorded_ms), time_text(record.born_ms), record.partition,
                fmt::format("{}", record.offset), operate::text_or_base64(record.outcome.detail)});
  }
  std::size_t size() const { return json_.size(); }
  void write(Output& output, std::string_view none) { write_list(output, json_, table_, none); }

 private:
  Json json_ = Json::array();
  Table table_{{"scope", "id", "outcome", "recorded", "born", "partition", "offset", "detail"}};
};

Result<int> list(const LedgerFlags& flags, Output& output) {
  Books books = ONCE_TRY(flags.books.open());
  LedgerList found;
  std::string next;
  for (const std::string& scope : books.scopes()) {
    const std::size_t left = flags.limit - found.size();
    const auto page = ONCE_TRY(books.records().ledger(scope, flags.from, left + 1));
    for (std::size_t i = 0; i < std::min(left, page.size()); ++i) found.add(scope, page[i]);
    if (page.size() <= left) continue;
    next = fmt::format("--scope '{}' --from '{}'", scope, operate::text_or_base64(page[left].id));
    break;
  }
  found.write(output, "the ledger is empty");
  if (!next.empty()) output.talk("there are more; go on with " + next);
  return exit_ok;
}

Result<int> show(const LedgerFlags& flags, Output& output) {
  Books books = ONCE_TRY(flags.books.open());
  LedgerList found;
  for (const std::string& scope : books.scopes())
    if (const auto record = ONCE_TRY(books.records().find(scope, flags.id)))
      found.add(scope, *record);
  if (found.size() == 0)
    return fail_not_known(fmt::format("\"{}\" is not known: it is in no ledger of {}", flags.id,
                                      books.store().traits().name));
  found.write(output, "");
  return exit_ok;
}

Result<int> force(const LedgerFlags& flags, Output& output) {
  Books books = ONCE_TRY(flags.books.open());
  const std::string scope = ONCE_TRY(books.scope_to_change());
  const auto was = ONCE_TRY(books.records().find(scope, flags.id));
  Repairs* repairs = ONCE_TRY(books.repairs());
  ONCE_TRY(repairs->force(scope, flags.id, flags.reason));
  if (output.json()) {
    Json json = {{"scope", scope}};
    operate::put_bytes(json, "id", flags.id);
    json["forced"] = true;
    json["was"] = was ? json_of(scope, *was) : Json();
    output.write_json(json);
  } else {
    output.write_line(
        fmt::format("\"{}\" is free in scope {}: the next delivery with it counts as new",
                    operate::text_or_base64(flags.id), scope));
  }
  return exit_ok;
}

using Verb = Result<int> (*)(const LedgerFlags&, Output&);

CLI::App& add_verb(CLI::App& ledger, Context& context, const std::shared_ptr<LedgerFlags>& flags,
                   const std::string& name, const std::string& about, Verb verb) {
  CLI::App& command = *ledger.add_subcommand(name, about);
  if (name != "ls") command.add_option("ID", flags->id, "The id")->required()->option_text(" ");
  add_books(command, flags->books);
  add_output(command, context);
  command.callback([&context, flags, verb] {
    context.action = [&context, flags, verb] { return verb(*flags, context.output); };
  });
  return command;
}

}  // namespace

void add_ledger(CLI::App& app, Context& context) {
  CLI::App& ledger = *app.add_subcommand("ledger", "The ids a store remembers: list, show, force");
  ledger.require_subcommand(1);
  const auto flags = std::make_shared<LedgerFlags>();
  CLI::App& ls = add_verb(ledger, context, flags, "ls", "List ids with their outcomes", list);
  ls.add_option("--from", flags->from, "Start at this id")->option_text("ID");
  ls.add_option("--limit", flags->limit, "At most this many (100)")
      ->check(CLI::Range(1, 1'000'000).description(""))
      ->option_text("N");
  ls.footer("Example:\n  once ledger ls --store sqlite:shop.db --scope payments --limit 20");
  add_verb(ledger, context, flags, "show", "Show what the ledger keeps of an id", show)
      .footer("Example:\n  once ledger show order-100 --store sqlite:shop.db -o json");
  CLI::App& forced = add_verb(ledger, context, flags, "force",
                              "Free an id on purpose: the next delivery counts as new", force);
  forced.add_option("--reason", flags->reason, "Why; goes to the operation log")
      ->required()
      ->option_text("TEXT");
  forced.footer(
      "Example:\n  once ledger force order-100 --store sqlite:shop.db --reason 'refunded by hand'\n"
      "The effect of the id is not undone; if the message comes again, it has a second one.");
}

}  // namespace once::cli
