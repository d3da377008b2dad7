// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/demo/demo.h"

namespace once::cli {
namespace {

Json json_of(const Audit& audit, const SceneReport& report) {
  return {{"sent", audit.sent},
          {"in_log", audit.in_log},
          {"delivered", audit.redeliveries.delivered},
          {"effects", audit.orders},
          {"orders", audit.orders},
          {"payments", audit.payments},
          {"points", audit.points},
          {"lost", audit.lost},
          {"duplicated", audit.duplicated},
          {"out_of_order", audit.out_of_order},
          {"balanced", audit.books.empty()},
          {"unbalanced", audit.books},
          {"kills", report.kills},
          {"owners_changed", report.owners_changed},
          {"seconds", report.seconds}};
}

std::string yes_or_no(bool yes) { return yes ? "yes" : "no"; }

}  // namespace

Json json_of(const DemoResult& result) {
  const Redeliveries& redeliveries = result.once.redeliveries;
  Json json = json_of(result.once, result.once_report);
  json["duplicates"] = {{"on_send_same_stamp", result.receipts.same_stamp},
                        {"on_send_new_stamp", result.once.copies},
                        {"on_delivery", redeliveries.on_delivery},
                        {"on_rebalance", redeliveries.on_rebalance}};
  json["overtakings"] = result.receipts.overtakings;
  json["fenced"] = result.once.refused;
  json["parked"] = result.once.parked;
  json["ok"] = result.kept();
  json["seed"] = result.settings.seed;
  json["total_seconds"] = result.seconds;
  json["directory"] = result.settings.directory;
  json["naive"] = json_of(result.naive, result.naive_report);
  return json;
}

Table table_of(const DemoResult& result) {
  Table table({"", "Once", "naive recipe", ""});
  const Audit& ours = result.once;
  const Audit& naive = result.naive;
  const auto row = [&](const char* name, std::int64_t left, std::int64_t right,
                       const char* note = "") {
    table.row({name, grouped(left), grouped(right), note});
  };
  row("orders sent", ours.sent, naive.sent, "by id, in the log");
  row("messages in the log", ours.in_log, naive.in_log, "both read the same log");
  row("delivered", ours.redeliveries.delivered, naive.redeliveries.delivered,
      "to the process that takes orders");
  table.row({"duplicates on send, same stamp", grouped(result.receipts.same_stamp), "",
             "refused by the log: its receipts say so"});
  row("duplicates on send, new stamp", ours.copies, naive.copies, "second copies in the log");
  row("duplicates on delivery", ours.redeliveries.on_delivery, naive.redeliveries.on_delivery,
      "an ack was lost");
  row("duplicates on rebalance", ours.redeliveries.on_rebalance, naive.redeliveries.on_rebalance,
      "a restart or a new owner");
  row("kills", result.once_report.kills, result.naive_report.kills, "SIGKILL");
  row("owners replaced while alive", result.once_report.owners_changed,
      result.naive_report.owners_changed, "frozen, replaced, woken again");
  row("orders entered", ours.orders, naive.orders, "effects: rows in the database");
  row("payments taken", ours.payments, naive.payments);
  row("points given", ours.points, naive.points);
  row("lost", ours.lost, naive.lost, "orders that lack one of these");
  row("duplicated", ours.duplicated, naive.duplicated, "orders that have one of these twice");
  row("out of order", ours.out_of_order, naive.out_of_order, "per customer");
  table.row({"books balanced", yes_or_no(ours.books.empty()), yes_or_no(naive.books.empty()),
             naive.books});
  return table;
}

std::string verdict_of(const DemoResult& result) {
  const Audit& ours = result.once;
  if (!result.kept())
    return fmt::format(
        "the promise was broken: {} lost, {} duplicated, {} out of order, {} parked; books: {}",
        ours.lost, ours.duplicated, ours.out_of_order, ours.parked,
        ours.books.empty() ? "balanced" : ours.books);
  return fmt::format(
      "Once: {} orders, {} effects; nothing lost, nothing doubled. The naive recipe lost {} and "
      "doubled {}.",
      grouped(ours.sent), grouped(ours.orders), result.naive.lost, result.naive.duplicated);
}

}  // namespace once::cli
