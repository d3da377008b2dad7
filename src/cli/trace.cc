// SPDX-License-Identifier: Apache-2.0
#include "operate/trace.h"

#include <fmt/format.h>
#include <once/clock.h>

#include <memory>
#include <string>

#include "base/url.h"
#include "cli/books.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/id_text.h"

namespace once::cli {
namespace {

struct TraceFlags {
  BooksFlags books;
  std::string id;
  std::string source;
  std::string id_from = "carried";
};

void write(const operate::TraceReport& report, Output& output) {
  if (output.json()) return output.write_json(operate::json_of(report));
  Table table({"time", "scope", "where", "what"});
  for (const operate::Finding& finding : report.findings)
    table.row({finding.at_ms ? time_text(*finding.at_ms) : "now", finding.scope, finding.kind,
               finding.text});
  output.write_table(table);
}

Result<int> trace(const TraceFlags& flags, Output& output) {
  auto rule = IdRule::parse(flags.id_from);
  if (!rule) return fail_usage("--id: " + rule.error().text);
  if (!flags.source.empty()) ONCE_TRY(parse_url(flags.source));
  Books books = ONCE_TRY(flags.books.open());
  if (!flags.source.empty()) tell_looking(flags.source, output);
  Progress progress(output);
  const operate::TraceWatch watch{.tell = [&](const std::string& text) { output.talk(text); },
                                  .on_searched =
                                      [&](std::int64_t count) {
                                        progress.show(
                                            fmt::format("  searched {} messages", grouped(count)),
                                            system_clock().ticks_ns());
                                      }};
  const auto report =
      ONCE_TRY(operate::trace_id(books, {flags.id, flags.source, std::move(*rule)}, watch));
  progress.clear();
  if (report.findings.empty() && !report.source_error) return fail_not_known(report.not_known);
  if (!report.findings.empty()) write(report, output);
  if (report.source_error) {
    output.talk(report.not_known.empty() ? "this is what the store knows; the source was not read"
                                         : report.not_known);
    return fail(*report.source_error);
  }
  if (!report.not_known.empty()) output.talk("it is in the source; " + report.not_known);
  return exit_ok;
}

constexpr const char* examples =
    "Examples:\n"
    "  once trace order-100 --store sqlite:shop.db\n"
    "  once trace order-100 --store sqlite:shop.db --source file:data/orders --id "
    "json:/order\n"
    "Exit code 8: the store knows nothing of this id.";

}  // namespace

void add_trace(const Command& app, Context& context) {
  const auto flags = std::make_shared<TraceFlags>();
  const Command command = app.add_command("trace", "What happened to this id?");
  command.add_option("ID", flags->id, "The id, as `once ledger ls` shows it")
      .required()
      .check(id_text())
      .value_text(" ");
  add_books(command, flags->books);
  command
      .add_option("--source", flags->source,
                  "Look for the message in this topic, too: file:DIR/TOPIC")
      .value_text("URL");
  command
      .add_option("--id,--id-from", flags->id_from,
                  "The pipeline's id rule, for --source (carried)")
      .value_text("RULE");
  add_output(command, context);
  command.footer(examples);
  command.callback([&context, flags] {
    context.action = [&context, flags] { return trace(*flags, context.output); };
  });
}

}  // namespace once::cli
