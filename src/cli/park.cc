// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <once/open.h>
#include <once/outbox.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/url.h"
#include "cli/books.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/replay.h"
#include "model/message_view.h"
#include "open/log_address.h"
#include "operate/failure_group.h"
#include "operate/message_json.h"

namespace once::cli {
namespace {

struct ParkFlags {
  BooksFlags books;
  std::vector<std::int64_t> numbers;
  std::optional<std::int64_t> group;
  std::string failure;
  bool all = false;
  std::string to;
  std::string reason;
  bool dry_run = false;
};

Result<std::vector<operate::ParkedSummary>> parked_in(Books& books, const std::string& scope) {
  constexpr std::size_t page_count = 200;  // whole messages, of which we keep little
  std::vector<operate::ParkedSummary> parked;
  while (true) {
    const std::int64_t after = parked.empty() ? 0 : parked.back().number;
    const auto page = ONCE_TRY(books.records().parked(scope, after, page_count));
    for (const ParkedRecord& record : page)
      parked.push_back({record.number, record.parked_ms, record.reason, record.message.id,
                        record.message.timestamp_ms});
    if (page.size() < page_count) return parked;
  }
}

Json summary_of(const operate::ParkedSummary& message) {
  Json json = {{"number", message.number}};
  operate::put_bytes(json, "id", message.id);
  json["parked_ms"] = message.parked_ms;
  json["timestamp_ms"] = message.timestamp_ms;
  json["reason"] = message.reason;
  return json;
}

// --- ls

void list_groups(const std::string& scope, const std::vector<operate::ParkedSummary>& parked,
                 Json& json, Table& table) {
  for (const operate::FailureGroup& group : operate::failure_groups(parked)) {
    const operate::ParkedSummary& first = parked[group.members.front()];
    const operate::ParkedSummary& last = parked[group.members.back()];
    json.push_back({{"scope", scope},
                    {"group", group.number},
                    {"messages", group.members.size()},
                    {"first_ms", first.parked_ms},
                    {"last_ms", last.parked_ms},
                    {"reason", group.reason},
                    {"example", summary_of(first)}});
    table.row({scope, fmt::format("{}", group.number),
               grouped(static_cast<std::int64_t>(group.members.size())), time_text(first.parked_ms),
               time_text(last.parked_ms), group.reason});
  }
}

void list_each(const std::string& scope, const std::vector<operate::ParkedSummary>& parked,
               Json& json, Table& table) {
  for (const operate::ParkedSummary& message : parked) {
    Json entry = {{"scope", scope}};
    entry.update(summary_of(message));
    json.push_back(std::move(entry));
    table.row({scope, fmt::format("{}", message.number), time_text(message.parked_ms),
               operate::text_or_base64(message.id), message.reason});
  }
}

Result<int> list(const ParkFlags& flags, Output& output) {
  Books books = ONCE_TRY(Books::open(flags.books));
  Json json = Json::array();
  Table table(flags.all ? std::vector<std::string>{"scope", "number", "parked", "id", "reason"}
                        : std::vector<std::string>{"scope", "group", "messages", "first", "last",
                                                   "reason"});
  for (const std::string& scope : books.scopes()) {
    const auto parked = ONCE_TRY(parked_in(books, scope));
    (flags.all ? list_each : list_groups)(scope, parked, json, table);
  }
  write_list(output, json, table, "nothing is parked");
  return exit_ok;
}

// --- show

Result<int> show(const ParkFlags& flags, Output& output) {
  const std::int64_t number = flags.numbers.front();
  Books books = ONCE_TRY(Books::open(flags.books));
  for (const std::string& scope : books.scopes()) {
    const auto found = ONCE_TRY(books.records().parked(scope, number - 1, 1));
    if (found.empty() || found[0].number != number) continue;
    write_parked(output, scope, found[0]);
    return exit_ok;
  }
  return fail_not_known(fmt::format("{} is not known: {} has no parked message of that number",
                                    number, books.store().traits().name));
}

// --- replay and drop

tl::unexpected<Error> not_parked(std::string what) {
  return fail(Remedy::stop, "missing", std::move(what) + "; nothing was changed");
}

Status check_selection(const ParkFlags& flags) {
  const int ways = static_cast<int>(!flags.numbers.empty()) +
                   static_cast<int>(flags.group.has_value()) +
                   static_cast<int>(!flags.failure.empty()) + static_cast<int>(flags.all);
  if (ways != 1)
    return fail_usage("say which messages: by NUMBER, or one of --group, --failure and --all");
  if (flags.reason.empty() && !flags.dry_run)
    return fail_usage("--reason TEXT is needed: it goes to the operation log");
  return {};
}

Result<std::vector<operate::ParkedSummary>> select_numbers(
    std::vector<std::int64_t> numbers, const std::vector<operate::ParkedSummary>& parked) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::vector<operate::ParkedSummary> chosen;
  for (const std::int64_t number : numbers) {
    const auto at = std::lower_bound(parked.begin(), parked.end(), number,
                                     [](const operate::ParkedSummary& message,
                                        std::int64_t wanted) { return message.number < wanted; });
    if (at == parked.end() || at->number != number)
      return not_parked(fmt::format("message {} is not parked", number));
    chosen.push_back(*at);
  }
  return chosen;
}

// In the order of their numbers, so that they leave in the order in which they came.
Result<std::vector<operate::ParkedSummary>> select(
    const ParkFlags& flags, const std::vector<operate::ParkedSummary>& parked) {
  if (flags.all) return parked;
  if (!flags.numbers.empty()) return select_numbers(flags.numbers, parked);
  std::vector<operate::ParkedSummary> chosen;
  if (flags.group) {
    for (const operate::FailureGroup& group : operate::failure_groups(parked))
      if (group.number == *flags.group)
        for (const std::size_t member : group.members) chosen.push_back(parked[member]);
    if (chosen.empty())
      return not_parked(fmt::format("there is no group {}; once park ls lists them", *flags.group));
    return chosen;
  }
  for (const operate::ParkedSummary& message : parked)
    if (message.reason.find(flags.failure) != std::string::npos) chosen.push_back(message);
  if (chosen.empty())
    return not_parked(
        fmt::format("no message was parked for a reason with \"{}\" in it", flags.failure));
  return chosen;
}

// An effect outside the store is guarded by its claim, which a replay leaves as it is.
Result<std::string> claim_in_the_way(Books& books, const std::string& scope,
                                     const std::string& id) {
  if (books.store().claims() == nullptr) return std::string();
  const auto found = ONCE_TRY(books.store().claims()->claims(scope, std::nullopt, id, 1));
  const bool there = !found.empty() && found[0].id == id;
  if (!there || found[0].state == ClaimState::retryable) return std::string();
  return fmt::format("its claim is {}: settle it with once claims settle first",
                     name_of(found[0].state));
}

// Why a message would not count as new when it comes back; empty when it would.
Result<std::string> obstacle(Books& books, const std::string& scope, std::int64_t horizon_ms,
                             const operate::ParkedSummary& message) {
  if (message.timestamp_ms < horizon_ms)
    return std::string("older than the horizon: it may be parked again as too old");
  if (message.id.empty()) return std::string();
  auto claim = ONCE_TRY(claim_in_the_way(books, scope, message.id));
  if (!claim.empty()) return claim;
  const auto record = ONCE_TRY(books.records().find(scope, message.id));
  if (!record || record->outcome.kind == Outcome::Kind::parked) return std::string();
  return fmt::format("its id is in the ledger as {} and stays there: it will not count as new",
                     name_of(record->outcome.kind));
}

// What a replay or a drop is about to do.
struct Plan {
  std::string action;
  std::string scope;
  std::string to = {};
  std::vector<operate::ParkedSummary> messages;
  std::vector<std::string> obstacles;  // one for each message, where they were looked for

