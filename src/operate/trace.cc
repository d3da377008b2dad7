// SPDX-License-Identifier: Apache-2.0
#include "operate/trace.h"

#include <fmt/format.h>
#include <once/outbox.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "audit/looking_url.h"
#include "audit/read_to_end.h"
#include "base/secrets.h"
#include "base/url.h"
#include "model/start_at.h"
#include "open/look.h"
#include "operate/later.h"
#include "operate/message_json.h"
#include "operate/progress.h"
#include "operate/record_json.h"

namespace once::operate {
namespace {

constexpr std::size_t page_count = 1000;
constexpr std::size_t outbox_count_max = 100'000;

std::string text_of(const LedgerRecord& record) {
  const bool applied = record.outcome.kind == Outcome::Kind::applied;
  std::string text = name_of(record.outcome.kind);
  if (!record.outcome.detail.empty())
    text += (applied ? ", result " : ": ") + text_or_base64(record.outcome.detail);
  return text + fmt::format(" ({} offset {})", record.partition, record.offset);
}

std::string text_of(const ClaimRecord& record) {
  std::string text = fmt::format("{}, generation {}, attempt {}", name_of(record.state),
                                 record.generation, record.attempts);
  if (record.result) text += ", result " + text_or_base64(*record.result);
  if (!record.reason.empty()) text += ": " + record.reason;
  if (!record.owner.empty()) text += ", held by " + record.owner;
  for (const StepRecord& step : record.steps)
    text += fmt::format("; step {}: {}", step.name, text_or_base64(step.result));
  return text;
}

// Lines about owners, horizons and schemas have other subjects than ids.
bool is_about_an_id(const OperationRecord& line) {
  return line.action != "take" && line.action != "forget" && line.action != "migrate";
}

// Collects what the parts of a store know.
class Search {
 public:
  Search(const TraceRequest& request, const TraceWatch& watch) : request_(request), watch_(watch) {}

  Status ask(Books& books) {
    for (const std::string& scope : books.scopes()) {
      if (const auto record = ONCE_TRY(books.records().find(scope, request_.id)))
        add(record->recorded_ms, scope, "ledger", text_of(*record), json_of(scope, *record));
      ONCE_TRY(ask_claims(books, scope));
      ONCE_TRY(ask_parked(books, scope));
      ONCE_TRY(ask_waiting(books, scope));
      ONCE_TRY(ask_operations(books, scope));
    }
    return ask_outbox(books);
  }

  void found_in_source(const Delivery& delivery) {
    add(delivery.timestamp_ms, {}, "source",
        fmt::format("{}, {} offset {}: {}", shown_url(request_.source_url), delivery.partition,
                    delivery.offset, text_or_base64(delivery.body)),
        json_of(delivery));
  }

  std::vector<Finding> take() {
    static constexpr std::int64_t present = std::numeric_limits<std::int64_t>::max();
    std::stable_sort(findings_.begin(), findings_.end(), [](const Finding& a, const Finding& b) {
      return a.at_ms.value_or(present) < b.at_ms.value_or(present);
    });
    return std::move(findings_);
  }

  bool empty() const { return findings_.empty(); }

 private:
  void add(std::optional<std::int64_t> at_ms, const std::string& scope, const char* kind,
           std::string text, Json record) {
    findings_.push_back({at_ms, scope, kind, std::move(text), std::move(record)});
  }

  Status ask_claims(Books& books, const std::string& scope) {
    if (books.store().claims() == nullptr) return {};
    const auto claims =
        ONCE_TRY(books.store().claims()->claims(scope, std::nullopt, request_.id, 1));
    if (claims.empty() || claims[0].id != request_.id) return {};
    add(claims[0].changed_ms, scope, "claim", text_of(claims[0]), json_of(scope, claims[0]));
    return {};
  }

  Status ask_parked(Books& books, const std::string& scope) {
    for (std::int64_t after = 0;;) {
      const auto page = ONCE_TRY(books.records().parked(scope, after, page_count));
      for (const ParkedRecord& record : page) {
        after = record.number;
        if (record.message.id != request_.id) continue;
        add(record.parked_ms, scope, "parked",
            fmt::format("number {}, attempt {}: {}", record.number, record.attempts, record.reason),
            json_of(scope, record));
      }
      if (page.size() < page_count) return {};
    }
  }

