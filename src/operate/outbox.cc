// SPDX-License-Identifier: Apache-2.0
#include "operate/outbox.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "model/route.h"
#include "operate/claims.h"
#include "operate/failure.h"
#include "operate/message_json.h"

namespace once::operate {
namespace {

// Counting reads whole messages: beyond this it is "more".
constexpr std::size_t pending_count_max = 10'000;

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

tl::unexpected<Error> unknown_destination(Books& books, const std::string& name,
                                          const std::vector<DestinationRecord>& known) {
  std::vector<std::string> names;
  for (const DestinationRecord& other : known) names.push_back(other.name);
  return fail_not_known(fmt::format("the outbox of {} has no destination \"{}\"; it has: {}",
                                    books.store().traits().name, name, fmt::join(names, ", ")));
}

// A relay that cannot send to its destination gives its role back with what it has found.
std::string reported_in(const RoleHolder& holder, std::string_view prefix) {
  if (!holder.process.empty() || !holder.reason.starts_with(prefix)) return {};
  return holder.reason.substr(prefix.size());
}

struct Trouble {
  std::string text;
  bool has_diverged = false;
};
Trouble trouble_in(const RoleHolder& holder, std::int64_t restarts) {
  std::string diverged = reported_in(holder, diverged_role(restarts));
  if (!diverged.empty()) return {std::move(diverged), true};
  return {reported_in(holder, blocked_role), false};
}

Result<DestinationRecord> find_destination(Books& books, const std::string& name) {
  const std::vector<DestinationRecord> known = ONCE_TRY(destinations_in(books));
  const auto found = std::find_if(known.begin(), known.end(),
                                  [&](const DestinationRecord& one) { return one.name == name; });
  if (found == known.end()) return unknown_destination(books, name, known);
  return *found;
}

bool is_chosen(const EmitSelection& selection, const ParkedRecord& row) {
  const auto& asked = selection.numbers;
  return selection.all || std::find(asked.begin(), asked.end(), row.number) != asked.end() ||
         (!selection.destination.empty() && row.partition == selection.destination);
}

}  // namespace

Result<std::vector<DestinationRecord>> destinations_in(Books& books) {
  std::map<std::string, DestinationRecord> found;
  Outbox* outbox = ONCE_TRY(books.outbox());
  const ScopeRecord relay = ONCE_TRY(books.records().describe(relay_scope));
  for (const PartitionRecord& known : relay.partitions)
    found[known.partition].restarts = known.position.offset + 1;
  for (const std::string& name : ONCE_TRY(outbox->destinations())) {
    const std::size_t count = ONCE_TRY(outbox->pending(name, pending_count_max + 1)).size();
    found[name].pending = std::min(count, pending_count_max);
    found[name].more_pending = count > pending_count_max;
  }
  for (const ParkedRecord& row : ONCE_TRY(parked_rows(books))) ++found[row.partition].parked;
  std::vector<DestinationRecord> all;
  for (auto& [name, destination] : found) {
    RoleHolder holder = ONCE_TRY(role_holder(*ONCE_TRY(books.claims()), relay_scope, name));
    destination.is_sent_to = !holder.process.empty() && holder.lease_until_ms > relay.now_ms;
    Trouble trouble = trouble_in(holder, destination.restarts);
    destination.trouble = std::move(trouble.text);
    destination.has_diverged = trouble.has_diverged;
    destination.sender = std::move(holder.process);
    destination.name = name;
    all.push_back(std::move(destination));
  }
  return all;
}

Result<std::string> trouble_at(Store& store, const std::string& name) {
  if (store.claims() == nullptr || store.records() == nullptr) return std::string();
  const RoleHolder holder = ONCE_TRY(role_holder(*store.claims(), relay_scope, name));
  const ScopeRecord relay = ONCE_TRY(store.records()->describe(relay_scope));
  std::int64_t restarts = 0;
  for (const PartitionRecord& known : relay.partitions)
    if (known.partition == name) restarts = known.position.offset + 1;
  return trouble_in(holder, restarts).text;
}

int EmitSelection::ways() const {
  return static_cast<int>(!numbers.empty()) + static_cast<int>(!destination.empty()) +
         static_cast<int>(all);
}

Result<std::vector<ParkedRecord>> parked_emits(Books& books, const EmitSelection& selection) {
  std::vector<ParkedRecord> rows = ONCE_TRY(parked_rows(books));
  std::erase_if(rows, [&](const ParkedRecord& row) { return !is_chosen(selection, row); });
  for (const std::int64_t number : selection.numbers)
    if (std::none_of(rows.begin(), rows.end(),
                     [&](const ParkedRecord& row) { return row.number == number; }))
      return fail_not_known(fmt::format(
          "no message {} is parked in the outbox; `once outbox show` lists them", number));
  return rows;
}

Result<std::vector<ParkedRecord>> emits_to_change(Books& books, const EmitSelection& selection) {
  auto rows = ONCE_TRY(parked_emits(books, selection));
  if (!rows.empty()) return rows;
  return fail_not_known(
      fmt::format("nothing selected: no message is parked in the outbox{}; nothing was changed",
                  selection.all ? "" : fmt::format(" for \"{}\"", selection.destination)));
}

Result<std::vector<PendingEmit>> pending_emits(Books& books, const std::string& name,
                                               std::size_t count_max) {
  Outbox* outbox = ONCE_TRY(books.outbox());
  if (!name.empty()) ONCE_TRY(find_destination(books, name));
  std::vector<PendingEmit> found;
  for (const std::string& destination : ONCE_TRY(outbox->destinations())) {
    if (!name.empty() && destination != name) continue;
    for (OutboxRow& row : ONCE_TRY(outbox->pending(destination, count_max)))
      found.push_back({destination, std::move(row)});
  }
  return found;
}

std::vector<std::int64_t> numbers_of(const std::vector<ParkedRecord>& rows) {
  std::vector<std::int64_t> numbers;
  for (const ParkedRecord& row : rows) numbers.push_back(row.number);
  return numbers;
}

Status drop_emits(Books& books, const std::vector<ParkedRecord>& rows, const std::string& reason) {
  Repairs* repairs = ONCE_TRY(books.repairs());
  if (rows.empty()) return {};
  return repairs->drop(outbox_scope, numbers_of(rows), reason);
}

Status retry_emits(Books& books, const std::vector<ParkedRecord>& rows, const std::string& reason) {
  Repairs* repairs = ONCE_TRY(books.repairs());
  std::map<std::string, std::vector<std::int64_t>> by_destination;
  for (const ParkedRecord& row : rows) by_destination[row.partition].push_back(row.number);
  for (const auto& [destination, numbers] : by_destination)
    ONCE_TRY(repairs->replay(outbox_scope, numbers, destination, reason));
  return {};
}

Result<DestinationRecord> drop_pending(Books& books, const std::string& name,
                                       const std::string& reason, bool only_look) {
  Repairs* repairs = ONCE_TRY(books.repairs());
  DestinationRecord found = ONCE_TRY(find_destination(books, name));
  if (found.pending == 0)
    return fail_not_known(fmt::format(
        "nothing selected: no message is pending for \"{}\"; nothing was changed", name));
  if (!only_look) ONCE_TRY(repairs->correct(relay_scope, DropPending{name}, reason));
  return found;
}

Result<DestinationRecord> restart_destination(Books& books, const std::string& name,
                                              const std::string& reason, bool force) {
  Repairs* repairs = ONCE_TRY(books.repairs());
  DestinationRecord found = ONCE_TRY(find_destination(books, name));
  if (found.is_sent_to && !force)
    return fail(
        Remedy::stop, "busy",
        fmt::format("{} sends to \"{}\", and a relay whose destination has diverged does not: what "
                    "is on its way would be sent twice. Stop that process first, or use --force",
                    found.sender, name));
  if (!found.has_diverged && !force)
    return fail(
        Remedy::stop, "healthy",
        fmt::format("no relay has found that \"{}\" has diverged: a restart repairs nothing, and "
                    "what was sent without an answer would be sent twice. Run the pipeline again "
                    "and see what it reports, or use --force",
                    name));
  ONCE_TRY(repairs->correct(relay_scope, RestartDestination{name}, reason));
  ++found.restarts;
  return found;
}

Json json_of(const DestinationRecord& record) {
  return {{"destination", record.name},
          {"pending", record.pending},
          {"more_pending", record.more_pending},
          {"parked", record.parked},
          {"restarts", record.restarts},
          {"sender", record.sender},
          {"trouble", record.trouble}};
}

Json json_of(const PendingEmit& emit) {
  Json json = {{"number", emit.row.number},
               {"destination", emit.destination},
               {"partition", nullptr},
               {"sequence", nullptr},
               {"message", json_of(emit.row.message)}};
  if (emit.row.route) {
    json["partition"] = emit.row.route->partition;
    json["sequence"] = emit.row.route->sequence;
  }
  return json;
}

}  // namespace once::operate