  std::vector<std::int64_t> numbers() const {
    std::vector<std::int64_t> all;
    for (const operate::ParkedSummary& message : messages) all.push_back(message.number);
    return all;
  }
  std::size_t hindered() const {
    return static_cast<std::size_t>(std::count_if(obstacles.begin(), obstacles.end(),
                                                  [](const auto& text) { return !text.empty(); }));
  }
};

Result<Plan> plan(const ParkFlags& flags, Books& books, std::string action) {
  Plan made;
  made.action = std::move(action);
  made.scope = ONCE_TRY(books.scope_to_change());
  made.to = flags.to;
  const auto parked = ONCE_TRY(parked_in(books, made.scope));
  made.messages = ONCE_TRY(select(flags, parked));
  if (made.action != "replay") return made;
  const std::int64_t horizon = ONCE_TRY(books.records().horizon_ms(made.scope));
  for (const operate::ParkedSummary& message : made.messages)
    made.obstacles.push_back(ONCE_TRY(obstacle(books, made.scope, horizon, message)));
  return made;
}

void show_plan(Output& output, const Plan& plan) {
  Json messages = Json::array();
  Table table({"number", "parked", "id", "reason", "note"});
  for (std::size_t i = 0; i < plan.messages.size(); ++i) {
    const operate::ParkedSummary& message = plan.messages[i];
    const std::string note = plan.obstacles.empty() ? "" : plan.obstacles[i];
    Json entry = summary_of(message);
    entry["note"] = note;
    messages.push_back(std::move(entry));
    table.row({fmt::format("{}", message.number), time_text(message.parked_ms),
               operate::text_or_base64(message.id), message.reason, note});
  }
  if (output.json()) {
    Json json = {{"dry_run", true}, {"action", plan.action}, {"scope", plan.scope}};
    if (!plan.to.empty()) json["to"] = shown_url(plan.to);
    json["count"] = plan.messages.size();
    json["messages"] = std::move(messages);
    return output.write_json(json);
  }
  if (!plan.messages.empty()) output.write_table(table);
  output.talk(fmt::format(
      "dry run: {} would {} {} of scope {}; nothing was changed", plan.action,
      plan.action == "replay" ? "send" : "give up",
      plan.messages.size() == 1 ? "1 message" : fmt::format("{} messages", plan.messages.size()),
      plan.scope));
}

void show_done(Output& output, const Plan& plan, std::optional<std::size_t> sent) {
  if (output.json()) {
    Json json = {{"action", plan.action}, {"scope", plan.scope}, {"count", plan.messages.size()}};
    if (sent) json["sent"] = *sent;
    if (!plan.to.empty()) json["to"] = shown_url(plan.to);
    json["numbers"] = plan.numbers();
    return output.write_json(json);
  }
  if (!sent) {
    Table table({"dropped"});
    table.row({grouped(static_cast<std::int64_t>(plan.messages.size()))});
    return output.write_table(table);
  }
  Table table({"replayed", "sent", "to"});
  table.row({grouped(static_cast<std::int64_t>(plan.messages.size())),
             grouped(static_cast<std::int64_t>(*sent)), shown_url(plan.to)});
  output.write_table(table);
  if (plan.hindered() > 0)
    output.talk(fmt::format("{} of them may not count as new; --dry-run would have said why",
                            plan.hindered()));
}

Status check_accepted(const RelayState& state) {
  if (state.parked == 0) return {};
  return fail(Remedy::park, "refused",
              fmt::format("the destination can never take {} of the messages; they are parked "
                          "again: once outbox show lists them",
                          state.parked));
}

Result<int> replay(const ParkFlags& flags, Output& output) {
  ONCE_TRY(check_selection(flags));
  ONCE_TRY(parse_url(flags.to));
  Books books = ONCE_TRY(Books::open(flags.books));
  const Plan made = ONCE_TRY(plan(flags, books, "replay"));
  if (flags.dry_run) return show_plan(output, made), exit_ok;
  Repairs* repairs = ONCE_TRY(books.repairs());
  (void)ONCE_TRY(books.outbox());
  // A place that cannot be opened is noticed before anything is changed.
  auto sink = ONCE_TRY(open_sink(flags.to));
  const std::string destination = ONCE_TRY(new_replay_destination(flags.to));
  ONCE_TRY(repairs->replay(made.scope, made.numbers(), destination, flags.reason));
  const RelayState state = ONCE_TRY(send_replayed(books.store(), *sink, destination, output));
  ONCE_TRY(check_accepted(state));
  const std::size_t sent = state.sent;
  if (sent != made.messages.size())
    return fail(Remedy::recheck, "relay",
                fmt::format("{} of {} messages were sent from here; another relay of this store "
                            "took the others: look where it sends \"{}\"",
                            sent, made.messages.size(), destination));
  show_done(output, made, sent);
  return exit_ok;
}

Result<int> drop(const ParkFlags& flags, Output& output) {
  ONCE_TRY(check_selection(flags));
  Books books = ONCE_TRY(Books::open(flags.books));
  const Plan made = ONCE_TRY(plan(flags, books, "drop"));
  if (flags.dry_run) return show_plan(output, made), exit_ok;
  Repairs* repairs = ONCE_TRY(books.repairs());
  ONCE_TRY(repairs->drop(made.scope, made.numbers(), flags.reason));
  show_done(output, made, std::nullopt);
  return exit_ok;
}

// --- resume

Result<int> resume(const ParkFlags& flags, Output& output) {
  Books books = ONCE_TRY(Books::open(flags.books));
  Outbox* outbox = ONCE_TRY(books.outbox());
  Json json = Json::array();
  Table table({"sent", "to"});
  for (const std::string& destination : ONCE_TRY(outbox->destinations())) {
    const auto url = replay_url_of(destination);
    if (!url) continue;
    auto sink = ONCE_TRY(open_sink(*url));
    const RelayState state = ONCE_TRY(send_replayed(books.store(), *sink, destination, output));
    ONCE_TRY(check_accepted(state));
    json.push_back({{"sent", state.sent}, {"to", shown_url(*url)}});
    table.row({grouped(static_cast<std::int64_t>(state.sent)), shown_url(*url)});
  }
  write_list(output, json, table, "no replay was interrupted");
  return exit_ok;
}

// --- The parser

using Verb = Result<int> (*)(const ParkFlags&, Output&);

CLI::App& add_verb(CLI::App& park, Context& context, const std::shared_ptr<ParkFlags>& flags,
                   const std::string& name, const std::string& about, Verb verb) {
  CLI::App& command = *park.add_subcommand(name, about);
  add_books(command, flags->books);
  add_output(command, context);
  command.callback([&context, flags, verb] {
    context.action = [&context, flags, verb] { return verb(*flags, context.output); };
  });
  return command;
}

void add_selection(CLI::App& command, const std::shared_ptr<ParkFlags>& flags) {
  command.add_option("NUMBER", flags->numbers, "Messages by their numbers")->option_text("...");
  command.add_option("--group", flags->group, "All of this failure group; once park ls lists them")
      ->option_text("N");
  command.add_option("--failure", flags->failure, "All whose reason contains this text")
      ->option_text("TEXT");
  command.add_flag("--all", flags->all, "All of the scope");
  command.add_option("--reason", flags->reason, "Why; goes to the operation log")
      ->option_text("TEXT");
  command.add_flag("--dry-run", flags->dry_run, "Show what would happen and change nothing");
}

}  // namespace

