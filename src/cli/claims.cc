// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <once/claims.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/books.h"
#include "cli/checks.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/id_text.h"
#include "operate/claims.h"
#include "operate/message_json.h"

namespace once::cli {
namespace {

using operate::ClaimEntry;

struct ClaimsFlags {
  BooksFlags books;
  std::string id;
  operate::ClaimQuery query;
  ClaimState to = ClaimState::done;
  std::optional<std::string> result;
  std::string reason;
};

void write(Output& output, const std::vector<ClaimEntry>& entries, std::string_view none) {
  Json json = Json::array();
  Table table({"scope", "id", "state", "generation", "attempts", "changed", "owner", "lease until",
               "result", "reason"});
  for (const auto& [scope, record] : entries) {
    json.push_back(json_of(scope, record));
    table.row({scope, text_of_id(record.id), name_of(record.state),
               fmt::format("{}", record.generation), fmt::format("{}", record.attempts),
               time_text(record.changed_ms), record.owner,
               record.lease_until_ms == 0 ? "" : time_text(record.lease_until_ms),
               operate::text_or_base64(record.result.value_or("")), record.reason});
  }
  write_list(output, json, table, none);
}

// JSON has them with their claims.
void write_steps(Output& output, const std::vector<ClaimEntry>& entries) {
  Table table({"scope", "id", "step", "result"});
  bool any = false;
  for (const auto& [scope, record] : entries)
    for (const StepRecord& step : record.steps) {
      table.row({scope, text_of_id(record.id), step.name, operate::text_or_base64(step.result)});
      any = true;
    }
  if (!any || output.json()) return;
  output.write_line("");
  output.write_table(table);
}

Result<int> list(const ClaimsFlags& flags, Output& output) {
  Books books = ONCE_TRY(flags.books.open());
  const auto page = ONCE_TRY(operate::claim_page(books, flags.query));
  write(output, page.entries,
        flags.query.state ? "there are no claims in this state" : "there are no claims");
  if (page.next) output.talk(next_page_text(page.next->scope, page.next->record.id));
  return exit_ok;
}

Result<int> show(const ClaimsFlags& flags, Output& output) {
  Books books = ONCE_TRY(flags.books.open());
  const auto found = ONCE_TRY(operate::find_claims(books, flags.id));
  write(output, found, "");
  write_steps(output, found);
  return exit_ok;
}

Result<int> settle(const ClaimsFlags& flags, Output& output) {
  if (flags.result && flags.to != ClaimState::done)
    return fail_usage("--result belongs to --as done; the others only have their --reason");
  Books books = ONCE_TRY(flags.books.open());
  ClaimForce force{flags.id, flags.to, std::nullopt, flags.reason};
  if (flags.result) force.result = *flags.result;
  const ClaimEntry settled = ONCE_TRY(operate::settle_claim(books, force));
  if (output.json())
    output.write_json(operate::json_of(settled));
  else
    write(output, {settled}, "");
  return exit_ok;
}

using Verb = Result<int> (*)(const ClaimsFlags&, Output&);

Command add_verb(const Command& claims, Context& context, const std::shared_ptr<ClaimsFlags>& flags,
                 const std::string& name, const std::string& about, Verb verb) {
  const Command command = claims.add_command(name, about);
  if (name != "ls")
    command.add_option("ID", flags->id, "The id of the claim, as `ls` shows it")
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

void add_list_flags(const Command& ls, const std::shared_ptr<ClaimsFlags>& flags) {
  static const std::map<std::string, ClaimState> states{{"running", ClaimState::running},
                                                        {"retryable", ClaimState::retryable},
                                                        {"in_doubt", ClaimState::in_doubt},
                                                        {"done", ClaimState::done},
                                                        {"rejected", ClaimState::rejected}};
  ls.add_option("--state", flags->query.state, "Only those in this state")
      .check(one_of(states))
      .value_text("running|retryable|in_doubt|done|rejected");
  ls.add_option("--from", flags->query.from_id, "Start at this id")
      .check(id_text())
      .value_text("ID");
  ls.add_option("--limit", flags->query.count_max, "At most this many (100)")
      .check(whole_number(1, 1'000'000))
      .value_text("N");
  ls.footer("Example:\n  once claims ls --state in_doubt --store sqlite:shop.db");
}

void add_settle_flags(const Command& settled, const std::shared_ptr<ClaimsFlags>& flags) {
  static const std::map<std::string, ClaimState> ends{{"done", ClaimState::done},
                                                      {"rejected", ClaimState::rejected},
                                                      {"retryable", ClaimState::retryable}};
  settled
      .add_option("--as", flags->to,
                  "done: it happened; rejected: it did not and will not; retryable: it did not, "
                  "and whoever comes next may run it")
      .required()
      .check(one_of(ends))
      .value_text("done|rejected|retryable");
  settled.add_option("--result", flags->result, "The result that duplicates get, for --as done")
      .value_text("TEXT");
  settled.add_option("--reason", flags->reason, "Why; goes to the operation log")
      .required()
      .value_text("TEXT");
  settled.footer(
      "Example:\n  once claims settle order-100 --as done --result tx-7 --reason 'the bank says "
      "so' "
      "--store sqlite:shop.db\n"
      "Whoever holds the claim is fenced off. `retryable` opens a new generation: the effect may "
      "run "
      "again, under a new downstream id.");
}

}  // namespace

void add_claims(const Command& app, Context& context) {
  const Command claims =
      app.add_command("claims", "Effects outside the store: list, show, settle their claims");
  const auto flags = std::make_shared<ClaimsFlags>();
  add_list_flags(add_verb(claims, context, flags, "ls", "List claims with their states", list),
                 flags);
  add_verb(claims, context, flags, "show", "Show a claim with its steps", show)
      .footer("Example:\n  once claims show order-100 --store sqlite:shop.db -o json");
  add_settle_flags(add_verb(claims, context, flags, "settle", "Settle a claim by hand", settle),
                   flags);
}

}  // namespace once::cli
