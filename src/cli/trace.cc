// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <once/identity.h>
#include <once/log.h>
#include <once/open.h>
#include <once/outbox.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/secrets.h"
#include "base/url.h"
#include "cli/books.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "open/log_address.h"
#include "operate/message_json.h"

namespace once::cli {
namespace {

constexpr std::size_t page_count = 1000;
constexpr std::size_t outbox_count_max = 100'000;
constexpr std::int64_t now = std::numeric_limits<std::int64_t>::max();  // it is so at present

struct TraceFlags {
  BooksFlags books;
  std::string id;
  std::string source;
  std::string id_from = "carried";
};

// Something that is known about the id.
struct Finding {
  std::int64_t at_ms;
  std::string scope;
  std::string kind;
  std::string text;
  Json record;
};

std::string text_of(const LedgerRecord& record) {
  const bool applied = record.outcome.kind == Outcome::Kind::applied;
  std::string text = name_of(record.outcome.kind);
  if (!record.outcome.detail.empty())
    text += (applied ? ", result " : ": ") + operate::text_or_base64(record.outcome.detail);
  return text + fmt::format(" ({} offset {})", record.partition, record.offset);
}

std::string text_of(const ClaimRecord& record) {
  std::string text = fmt::format("{}, generation {}, attempt {}", name_of(record.state),
                                 record.generation, record.attempts);
  if (record.result) text += ", result " + operate::text_or_base64(*record.result);
  if (!record.reason.empty()) text += ": " + record.reason;
  if (!record.owner.empty()) text += ", held by " + record.owner;
  for (const StepRecord& step : record.steps)
    text += fmt::format("; step {}: {}", step.name, operate::text_or_base64(step.result));
  return text;
}

// Lines about owners, horizons and schemas have other subjects than ids.
bool is_about_an_id(const OperationRecord& line) {
  return line.action != "take" && line.action != "forget" && line.action != "migrate";
}

class Trace {
 public:
  Trace(const TraceFlags& flags, Output& output)
      : id_(flags.id), source_(flags.source), output_(output) {}

  Status ask(Books& books) {
    for (const std::string& scope : books.scopes()) {
      if (const auto record = ONCE_TRY(books.records().find(scope, id_)))
        add(record->recorded_ms, scope, "ledger", text_of(*record), json_of(scope, *record));
      ONCE_TRY(ask_claims(books, scope));
      ONCE_TRY(ask_parked(books, scope));
      ONCE_TRY(ask_operations(books, scope));
    }
    return ask_outbox(books);
  }

  void found_in_source(const Delivery& delivery) {
    add(delivery.timestamp_ms, {}, "source",
        fmt::format("{} partition {} offset {}: {}", shown_url(source_),
                    operate::partition_number(delivery.partition), delivery.offset,
                    operate::text_or_base64(delivery.body)),
        operate::json_of(delivery));
  }

  bool empty() const { return findings_.empty(); }

  void write() {
    std::stable_sort(findings_.begin(), findings_.end(),
                     [](const Finding& a, const Finding& b) { return a.at_ms < b.at_ms; });
    Json events = Json::array();
    Table table({"time", "scope", "where", "what"});
    for (const Finding& finding : findings_) {
      const bool timed = finding.at_ms != now;
      events.push_back({{"at_ms", timed ? Json(finding.at_ms) : Json()},
                        {"kind", finding.kind},
                        {"text", finding.text},
                        {"record", finding.record}});
      table.row(
          {timed ? time_text(finding.at_ms) : "now", finding.scope, finding.kind, finding.text});
    }
    if (!output_.json()) return output_.write_table(table);
    Json json;
    operate::put_bytes(json, "id", id_);
    json["events"] = std::move(events);
    output_.write_json(json);
  }

 private:
  void add(std::int64_t at_ms, const std::string& scope, const char* kind, std::string text,
           Json record) {
    findings_.push_back({at_ms, scope, kind, std::move(text), std::move(record)});
  }

  Status ask_claims(Books& books, const std::string& scope) {
    if (books.store().claims() == nullptr) return {};
    const auto claims = ONCE_TRY(books.store().claims()->claims(scope, std::nullopt, id_, 1));
    if (claims.empty() || claims[0].id != id_) return {};
    add(claims[0].changed_ms, scope, "claim", text_of(claims[0]), json_of(scope, claims[0]));
    return {};
  }

  Status ask_parked(Books& books, const std::string& scope) {
    for (std::int64_t after = 0;;) {
      const auto page = ONCE_TRY(books.records().parked(scope, after, page_count));
      for (const ParkedRecord& record : page) {
        after = record.number;
        if (record.message.id != id_) continue;
        add(record.parked_ms, scope, "parked",
            fmt::format("number {}, attempt {}: {}", record.number, record.attempts, record.reason),
            json_of(scope, record));
      }
      if (page.size() < page_count) return {};
    }
  }

  Status ask_operations(Books& books, const std::string& scope) {
    for (std::int64_t after = 0;;) {
      const auto page = ONCE_TRY(books.records().operations(scope, after, page_count));
      for (const OperationRecord& line : page) {
        after = line.number;
        if (line.subject != id_ || !is_about_an_id(line)) continue;
        add(line.at_ms, scope, "operation", line.action + ": " + line.reason, json_of(scope, line));
      }
      if (page.size() < page_count) return {};
    }
  }

