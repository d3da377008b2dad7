// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <once/clock.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "audit/looking_url.h"
#include "audit/read_to_end.h"
#include "audit/stream_audit.h"
#include "cli/books.h"
#include "cli/checks.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "open/look.h"
#include "operate/audit_json.h"
#include "operate/message_json.h"

namespace once::cli {
namespace {

struct AuditFlags {
  std::string url;
  std::string id;
  std::string directory;
  std::size_t memory_mib = 64;
  std::size_t limit = 10;
};

std::string number(std::uint64_t count) { return grouped(static_cast<std::int64_t>(count)); }

void write_tables(const audit::AuditReport& report, Output& output) {
  Table counts({"messages", "without id", "ids twice", "surplus", "repeated", "gaps", "missing"});
  counts.row({number(report.messages), number(report.without_id), number(report.duplicated_ids),
              number(report.surplus), number(report.repeated), number(report.gaps),
              number(report.missing)});
  output.write_table(counts);
  if (!report.doubled.empty()) {
    Table doubled({"partition", "offset", "again in", "at"});
    for (const audit::Doubled& one : report.doubled)
      doubled.row({std::string(operate::partition_number(one.first.partition)),
                   fmt::format("{}", one.first.offset),
                   std::string(operate::partition_number(one.second.partition)),
                   fmt::format("{}", one.second.offset)});
    output.write_line("");
    output.write_table(doubled);
  }
  if (report.gap_list.empty()) return;
  Table gaps({"partition", "producer", "missing from", "to"});
  for (const audit::Gap& gap : report.gap_list)
    gaps.row({std::string(operate::partition_number(gap.partition)),
              fmt::format("{:x}", gap.producer), fmt::format("{}", gap.missing.begin),
              fmt::format("{}", gap.missing.end - 1)});
  output.write_line("");
  output.write_table(gaps);
}

Result<int> audit(const AuditFlags& flags, Output& output) {
  audit::AuditOptions options;
  auto rule = IdRule::parse(flags.id.empty() ? "carried" : flags.id);
  if (!rule) return fail_usage("--id: " + rule.error().text);
  options.id = std::move(*rule);
  options.id_is_expected = !flags.id.empty();
  std::error_code ignored;
  options.directory = flags.directory.empty()
                          ? std::filesystem::temp_directory_path(ignored).string()
                          : flags.directory;
  options.bytes_max = flags.memory_mib << 20;
  options.shown_max = flags.limit;
  (void)ONCE_TRY(audit::looking_url_of_one(flags.url));
  tell_looking(flags.url, output);
  audit::StreamAudit audit(std::move(options));
  Progress progress(output);
  std::uint64_t read = 0;
  ONCE_TRY(audit::read_to_end(flags.url, [&](const Delivery& delivery) {
    constexpr std::uint64_t shown_every = 1024;
    if (++read % shown_every == 0)
      progress.show(fmt::format("  read {}", number(read)), system_clock().ticks_ns());
    return audit.take(delivery);
  }));
  progress.clear();
  const audit::AuditReport report = ONCE_TRY(audit.finish());
  if (output.json())
    output.write_json(is_queue(flags.url) ? operate::json_of_queue(report)
                                          : operate::json_of(report));
  else
    write_tables(report, output);
  if (!report.rule_fits())
    output.talk(
        fmt::format("--id {} finds no id in any message: nothing was compared by id", flags.id));
  return report.is_clean() ? exit_ok : exit_broken;
}

constexpr const char* examples =
    "Examples:\n"
    "  once audit file:data/orders                     ids that are there twice, and gaps\n"
    "  once audit file:data/orders --id json:/order    by the id of the business\n"
    "  once audit kafka://localhost/orders -o json     exit code 1 if anything was found\n"
    "Reading changes nothing. once consume URL --partition P --from OFFSET --count 1 shows a "
    "message.";

}  // namespace

void add_audit(const Command& app, Context& context) {
  const auto flags = std::make_shared<AuditFlags>();
  const Command command = app.add_command("audit", "Count duplicates and gaps in a topic");
  command.add_option("URL", flags->url, "The topic").required().value_text(" ");
  command.add_option("--id", flags->id, "How the id of a message is found (carried)")
      .value_text("RULE");
  command.add_option("--memory", flags->memory_mib, "MiB for ids; what is more goes to files (64)")
      .check(whole_number(1, 65536))
      .value_text("MIB");
  command.add_option("--temp", flags->directory, "Where these files are made").value_text("DIR");
  command.add_option("--limit", flags->limit, "How many duplicates and gaps are shown (10)")
      .value_text("N");
  add_output(command, context);
  command.footer(examples);
  command.callback([&context, flags] {
    context.action = [&context, flags] { return audit(*flags, context.output); };
  });
}

}  // namespace once::cli