void add_park(CLI::App& app, Context& context) {
  CLI::App& park = *app.add_subcommand("park", "Parked messages: list, show, replay, drop");
  park.require_subcommand(1);
  const auto flags = std::make_shared<ParkFlags>();
  CLI::App& ls = add_verb(park, context, flags, "ls", "List failures, alike ones together", list);
  ls.add_flag("--all", flags->all, "Each message instead of groups");
  ls.footer("Example:\n  once park ls --store sqlite:shop.db");
  CLI::App& shown_one = add_verb(park, context, flags, "show", "Show a whole message", show);
  shown_one.add_option("NUMBER", flags->numbers, "Its number")
      ->required()
      ->expected(1)
      ->option_text(" ");
  shown_one.footer("Example:\n  once park show 3 --store sqlite:shop.db -o json");
  CLI::App& replayed = add_verb(park, context, flags, "replay",
                                "Send messages once more; their ids count as new", replay);
  add_selection(replayed, flags);
  replayed.add_option("--to", flags->to, "The topic to send them to: file:DIR/TOPIC")
      ->required()
      ->option_text("URL");
  replayed.footer(
      "Examples:\n"
      "  once park replay --group 3 --to file:data/orders --store sqlite:shop.db --dry-run\n"
      "  once park replay 3 4 --to file:data/orders --reason 'account made' --store "
      "sqlite:shop.db");
  CLI::App& dropped = add_verb(park, context, flags, "drop",
                               "Give messages up; their ids stay in the ledger", drop);
  add_selection(dropped, flags);
  dropped.footer(
      "Example:\n  once park drop --failure 'test order' --reason 'not real' --store "
      "sqlite:shop.db");
  add_verb(park, context, flags, "resume", "Send what an interrupted replay left behind", resume)
      .footer("Example:\n  once park resume --store sqlite:shop.db\nAsked twice, it does no harm.");
}

}  // namespace once::cli
