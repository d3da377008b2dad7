// SPDX-License-Identifier: Apache-2.0
#include "operate/status.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/books.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/flags.h"

namespace once::cli {
namespace {

struct StatusFlags {
  BooksFlags books;
};

std::string count_text(std::size_t count) { return grouped(static_cast<std::int64_t>(count)); }

// One line for each partition; what belongs to the scope stands in the first.
Table pipelines_table(const operate::StoreStatus& status) {
  Table table({"scope", "run by", "parked", "waiting", "in doubt", "horizon", "partition",
               "position", "drained"});
  for (const operate::PipelineStatus& pipeline : status.pipelines) {
    std::vector<std::string> scope{
        pipeline.scope,
        pipeline.holder,
        count_text(pipeline.parked),
        count_text(pipeline.waiting.count) + (pipeline.waiting.more ? "+" : ""),
        count_text(pipeline.claims_in_doubt),
        (pipeline.record.horizon_ms == 0 ? "none" : time_text(pipeline.record.horizon_ms)) +
            (pipeline.record.horizon_held ? ", held" : "")};
    if (pipeline.record.partitions.empty()) table.row(scope);
    for (const PartitionRecord& partition : pipeline.record.partitions) {
      std::vector<std::string> row = std::exchange(scope, std::vector<std::string>(6));
      row.push_back(partition.partition);
      row.push_back(partition.position.offset < 0 ? "first"
                                                  : fmt::format("{}", partition.position.offset));
      row.push_back(partition.drained_ms < 0 ? "" : time_text(partition.drained_ms));
      table.row(row);
    }
  }
  return table;
}

Table destinations_table(const operate::StoreStatus& status) {
  Table table({"destination", "pending", "parked", "sent by", "trouble"});
  for (const operate::DestinationRecord& destination : status.destinations)
    table.row({destination.name,
               count_text(destination.pending) + (destination.more_pending ? "+" : ""),
               count_text(destination.parked), destination.sender,
               destination.has_diverged ? "diverged" : destination.trouble});
  return table;
}

Result<int> show(const StatusFlags& flags, Output& output) {
  Books books = ONCE_TRY(flags.books.open());
  const auto status = ONCE_TRY(operate::status_of(books));
  if (output.json()) {
    output.write_json(operate::json_of(status));
    return exit_ok;
  }
  if (status.pipelines.empty()) output.talk("no pipeline has used this store");
  if (!status.pipelines.empty()) output.write_table(pipelines_table(status));
  if (status.destinations.empty()) return exit_ok;
  output.write_line("");
  output.write_table(destinations_table(status));
  return exit_ok;
}

}  // namespace

void add_status(const Command& app, Context& context) {
  const auto flags = std::make_shared<StatusFlags>();
  const Command command = app.add_command("status", "All pipelines of a store at a glance");
  add_books(command, flags->books);
  add_output(command, context);
  command.footer(
      "Example:\n  once status --store sqlite:shop.db\n"
      "once position ls --source URL tells the lag; once park ls what is parked, and why;\n"
      "once later ls what waits until it is due.");
  command.callback([&context, flags] {
    context.action = [&context, flags] { return show(*flags, context.output); };
  });
}

}  // namespace once::cli
