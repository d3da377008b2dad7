// SPDX-License-Identifier: Apache-2.0
// How far a scope has come: the positions of its partitions, and the horizon that follows from
// them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <memory>
#include <string>

#include "cli/books.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "operate/progress.h"
#include "runtime/forgetter.h"

namespace once::cli {
namespace {

struct ProgressFlags {
  BooksFlags books;
  std::string partition;
  std::string to;
  std::string reason;
  bool force = false;
};

std::string time_or_nothing(std::int64_t ms) { return ms < 0 ? "" : time_text(ms); }

std::string offset_text(std::int64_t offset) {
  return offset < 0 ? "first" : fmt::format("{}", offset);
}

Result<int> list_positions(const ProgressFlags& flags, Output& output) {
  Books books = ONCE_TRY(flags.books.open());
  Json json = Json::array();
  Table table(
      {"scope", "partition", "position", "fence", "settled", "waiting", "drained", "source"});
  for (const auto& [scope, record] : ONCE_TRY(operate::progress_of(books)))
    for (const PartitionRecord& partition : record.partitions) {
      json.push_back(operate::position_json(scope, partition));
      table.row({scope, partition.partition, offset_text(partition.position.offset),
                 fmt::format("{}", partition.position.fence), time_or_nothing(partition.settled_ms),
                 time_or_nothing(partition.waiting_ms), time_or_nothing(partition.drained_ms),
                 partition.source_identity});
    }
  write_list(output, json, table, "there are no positions");
  return exit_ok;
}

Result<std::int64_t> offset_of(const std::string& text) {
  if (text == "first") return -1;
  std::int64_t offset = -1;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), offset);
  if (parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() && offset >= 0)
    return offset;
  return fail_usage(fmt::format("--to is an offset or \"first\", not \"{}\"", text));
}

Result<int> set_position(const ProgressFlags& flags, Output& output) {
  const std::int64_t to = ONCE_TRY(offset_of(flags.to));
  Books books = ONCE_TRY(flags.books.open());
  const auto change =
      ONCE_TRY(operate::set_position(books, flags.partition, to, flags.reason, flags.force));
  const std::int64_t was = std::max<std::int64_t>(change.was.position.offset, 0);
  if (to > was)
    output.talk(
        fmt::format("warning: offsets {} to {} are skipped: they are not handled", was, to - 1));
  if (output.json())
    output.write_json(operate::json_of(change));
  else
    output.write_line(fmt::format("partition {} of scope {} goes on at {} (it was at {})",
                                  flags.partition, change.scope, offset_text(to),
                                  offset_text(change.was.position.offset)));
  return exit_ok;
}

std::string horizon_text(std::int64_t horizon_ms) {
  return horizon_ms == 0 ? "none" : time_text(horizon_ms);
}

Result<int> show_horizon(const ProgressFlags& flags, Output& output) {
  Books books = ONCE_TRY(flags.books.open());
  Json json = Json::array();
  Table table({"scope", "horizon", "partition", "reach", "settled", "waiting", "drained"});
  for (const operate::ScopeProgress& progress : ONCE_TRY(operate::progress_of(books))) {
    json.push_back(operate::horizon_json(progress));
    table.row({progress.scope, horizon_text(progress.record.horizon_ms)});
    for (const PartitionRecord& partition : progress.record.partitions)
      table.row({"", "", partition.partition, time_or_nothing(reach_ms(partition)),
                 time_or_nothing(partition.settled_ms), time_or_nothing(partition.waiting_ms),
                 time_or_nothing(partition.drained_ms)});
  }
  write_list(output, json, table, "there are no scopes");
  return exit_ok;
}

Result<std::int64_t> horizon_of(const std::string& text) {
  std::int64_t horizon_ms = 0;
  if (text == "none") return horizon_ms;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), horizon_ms);
  if (parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() && horizon_ms >= 0)
    return horizon_ms;
  return fail_usage(
      fmt::format("--to is a time in milliseconds since 1970, or \"none\", not \"{}\"", text));
}

Result<int> set_horizon(const ProgressFlags& flags, Output& output) {
  const std::int64_t to_ms = ONCE_TRY(horizon_of(flags.to));
  Books books = ONCE_TRY(flags.books.open());
  const auto change = ONCE_TRY(operate::set_horizon(books, to_ms, flags.reason, flags.force));
  if (output.json())
    output.write_json(operate::json_of(change));
  else
    output.write_line(fmt::format("the horizon of scope {} is {} (it was {})", change.scope,
                                  horizon_text(to_ms), horizon_text(change.was_ms)));
  return exit_ok;
}

using Verb = Result<int> (*)(const ProgressFlags&, Output&);

CLI::App& add_verb(CLI::App& of, Context& context, const std::shared_ptr<ProgressFlags>& flags,
                   const std::string& name, const std::string& about, Verb verb) {
  CLI::App& command = *of.add_subcommand(name, about);
  add_books(command, flags->books);
  add_output(command, context);
  command.callback([&context, flags, verb] {
    context.action = [&context, flags, verb] { return verb(*flags, context.output); };
  });
  return command;
}

void add_target(CLI::App& command, ProgressFlags& flags, const std::string& about,
                const std::string& kind) {
  command.add_option("--to", flags.to, about)->required()->option_text(kind);
  command.add_option("--reason", flags.reason, "Why; goes to the operation log")
      ->required()
      ->option_text("TEXT");
  command.add_flag("--force", flags.force, "Even if it is not plausible");
}

}  // namespace

void add_position(CLI::App& app, Context& context) {
  CLI::App& position =
      *app.add_subcommand("position", "How far the partitions of a scope have come: list, set");
  position.require_subcommand(1);
  const auto flags = std::make_shared<ProgressFlags>();
  add_verb(position, context, flags, "ls", "List positions and what is known of them",
           list_positions)
      .footer("Example:\n  once position ls --store sqlite:shop.db --scope payments");
  CLI::App& set = add_verb(position, context, flags, "set",
                           "Set where a partition goes on; its owner is fenced", set_position);
  set.add_option("--partition", flags->partition, "Which one")->required()->option_text("NAME");
  add_target(set, *flags, "The next offset to handle, or \"first\"", "OFFSET");
  set.footer(
      "Example:\n  once position set --store sqlite:shop.db --scope payments --partition 0 \\\n"
      "    --to first --reason 'the topic was created again'\n"
      "What was handled before is told by its id, if there is an id rule; without one it counts "
      "again.");
}

void add_horizon(CLI::App& app, Context& context) {
  CLI::App& horizon =
      *app.add_subcommand("horizon", "Below it the ids of a scope are forgotten: show, set");
  horizon.require_subcommand(1);
  const auto flags = std::make_shared<ProgressFlags>();
  add_verb(horizon, context, flags, "show", "Show the horizon and what holds it", show_horizon)
      .footer("Example:\n  once horizon show --store sqlite:shop.db --scope payments");
  CLI::App& set = add_verb(horizon, context, flags, "set", "Set the horizon", set_horizon);
  add_target(set, *flags, "Milliseconds since 1970, or \"none\"", "TIME");
  set.footer(
      "Example:\n  once horizon set --store sqlite:shop.db --scope payments --to none \\\n"
      "    --reason 'a producer sent births in the future'\n"
      "Moved back, ids that were forgotten in between count as new: a message that was handled and "
      "comes\nagain has a second effect.");
}

}  // namespace once::cli
