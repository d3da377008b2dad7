// SPDX-License-Identifier: Apache-2.0
// How far a scope has come: the positions of its partitions, and the horizon that follows from
// them.
#include <fmt/format.h>
#include <once/clock.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "cli/books.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/moment.h"
#include "operate/progress.h"
#include "runtime/forgetter.h"

namespace once::cli {
namespace {

struct ProgressFlags {
  BooksFlags books;
  std::string source;
  std::string partition;
  std::string to;
  std::string reason;
  bool force = false;
};

std::string time_or_nothing(std::int64_t ms) { return ms < 0 ? "" : time_text(ms); }

std::string offset_text(std::int64_t offset) {
  return offset < 0 ? "first" : fmt::format("{}", offset);
}

std::string lag_text(const std::optional<operate::Lag>& lag) {
  if (!lag) return "";
  return lag->beyond_end ? "beyond the end" : grouped(lag->messages);
}

Result<operate::TopicExtents> extents_of(const ProgressFlags& flags, Output& output) {
  if (flags.source.empty()) return operate::TopicExtents{};
  tell_looking(flags.source, output);
  return operate::topic_extents(flags.source);
}

std::optional<operate::Lag> lag_of(const operate::Lags& lags, const PartitionRecord& record) {
  const auto found = lags.find(record.partition);
  return found == lags.end() ? std::nullopt : std::optional(found->second);
}

Result<int> list_positions(const ProgressFlags& flags, Output& output) {
  Books books = ONCE_TRY(flags.books.open());
  const auto extents = ONCE_TRY(extents_of(flags, output));
  Json json = Json::array();
  Table table({"scope", "partition", "position", "lag", "fence", "settled", "waiting", "drained",
               "source"});
  for (const auto& [scope, record] : ONCE_TRY(operate::progress_of(books))) {
    const operate::Lags lags = ONCE_TRY(operate::lags_of(record, extents));
    for (const PartitionRecord& partition : record.partitions) {
      const auto lag = lag_of(lags, partition);
      json.push_back(operate::position_json(scope, partition, lag));
      table.row({scope, partition.partition, offset_text(partition.position.offset), lag_text(lag),
                 fmt::format("{}", partition.position.fence), time_or_nothing(partition.settled_ms),
                 time_or_nothing(partition.waiting_ms), time_or_nothing(partition.drained_ms),
                 partition.source_identity});
    }
  }
  write_list(output, json, table, "there are no positions");
  return exit_ok;
}

void write_position(const std::string& scope, const PartitionRecord& record,
                    const operate::TopicExtents& extents, const std::optional<operate::Lag>& lag,
                    Output& output) {
  Table table({"", ""});
  table.row({"scope", scope});
  table.row({"partition", record.partition});
  table.row({"position", offset_text(record.position.offset)});
  if (const auto topic = extents.find(record.partition); topic != extents.end()) {
    table.row(
        {"topic", fmt::format("{} to {}", topic->second.first_offset, topic->second.end_offset)});
    table.row({"lag", lag_text(lag)});
  }
  table.row({"fence", fmt::format("{}", record.position.fence)});
  table.row({"settled", time_or_nothing(record.settled_ms)});
  table.row({"waiting", time_or_nothing(record.waiting_ms)});
  table.row({"drained", time_or_nothing(record.drained_ms)});
  table.row({"source", record.source_identity});
  output.write_table(table);
}

Result<int> show_position(const ProgressFlags& flags, Output& output) {
  Books books = ONCE_TRY(flags.books.open());
  const auto extents = ONCE_TRY(extents_of(flags, output));
  Json json = Json::array();
  for (const auto& [scope, record] : ONCE_TRY(operate::progress_of(books))) {
    const operate::Lags lags = ONCE_TRY(operate::lags_of(record, extents));
    for (const PartitionRecord& partition : record.partitions) {
      if (partition.partition != flags.partition) continue;
      const auto lag = lag_of(lags, partition);
      json.push_back(operate::position_json(scope, partition, lag));
      if (!output.json()) write_position(scope, partition, extents, lag, output);
    }
  }
  if (json.empty())
    return fail_not_known(fmt::format("{} has no partition \"{}\"; `once position ls` lists them",
                                      books.store().traits().name, flags.partition));
  if (output.json()) write_list(output, json, Table({}), "");
  return exit_ok;
}

Result<operate::PositionTarget> target_of(const std::string& text) {
  using Kind = operate::PositionTarget::Kind;
  if (text == "first") return operate::PositionTarget{Kind::first, 0};
  if (text == "end") return operate::PositionTarget{Kind::end, 0};
  if (const auto offset = number_in(text); offset && *offset >= 0)
    return operate::PositionTarget{Kind::offset, *offset};
  if (const auto time_ms = parse_moment(text, system_clock().now_ms()))
    return operate::PositionTarget{Kind::time, *time_ms};
  return fail_usage(
      fmt::format("--to is first, end, an offset or a time, {}; not \"{}\"", moment_forms, text));
}

Result<int> set_position(const ProgressFlags& flags, Output& output) {
  const operate::PositionTarget to = ONCE_TRY(target_of(flags.to));
  const operate::PositionRequest request{.partition = flags.partition,
                                         .to = to,
                                         .source_url = flags.source,
                                         .reason = flags.reason,
                                         .forced = flags.force};
  Books books = ONCE_TRY(flags.books.open());
  if (!flags.source.empty()) tell_looking(flags.source, output);
  const auto change = ONCE_TRY(operate::set_position(books, request));
  const std::int64_t was = std::max<std::int64_t>(change.was.position.offset, 0);
  if (change.offset > was)
    output.talk(fmt::format("warning: offsets {} to {} are skipped: they are not handled", was,
                            change.offset - 1));
  if (!change.checked)
    output.talk("note: whether the topic has this offset was not checked; with --source URL it is");
  if (output.json())
    output.write_json(operate::json_of(change));
  else
    output.write_line(fmt::format("partition {} of scope {} goes on at {} (it was at {})",
                                  flags.partition, change.scope, offset_text(change.offset),
                                  offset_text(change.was.position.offset)));
  return exit_ok;
}

std::string horizon_text(std::int64_t horizon_ms) {
  return horizon_ms == 0 ? "none" : time_text(horizon_ms);
}

std::string horizon_text(const ScopeRecord& record) {
  return horizon_text(record.horizon_ms) + (record.horizon_held ? ", held" : "");
}

Result<int> show_horizon(const ProgressFlags& flags, Output& output) {
  Books books = ONCE_TRY(flags.books.open());
  Json json = Json::array();
  Table table({"scope", "horizon", "partition", "reach", "settled", "waiting", "drained"});
  for (const operate::ScopeProgress& progress : ONCE_TRY(operate::progress_of(books))) {
    json.push_back(operate::horizon_json(progress));
    table.row({progress.scope, horizon_text(progress.record)});
    for (const PartitionRecord& partition : progress.record.partitions)
      table.row({"", "", partition.partition, time_or_nothing(reach_ms(partition)),
                 time_or_nothing(partition.settled_ms), time_or_nothing(partition.waiting_ms),
                 time_or_nothing(partition.drained_ms)});
  }
  write_list(output, json, table, "there are no scopes");
  return exit_ok;
}

Result<std::int64_t> horizon_of(const std::string& text) {
  if (text == "none") return 0;
  if (const auto ms = number_in(text); ms && *ms >= 0) return *ms;
  if (const auto time_ms = parse_moment(text, system_clock().now_ms())) return *time_ms;
  return fail_usage(fmt::format(
      "--to is \"none\", milliseconds since 1970 or a time, {}; not \"{}\"", moment_forms, text));
}

Result<int> set_horizon(const ProgressFlags& flags, Output& output) {
  const std::int64_t to_ms = ONCE_TRY(horizon_of(flags.to));
  Books books = ONCE_TRY(flags.books.open());
  const auto change = ONCE_TRY(operate::set_horizon(books, to_ms, flags.reason, flags.force));
  if (output.json())
    output.write_json(operate::json_of(change));
  else
    output.write_line(fmt::format(
        "the horizon of scope {} is {} (it was {}), and stays there until once horizon release",
        change.scope, horizon_text(to_ms), horizon_text(change.was_ms)));
  if (to_ms < change.was_ms)
    output.talk(
        fmt::format("warning: ids that were born before {} may be forgotten, and are new from now "
                    "on: a message "
                    "that was handled and is sent again has a second effect",
                    time_text(change.was_ms)));
  return exit_ok;
}

Result<int> release_horizon(const ProgressFlags& flags, Output& output) {
  Books books = ONCE_TRY(flags.books.open());
  const auto change = ONCE_TRY(operate::release_horizon(books, flags.reason));
  if (output.json())
    output.write_json(operate::json_of(change));
  else
    output.write_line(fmt::format("the horizon of scope {}, {}, follows its messages again",
                                  change.scope, horizon_text(change.horizon_ms)));
  if (change.horizon_ms > system_clock().now_ms())
    output.talk(
        "warning: it is in the future, and never moves back by itself: messages are too old until "
        "then. Set it back first: once horizon set --to none");
  return exit_ok;
}

using Verb = Result<int> (*)(const ProgressFlags&, Output&);

Command add_verb(const Command& of, Context& context, const std::shared_ptr<ProgressFlags>& flags,
                 const std::string& name, const std::string& about, Verb verb) {
  const Command command = of.add_command(name, about);
  add_books(command, flags->books);
  add_output(command, context);
  command.callback([&context, flags, verb] {
    context.action = [&context, flags, verb] { return verb(*flags, context.output); };
  });
  return command;
}

void add_source(const Command& command, ProgressFlags& flags, const std::string& about) {
  command.add_option("--source", flags.source, about).value_text("URL");
}

void add_reason(const Command& command, ProgressFlags& flags) {
  command.add_option("--reason", flags.reason, "Why; goes to the operation log")
      .required()
      .value_text("TEXT");
}

void add_target(const Command& command, ProgressFlags& flags, const std::string& about,
                const std::string& kind) {
  command.add_option("--to", flags.to, about).required().value_text(kind);
  add_reason(command, flags);
  command.add_flag("--force", flags.force, "Even if it is not plausible");
}

}  // namespace

void add_position(const Command& app, Context& context) {
  const Command position =
      app.add_command("position", "How far the partitions of a scope have come: list, show, set");
  const auto flags = std::make_shared<ProgressFlags>();
  const Command ls = add_verb(position, context, flags, "ls",
                              "List positions and what is known of them", list_positions);
  add_source(ls, *flags, "The topic, to tell the lag of its partitions");
  ls.footer(
      "Example:\n  once position ls --store sqlite:shop.db --scope payments --source "
      "file:data/orders");
  const Command shown = add_verb(position, context, flags, "show",
                                 "Show all that is known of a partition", show_position);
  shown.add_option("--partition", flags->partition, "Which one").required().value_text("NAME");
  add_source(shown, *flags, "The topic, to tell the lag");
  shown.footer("Example:\n  once position show --partition orders/0 --store sqlite:shop.db");
  const Command set = add_verb(position, context, flags, "set",
                               "Set where a partition goes on; its owner is fenced", set_position);
  set.add_option("--partition", flags->partition, "Which one").required().value_text("NAME");
  add_target(set, *flags,
             "The next offset to handle, or one found by a time (2026-11-16T08:00:00Z, -1h)",
             "first|end|OFFSET|TIME");
  add_source(set, *flags, "The topic; needed for --to end and --to TIME");
  set.footer(
      "Examples:\n  once position set --store sqlite:shop.db --scope payments --partition orders/0 "
      "\\\n"
      "    --to first --reason 'the topic was created again'\n"
      "  once position set --store sqlite:shop.db --partition orders/0 --to -1h --source "
      "file:data/orders \\\n"
      "    --reason 'the last hour again'\n"
      "What was handled before is told by its id, if there is an id rule; without one it counts "
      "again.");
}

void add_horizon(const Command& app, Context& context) {
  const Command horizon =
      app.add_command("horizon", "Below it the ids of a scope are forgotten: show, set, release");
  const auto flags = std::make_shared<ProgressFlags>();
  add_verb(horizon, context, flags, "show", "Show the horizon and what holds it", show_horizon)
      .footer("Example:\n  once horizon show --store sqlite:shop.db --scope payments");
  const Command set =
      add_verb(horizon, context, flags, "set", "Set the horizon, and hold it there", set_horizon);
  add_target(set, *flags,
             "A time (2026-11-16T08:00:00Z, -30d, milliseconds since 1970), or none at all",
             "TIME|none");
  set.footer(
      "Example:\n  once horizon set --store sqlite:shop.db --scope payments --to none \\\n"
      "    --reason 'a producer sent births in the future'\n"
      "It stays there until once horizon release. Moved back, ids that were forgotten in between "
      "count as new:\na message that was handled and comes again has a second effect.");
  const Command release = add_verb(horizon, context, flags, "release",
                                   "Let the horizon follow the messages again", release_horizon);
  add_reason(release, *flags);
  release.footer(
      "Example:\n  once horizon release --store sqlite:shop.db --scope payments \\\n"
      "    --reason 'the parked messages are replayed'");
}

}  // namespace once::cli