  Status ask_waiting(Books& books, const std::string& scope) {
    for (const auto& [where, record] : ONCE_TRY(waiting_of(books, scope, request_.id)))
      add(record.deferred_ms, where, "waiting",
          fmt::format("number {}, attempt {}, due {}: {}", record.number, record.attempts,
                      time_text(record.due_ms), record.reason),
          json_of(where, record));
    return {};
  }

  Status ask_operations(Books& books, const std::string& scope) {
    for (std::int64_t after = 0;;) {
      const auto page = ONCE_TRY(books.records().operations(scope, after, page_count));
      for (const OperationRecord& line : page) {
        after = line.number;
        if (line.subject != request_.id || !is_about_an_id(line)) continue;
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
        watch_.tell(fmt::format("only the first {} messages that wait for {} were looked at",
                                outbox_count_max, without_credentials(destination)));
      for (const OutboxRow& row : rows) {
        if (row.message.id != request_.id) continue;
        add(std::nullopt, {}, "outbox",
            fmt::format("row {} waits to be sent to {}", row.number,
                        without_credentials(destination)),
            {{"number", row.number},
             {"destination", without_credentials(destination)},
             {"routed", row.route.has_value()}});
      }
    }
    return {};
  }

  const TraceRequest& request_;
  const TraceWatch& watch_;
  std::vector<Finding> findings_;
};

// Reads a topic up to the end it has now, also while others write to it.
class SourceSearch {
 public:
  SourceSearch(Search& search, const TraceRequest& request, const TraceWatch& watch)
      : search_(search), request_(request), watch_(watch) {}

  Status run() {
    const audit::LookingUrl url = ONCE_TRY(audit::looking_url(request_.source_url));
    ONCE_TRY(find_ends());
    const auto source = ONCE_TRY(open_source_to_look(ONCE_TRY(audit::url_that_ends(url.source))));
    // A queue has no offsets: what it shows is all there is.
    const bool has_ends = source->traits().replayable;
    constexpr std::int64_t wait_ms = 1000;
    while (!has_ends || !ends_.empty()) {
      const Batch batch = ONCE_TRY(source->poll(page_count, wait_ms));
      if (batch.event == Batch::Event::end) break;
      if (batch.event == Batch::Event::assigned && has_ends)
        ONCE_TRY(start_at(*source, batch.partition, -1));
      if (batch.event == Batch::Event::messages)
        has_ends ? look_through_to_end(batch) : look_through(batch, no_end);
    }
    return {};
  }

 private:
  // Only what a partition has now: it is erased when that was read.
  Status find_ends() {
    for (const auto& [partition, extent] : ONCE_TRY(topic_extents(request_.source_url)))
      if (extent.end_offset > extent.first_offset) ends_[partition] = extent.end_offset;
    return {};
  }

  void look_through_to_end(const Batch& batch) {
    const auto end = ends_.find(batch.partition);
    if (end == ends_.end()) return;
    look_through(batch, end->second);
    if (batch.end_offset >= end->second) ends_.erase(end);
  }

  void look_through(const Batch& batch, std::int64_t end_offset) {
    for (const Delivery& delivery : batch.deliveries) {
      if (delivery.offset >= end_offset) break;
      const auto id = request_.id_rule.id_of(delivery);
      if (id && *id == request_.id) search_.found_in_source(delivery);
    }
    searched_ += static_cast<std::int64_t>(batch.deliveries.size());
    watch_.on_searched(searched_);
  }

  static constexpr std::int64_t no_end = std::numeric_limits<std::int64_t>::max();
  Search& search_;
  const TraceRequest& request_;
  const TraceWatch& watch_;
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

}  // namespace

Result<TraceReport> trace_id(Books& books, const TraceRequest& request, const TraceWatch& watch) {
  TraceReport report{request.id};
  Search search(request, watch);
  ONCE_TRY(search.ask(books));
  if (search.empty()) report.not_known = ONCE_TRY(not_known(books, request.id));
  if (!request.source_url.empty())
    if (const Status searched = SourceSearch(search, request, watch).run(); !searched)
      report.source_error = searched.error();
  report.findings = search.take();
  return report;
}

Json json_of(const TraceReport& report) {
  Json events = Json::array();
  for (const Finding& finding : report.findings)
    events.push_back({{"at_ms", finding.at_ms ? Json(*finding.at_ms) : Json()},
                      {"kind", finding.kind},
                      {"text", finding.text},
                      {"record", finding.record}});
  Json json;
  put_bytes(json, "id", report.id);
  json["events"] = std::move(events);
  if (report.source_error) json["source_error"] = report.source_error->text;
  return json;
}

}  // namespace once::operate