  Status ask_outbox(Books& books) {
    Outbox* outbox = books.store().outbox();
    if (outbox == nullptr) return {};
    for (const std::string& destination : ONCE_TRY(outbox->destinations())) {
      const auto rows = ONCE_TRY(outbox->pending(destination, outbox_count_max));
      if (rows.size() == outbox_count_max)
        output_.talk(fmt::format("only the first {} messages that wait for {} were looked at",
                                 grouped(outbox_count_max), destination));
      for (const OutboxRow& row : rows) {
        if (row.message.id != id_) continue;
        add(now, {}, "outbox",
            fmt::format("row {} waits to be sent to {}", row.number,
                        without_credentials(destination)),
            {{"number", row.number},
             {"destination", without_credentials(destination)},
             {"routed", row.route.has_value()}});
      }
    }
    return {};
  }

  const std::string id_;
  const std::string source_;
  Output& output_;
  std::vector<Finding> findings_;
};

// Reads a topic up to the end it has now, also while others write to it.
class SourceSearch {
 public:
  SourceSearch(Trace& trace, const TraceFlags& flags, IdRule rule, Output& output)
      : trace_(trace), flags_(flags), rule_(std::move(rule)), progress_(output) {}

  Status run() {
    const Url url = ONCE_TRY(parse_url(flags_.source));
    const bool bounded = url.parameter("end") != nullptr;
    auto source = ONCE_TRY(
        open_source(bounded ? flags_.source
                            : flags_.source + (url.parameters.empty() ? "?" : "&") + "end=stop"));
    ONCE_TRY(find_ends(url));
    constexpr std::int64_t wait_ms = 1000;
    while (!ends_.empty()) {
      const Batch batch = ONCE_TRY(source->poll(page_count, wait_ms));
      if (batch.event == Batch::Event::end) break;
      if (batch.event == Batch::Event::assigned) ONCE_TRY(source->seek(batch.partition, -1));
      if (batch.event == Batch::Event::messages) search(batch);
    }
    return {};
  }

 private:
  // Only what a partition has now: it is erased when that was read.
  Status find_ends(const Url& url) {
    const LogAddress address = ONCE_TRY(log_address_of(url));
    const TopicInfo info = ONCE_TRY(describe_topic(address.directory, address.topic));
    for (const PartitionInfo& partition : info.partitions)
      if (partition.end_offset > partition.first_offset)
        ends_[fmt::format("{}", partition.partition)] = partition.end_offset;
    return {};
  }

  void search(const Batch& batch) {
    const auto end = ends_.find(std::string(operate::partition_number(batch.partition)));
    if (end == ends_.end()) return;
    for (const Delivery& delivery : batch.deliveries) {
      if (delivery.offset >= end->second) break;
      const auto id = rule_.id_of(delivery);
      if (id && *id == flags_.id) trace_.found_in_source(delivery);
    }
    searched_ += static_cast<std::int64_t>(batch.deliveries.size());
    progress_.show(fmt::format("  searched {} messages", grouped(searched_)),
                   system_clock().ticks_ns());
    if (batch.end_offset >= end->second) ends_.erase(end);
  }

  Trace& trace_;
  const TraceFlags& flags_;
  const IdRule rule_;
  Progress progress_;
  std::map<std::string, std::int64_t, std::less<>> ends_;
  std::int64_t searched_ = 0;
};

// What is below a horizon may have been there and be forgotten.
Result<std::string> not_known(Books& books, const std::string& id) {
  std::string text = fmt::format("\"{}\" is not known to {}", id, books.store().traits().name);
  for (const std::string& scope : books.scopes()) {
    const std::int64_t horizon = ONCE_TRY(books.records().horizon_ms(scope));
    if (horizon > 0)
      text += fmt::format("; scope {} may have forgotten what was born before {}", scope,
                          time_text(horizon));
  }
  return text;
}

Result<int> trace(const TraceFlags& flags, Output& output) {
  auto rule = IdRule::parse(flags.id_from);
  if (!rule) return fail_usage("--id-from: " + rule.error().text);
  Books books = ONCE_TRY(Books::open(flags.books));
  Trace trace(flags, output);
  ONCE_TRY(trace.ask(books));
  const bool in_store = !trace.empty();
  if (!flags.source.empty()) ONCE_TRY(SourceSearch(trace, flags, std::move(*rule), output).run());
  if (trace.empty()) return fail_not_known(ONCE_TRY(not_known(books, flags.id)));
  trace.write();
  if (!in_store) output.talk("it is in the source; " + ONCE_TRY(not_known(books, flags.id)));
  return exit_ok;
}

constexpr const char* examples =
    "Examples:\n"
    "  once trace order-100 --store sqlite:shop.db\n"
    "  once trace order-100 --store sqlite:shop.db --source file:data/orders --id-from "
    "json:/order\n"
    "Exit code 8: the store knows nothing of this id.";

}  // namespace

void add_trace(CLI::App& app, Context& context) {
  const auto flags = std::make_shared<TraceFlags>();
  CLI::App& command = *app.add_subcommand("trace", "What happened to this id?");
  command.add_option("ID", flags->id, "The id, as the ledger has it")->required()->option_text(" ");
  add_books(command, flags->books);
  command
      .add_option("--source", flags->source,
                  "Look for the message in this topic, too: file:DIR/TOPIC")
      ->option_text("URL");
  command.add_option("--id-from", flags->id_from, "The pipeline's id rule, for --source (carried)")
      ->option_text("RULE");
  add_output(command, context);
  command.footer(examples);
  command.callback([&context, flags] {
    context.action = [&context, flags] { return trace(*flags, context.output); };
  });
}

}  // namespace once::cli
