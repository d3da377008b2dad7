// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/books.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "operate/scopes.h"

namespace once::cli {
namespace {

using operate::ScopeSummary;

struct ScopeFlags {
  BooksFlags books;
  std::string scope;
  std::string reason;
  bool dry_run = false;
};

std::string count_text(std::size_t count, bool more) {
  return grouped(static_cast<std::int64_t>(count)) + (more ? "+" : "");
}

void write(const std::vector<ScopeSummary>& scopes, Output& output) {
  Json json = Json::array();
  Table table({"scope", "partitions", "ids", "parked", "waiting", "claims", "run by"});
  for (const ScopeSummary& scope : scopes) {
    json.push_back(operate::json_of(scope));
    table.row({scope.scope, count_text(scope.partitions, false),
               count_text(scope.ids, scope.more_ids), count_text(scope.parked, false),
               count_text(scope.waiting.count, scope.waiting.more),
               count_text(scope.claims, scope.more_claims), scope.holder});
  }
  write_list(output, json, table, "there are no scopes: no pipeline has used this store");
}

Result<int> list(const ScopeFlags& flags, Output& output) {
  Books books = ONCE_TRY(flags.books.open());
  write(ONCE_TRY(operate::scopes_in(books)), output);
  return exit_ok;
}

Result<int> drop(const ScopeFlags& flags, Output& output) {
  if (flags.reason.empty() && !flags.dry_run)
    return fail_usage("--reason TEXT is needed: it goes to the operation log");
  Books books = ONCE_TRY(flags.books.open());
  const ScopeSummary scope = flags.dry_run
                                 ? ONCE_TRY(operate::plan_scope_drop(books, flags.scope))
                                 : ONCE_TRY(operate::drop_scope(books, flags.scope, flags.reason));
  if (output.json()) {
    Json json = {{"action", "drop"}, {"dry_run", flags.dry_run}};
    json.update(operate::json_of(scope));
    output.write_json(json);
    return exit_ok;
  }
  write({scope}, output);
  output.talk(flags.dry_run ? "dry run: drop would delete all of this; nothing was changed"
                            : "all of this is gone: a pipeline of this scope begins anew");
  return exit_ok;
}

using Verb = Result<int> (*)(const ScopeFlags&, Output&);

Command add_verb(const Command& scope, Context& context, const std::shared_ptr<ScopeFlags>& flags,
                 const std::string& name, const std::string& about, Verb verb) {
  const Command command = scope.add_command(name, about);
  add_store(command, flags->books);
  add_output(command, context);
  command.callback([&context, flags, verb] {
    context.action = [&context, flags, verb] { return verb(*flags, context.output); };
  });
  return command;
}

}  // namespace

void add_scope(const Command& app, Context& context) {
  const Command scope = app.add_command("scope", "What pipelines keep in a store: list, drop");
  const auto flags = std::make_shared<ScopeFlags>();
  add_verb(scope, context, flags, "ls", "List scopes with what they have", list)
      .footer("Example:\n  once scope ls --store sqlite:shop.db");
  const Command dropped = add_verb(scope, context, flags, "drop",
                                   "Delete all that a scope has: ledger, positions, parked and "
                                   "waiting messages, claims",
                                   drop);
  dropped.add_option("SCOPE", flags->scope, "Its name").required().value_text(" ");
  dropped.add_option("--reason", flags->reason, "Why; goes to the operation log")
      .value_text("TEXT");
  dropped.add_flag("--dry-run", flags->dry_run, "Show what would go and change nothing");
  dropped.footer(
      "Examples:\n  once scope drop trial --dry-run --store sqlite:shop.db\n"
      "  once scope drop trial --reason 'the trial is over' --store sqlite:shop.db\n"
      "A scope that a process runs is not dropped. Effects stay; a pipeline that is started again\n"
      "under this name reads its topic from the first message, and every id counts as new.");
}

}  // namespace once::cli
