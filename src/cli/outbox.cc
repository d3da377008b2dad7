// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <once/outbox.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/books.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "operate/message_json.h"

namespace once::cli {
namespace {

struct OutboxFlags {
  BooksFlags books;
  std::vector<std::int64_t> numbers;
  std::string destination;
  bool all = false;
  std::string reason;
};

// Counting reads whole messages: beyond this it is "more".
constexpr std::size_t pending_count_max = 10'000;

struct Destination {
  std::size_t pending = 0;
  std::size_t parked = 0;
  std::int64_t restarts = 0;
  std::string sender = {};  // the process that sends; empty: none does
};
using Destinations = std::map<std::string, Destination>;

Result<std::vector<ParkedRecord>> parked_rows(Books& books) {
  constexpr std::size_t page_count = 200;
  std::vector<ParkedRecord> all;
  while (true) {
    const std::int64_t after = all.empty() ? 0 : all.back().number;
    auto page = ONCE_TRY(books.records().parked(outbox_scope, after, page_count));
    const bool last = page.size() < page_count;
    std::move(page.begin(), page.end(), std::back_inserter(all));
    if (last) return all;
  }
}

std::string process_of(const ClaimRecord& claim) {
  return claim.state == ClaimState::running ? claim.owner.substr(0, claim.owner.find(' '))
                                            : std::string();
}

// Every destination that a relay has sent to, or that has rows.
Result<Destinations> destinations_in(Books& books) {
  Destinations found;
  Outbox* outbox = ONCE_TRY(books.outbox());
  const ScopeRecord relay = ONCE_TRY(books.records().describe(relay_scope));
  for (const PartitionRecord& known : relay.partitions)
    found[known.partition].restarts = known.position.offset + 1;
  for (const std::string& name : ONCE_TRY(outbox->destinations()))
    found[name].pending = ONCE_TRY(outbox->pending(name, pending_count_max + 1)).size();
  for (const ParkedRecord& row : ONCE_TRY(parked_rows(books))) ++found[row.partition].parked;
  ClaimStore* claims = ONCE_TRY(books.claims());
  for (auto& [name, destination] : found) {
    const auto claim = ONCE_TRY(claims->claims(relay_scope, std::nullopt, name, 1));
    if (!claim.empty() && claim[0].id == name) destination.sender = process_of(claim[0]);
  }
  return found;
}

tl::unexpected<Error> unknown_destination(Books& books, const std::string& name,
                                          const Destinations& known) {
  std::vector<std::string> names;
  for (const auto& [other, destination] : known) names.push_back(other);
  return fail_not_known(fmt::format("the outbox of {} has no destination \"{}\"; it has: {}",
                                    books.store().traits().name, name, fmt::join(names, ", ")));
}

// --- ls

Result<int> list(const OutboxFlags& flags, Output& output) {
  Books books = ONCE_TRY(Books::open(flags.books));
  Json json = Json::array();
  Table table({"destination", "pending", "parked", "restarts", "sender"});
  for (const auto& [name, at] : ONCE_TRY(destinations_in(books))) {
    const bool more = at.pending > pending_count_max;
    const auto pending = static_cast<std::int64_t>(std::min(at.pending, pending_count_max));
    json.push_back({{"destination", name},
                    {"pending", pending},
                    {"more_pending", more},
                    {"parked", at.parked},
                    {"restarts", at.restarts},
                    {"sender", at.sender}});
    table.row({name, grouped(pending) + (more ? "+" : ""),
               grouped(static_cast<std::int64_t>(at.parked)), grouped(at.restarts), at.sender});
  }
  write_list(output, json, table, "nothing was ever emitted from this store");
  return exit_ok;
}

// --- show

Result<std::vector<ParkedRecord>> chosen(const OutboxFlags& flags, Books& books) {
  std::vector<ParkedRecord> rows = ONCE_TRY(parked_rows(books));
  std::vector<ParkedRecord> found;
  for (ParkedRecord& row : rows) {
    const auto& asked = flags.numbers;
    const bool by_number = std::find(asked.begin(), asked.end(), row.number) != asked.end();
    if (flags.all || by_number ||
        (!flags.destination.empty() && row.partition == flags.destination))
      found.push_back(std::move(row));
  }
  for (const std::int64_t number : flags.numbers)
    if (std::none_of(found.begin(), found.end(),
                     [&](const ParkedRecord& row) { return row.number == number; }))
      return fail_not_known(fmt::format(
          "no message {} is parked in the outbox; once outbox show lists them", number));
  return found;
}

Result<int> show(const OutboxFlags& flags, Output& output) {
  Books books = ONCE_TRY(Books::open(flags.books));
  OutboxFlags asked = flags;
  asked.all = flags.numbers.empty() && flags.destination.empty();
  const auto rows = ONCE_TRY(chosen(asked, books));
  if (rows.size() == 1 && flags.numbers.size() == 1) {
    write_parked(output, std::string(outbox_scope), rows[0]);
    return exit_ok;
  }
  Json json = Json::array();
  Table table({"number", "destination", "parked", "id", "reason"});
  for (const ParkedRecord& row : rows) {
    json.push_back(json_of(std::string(outbox_scope), row));
    table.row({fmt::format("{}", row.number), row.partition, time_text(row.parked_ms),
               operate::text_or_base64(row.message.id), row.reason});
  }
  write_list(output, json, table, "nothing is parked in the outbox");
  return exit_ok;
}

// --- drop, retry

Status check_selection(const OutboxFlags& flags) {
  const int ways =
      (flags.numbers.empty() ? 0 : 1) + (flags.destination.empty() ? 0 : 1) + (flags.all ? 1 : 0);
  if (ways != 1) return fail_usage("choose messages by their numbers, --destination, or --all");
  if (flags.reason.empty()) return fail_usage("--reason is needed: it goes to the operation log");
  return {};
}

void tell_done(Output& output, const std::string& action, const std::vector<ParkedRecord>& rows) {
  std::vector<std::int64_t> numbers;
  for (const ParkedRecord& row : rows) numbers.push_back(row.number);
  if (output.json())
    return output.write_json({{"action", action}, {"count", rows.size()}, {"numbers", numbers}});
  Table table({action == "drop" ? "dropped" : "pending again"});
  table.row({grouped(static_cast<std::int64_t>(rows.size()))});
  output.write_table(table);
}

Result<int> drop(const OutboxFlags& flags, Output& output) {
  ONCE_TRY(check_selection(flags));
  Books books = ONCE_TRY(Books::open(flags.books));
  Repairs* repairs = ONCE_TRY(books.repairs());
  const auto rows = ONCE_TRY(chosen(flags, books));
  std::vector<std::int64_t> numbers;
  for (const ParkedRecord& row : rows) numbers.push_back(row.number);
  if (!numbers.empty()) ONCE_TRY(repairs->drop(outbox_scope, numbers, flags.reason));
  tell_done(output, "drop", rows);
  return exit_ok;
}

// Back to where they came from, behind what is pending there.
Result<int> retry(const OutboxFlags& flags, Output& output) {
  ONCE_TRY(check_selection(flags));
  Books books = ONCE_TRY(Books::open(flags.books));
  Repairs* repairs = ONCE_TRY(books.repairs());
  const auto rows = ONCE_TRY(chosen(flags, books));
  std::map<std::string, std::vector<std::int64_t>> by_destination;
  for (const ParkedRecord& row : rows) by_destination[row.partition].push_back(row.number);
  for (const auto& [destination, numbers] : by_destination)
    ONCE_TRY(repairs->replay(outbox_scope, numbers, destination, flags.reason));
  tell_done(output, "retry", rows);
  return exit_ok;
}

// --- restart

Result<int> restart(const OutboxFlags& flags, Output& output) {
  if (flags.reason.empty()) return fail_usage("--reason is needed: it goes to the operation log");
  Books books = ONCE_TRY(Books::open(flags.books));
  Repairs* repairs = ONCE_TRY(books.repairs());
  const Destinations known = ONCE_TRY(destinations_in(books));
  const auto found = known.find(flags.destination);
  if (found == known.end()) return unknown_destination(books, flags.destination, known);
  ONCE_TRY(repairs->correct(relay_scope, RestartDestination{flags.destination}, flags.reason));
  const std::int64_t restarts = found->second.restarts + 1;
  if (output.json()) {
    output.write_json({{"action", "restart"},
                       {"destination", flags.destination},
                       {"restarts", restarts},
                       {"pending", std::min(found->second.pending, pending_count_max)}});
    return exit_ok;
  }
  Table table({"restarted", "restarts"});
  table.row({flags.destination, grouped(restarts)});
  output.write_table(table);
  return exit_ok;
}

// --- The parser

using Verb = Result<int> (*)(const OutboxFlags&, Output&);

CLI::App& add_verb(CLI::App& outbox, Context& context, const std::shared_ptr<OutboxFlags>& flags,
                   const std::string& name, const std::string& about, Verb verb) {
  CLI::App& command = *outbox.add_subcommand(name, about);
  add_store(command, flags->books);
  add_output(command, context);
  command.callback([&context, flags, verb] {
    context.action = [&context, flags, verb] { return verb(*flags, context.output); };
  });
  return command;
}

void add_numbers(CLI::App& command, const std::shared_ptr<OutboxFlags>& flags) {
  command.add_option("NUMBER", flags->numbers, "Parked messages by their numbers")
      ->option_text("...");
  command.add_option("--destination", flags->destination, "All that are parked for this one")
      ->option_text("NAME");
}

void add_change(CLI::App& command, const std::shared_ptr<OutboxFlags>& flags) {
  add_numbers(command, flags);
  command.add_flag("--all", flags->all, "All that are parked in the outbox");
  command.add_option("--reason", flags->reason, "Why; goes to the operation log")
      ->option_text("TEXT");
}

}  // namespace

void add_outbox(CLI::App& app, Context& context) {
  CLI::App& outbox = *app.add_subcommand(
      "outbox", "Emitted messages: what waits, what can never be sent, a new beginning");
  outbox.require_subcommand(1);
  const auto flags = std::make_shared<OutboxFlags>();
  add_verb(outbox, context, flags, "ls", "List destinations with what is pending and parked", list)
      .footer("Example:\n  once outbox ls --store sqlite:shop.db");
  CLI::App& shown_rows = add_verb(outbox, context, flags, "show",
                                  "Show parked messages, or a whole one by its number", show);
  add_numbers(shown_rows, flags);
  shown_rows.footer(
      "Examples:\n  once outbox show --store sqlite:shop.db\n"
      "  once outbox show 3 --store sqlite:shop.db -o json");
  CLI::App& dropped = add_verb(outbox, context, flags, "drop",
                               "Give parked messages up: they are never sent", drop);
  add_change(dropped, flags);
  dropped.footer("Example:\n  once outbox drop 3 --reason 'a test order' --store sqlite:shop.db");
  CLI::App& retried = add_verb(outbox, context, flags, "retry",
                               "Send parked messages after all, behind what is pending", retry);
  add_change(retried, flags);
  retried.footer(
      "Example:\n  once outbox retry --all --reason 'the limit was raised' --store "
      "sqlite:shop.db");
  CLI::App& restarted =
      add_verb(outbox, context, flags, "restart",
               "Send to a destination as a new producer, from sequence 0", restart);
  restarted.add_option("DESTINATION", flags->destination, "Its name; once outbox ls lists them")
      ->required()
      ->option_text(" ");
  restarted.add_option("--reason", flags->reason, "Why; goes to the operation log")
      ->option_text("TEXT");
  restarted.footer(
      "For a store or destination that was restored or created again (error[diverged]). What is\n"
      "pending is sent as a new producer; what was sent since the backup and is produced again is\n"
      "sent again. A relay that runs takes it up by itself.\n"
      "Example:\n  once outbox restart run/orders/file:data/paid --reason 'restored the backup of "
      "Monday' --store sqlite:shop.db");
}

}  // namespace once::cli
