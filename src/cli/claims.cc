// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <once/claims.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cli/books.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "operate/message_json.h"

namespace once::cli {
namespace {

struct ClaimsFlags {
  BooksFlags books;
  std::string id;
  std::optional<ClaimState> state;
  std::string from;
  std::size_t limit = 100;
  ClaimState to = ClaimState::done;
  std::optional<std::string> result;
  std::string reason;
};

// Claims as they are collected, for both forms of output.
class ClaimList {
 public:
  void add(const std::string& scope, const ClaimRecord& record) {
    json_.push_back(json_of(scope, record));
    table_.row({scope, operate::text_or_base64(record.id), name_of(record.state),
                fmt::format("{}", record.generation), fmt::format("{}", record.attempts),
                time_text(record.changed_ms), record.owner,
                record.lease_until_ms == 0 ? "" : time_text(record.lease_until_ms),
                operate::text_or_base64(record.result.value_or("")), record.reason});
    for (const StepRecord& step : record.steps)
      steps_.row({scope, operate::text_or_base64(record.id), step.name,
                  operate::text_or_base64(step.result)});
    any_steps_ = any_steps_ || !record.steps.empty();
  }
  std::size_t size() const { return json_.size(); }
  void write(Output& output, std::string_view none) { write_list(output, json_, table_, none); }
  void write_with_steps(Output& output) {
    write(output, "");
    if (!any_steps_ || output.json()) return;
    output.write_line("");
    output.write_table(steps_);
  }

 private:
  Json json_ = Json::array();
  Table table_{{"scope", "id", "state", "generation", "attempts", "changed", "owner", "lease until",
                "result", "reason"}};
  Table steps_{{"scope", "id", "step", "result"}};
  bool any_steps_ = false;
};

Result<int> list(const ClaimsFlags& flags, Output& output) {
  Books books = ONCE_TRY(flags.books.open());
  ClaimStore* claims = ONCE_TRY(books.claims());
  ClaimList found;
  std::string next;
  for (const std::string& scope : books.scopes()) {
    const std::size_t left = flags.limit - found.size();
    const auto page = ONCE_TRY(claims->claims(scope, flags.state, flags.from, left + 1));
    for (std::size_t i = 0; i < std::min(left, page.size()); ++i) found.add(scope, page[i]);
    if (page.size() <= left) continue;
    next = fmt::format("--scope '{}' --from '{}'", scope, operate::text_or_base64(page[left].id));
    break;
  }
  found.write(output, flags.state ? "there are no claims in this state" : "there are no claims");
  if (!next.empty()) output.talk("there are more; go on with " + next);
  return exit_ok;
}

Result<int> show(const ClaimsFlags& flags, Output& output) {
  Books books = ONCE_TRY(flags.books.open());
  ClaimStore* claims = ONCE_TRY(books.claims());
  ClaimList found;
  for (const std::string& scope : books.scopes()) {
    const auto records = ONCE_TRY(claims->claims(scope, std::nullopt, flags.id, 1));
    if (!records.empty() && records[0].id == flags.id) found.add(scope, records[0]);
  }
  if (found.size() == 0)
    return fail_not_known(fmt::format("\"{}\" is not known: {} has no claim of it", flags.id,
                                      books.store().traits().name));
  found.write_with_steps(output);
  return exit_ok;
}

Result<int> settle(const ClaimsFlags& flags, Output& output) {
  if (flags.result && flags.to != ClaimState::done)
    return fail_usage("--result belongs to --as done; the others only have their --reason");
  Books books = ONCE_TRY(flags.books.open());
  const std::string scope = ONCE_TRY(books.scope_to_change());
  ClaimStore* claims = ONCE_TRY(books.claims());
  ClaimForce force{flags.id, flags.to, std::nullopt, flags.reason};
  if (flags.result) force.result = *flags.result;
  const ClaimRecord record = ONCE_TRY(claims->force(scope, force));
  if (output.json()) {
    output.write_json(json_of(scope, record));
  } else {
    ClaimList one;
    one.add(scope, record);
    one.write(output, "");
  }
  return exit_ok;
}

using Verb = Result<int> (*)(const ClaimsFlags&, Output&);

CLI::App& add_verb(CLI::App& claims, Context& context, const std::shared_ptr<ClaimsFlags>& flags,
                   const std::string& name, const std::string& about, Verb verb) {
  CLI::App& command = *claims.add_subcommand(name, about);
  if (name != "ls")
    command.add_option("ID", flags->id, "The id of the claim")->required()->option_text(" ");
  add_books(command, flags->books);
  add_output(command, context);
  command.callback([&context, flags, verb] {
    context.action = [&context, flags, verb] { return verb(*flags, context.output); };
  });
  return command;
}

void add_list_flags(CLI::App& ls, const std::shared_ptr<ClaimsFlags>& flags) {
  static const std::map<std::string, ClaimState> states{{"running", ClaimState::running},
                                                        {"retryable", ClaimState::retryable},
                                                        {"in_doubt", ClaimState::in_doubt},
                                                        {"done", ClaimState::done},
                                                        {"rejected", ClaimState::rejected}};
  ls.add_option("--state", flags->state, "Only those in this state")
      ->transform(CLI::CheckedTransformer(states).description(""))
      ->option_text("running|retryable|in_doubt|done|rejected");
  ls.add_option("--from", flags->from, "Start at this id")->option_text("ID");
  ls.add_option("--limit", flags->limit, "At most this many (100)")
      ->check(CLI::Range(1, 1'000'000).description(""))
      ->option_text("N");
  ls.footer("Example:\n  once claims ls --state in_doubt --store sqlite:shop.db");
}

void add_settle_flags(CLI::App& settled, const std::shared_ptr<ClaimsFlags>& flags) {
  static const std::map<std::string, ClaimState> ends{{"done", ClaimState::done},
                                                      {"rejected", ClaimState::rejected},
                                                      {"retryable", ClaimState::retryable}};
  settled
      .add_option("--as", flags->to,
                  "done: it happened; rejected: it did not and will not; retryable: it did not, "
                  "and whoever comes next may run it")
      ->required()
      ->transform(CLI::CheckedTransformer(ends).description(""))
      ->option_text("done|rejected|retryable");
  settled.add_option("--result", flags->result, "The result that duplicates get, for --as done")
      ->option_text("TEXT");
  settled.add_option("--reason", flags->reason, "Why; goes to the operation log")
      ->required()
      ->option_text("TEXT");
  settled.footer(
      "Example:\n  once claims settle order-100 --as done --result tx-7 --reason 'the bank says "
      "so' "
      "--store sqlite:shop.db\n"
      "Whoever holds the claim is fenced off. `retryable` opens a new generation: the effect may "
      "run "
      "again, under a new downstream id.");
}

}  // namespace

void add_claims(CLI::App& app, Context& context) {
  CLI::App& claims =
      *app.add_subcommand("claims", "Effects outside the store: list, show, settle their claims");
  claims.require_subcommand(1);
  const auto flags = std::make_shared<ClaimsFlags>();
  add_list_flags(add_verb(claims, context, flags, "ls", "List claims with their states", list),
                 flags);
  add_verb(claims, context, flags, "show", "Show a claim with its steps", show)
      .footer("Example:\n  once claims show order-100 --store sqlite:shop.db -o json");
  add_settle_flags(add_verb(claims, context, flags, "settle", "Settle a claim by hand", settle),
                   flags);
}

}  // namespace once::cli
