// SPDX-License-Identifier: Apache-2.0
#include "operate/park.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <once/open.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/local_path.h"
#include "base/secrets.h"
#include "base/url.h"
#include "model/hint.h"
#include "operate/failure.h"
#include "operate/message_json.h"

namespace once::operate {
namespace {

tl::unexpected<Error> not_parked(std::string what) {
  return fail_not_known(std::move(what) + "; nothing was changed");
}

Result<std::vector<ParkedSummary>> select_numbers(std::vector<std::int64_t> numbers,
                                                  const std::vector<ParkedSummary>& parked) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::vector<ParkedSummary> chosen;
  for (const std::int64_t number : numbers) {
    const auto at = std::lower_bound(
        parked.begin(), parked.end(), number,
        [](const ParkedSummary& message, std::int64_t wanted) { return message.number < wanted; });
    if (at == parked.end() || at->number != number)
      return not_parked(fmt::format("message {} is not parked", number));
    chosen.push_back(*at);
  }
  return chosen;
}

// In the order of their numbers, so that they leave in the order in which they came.
Result<std::vector<ParkedSummary>> select(const ParkSelection& selection,
                                          const std::vector<ParkedSummary>& parked) {
  if (selection.all && parked.empty()) return not_parked("nothing selected: no message is parked");
  if (selection.all) return parked;
  if (!selection.numbers.empty()) return select_numbers(selection.numbers, parked);
  std::vector<ParkedSummary> chosen;
  if (selection.group) {
    for (const FailureGroup& group : failure_groups(parked))
      if (group.number == *selection.group)
        for (const std::size_t member : group.members) chosen.push_back(parked[member]);
    if (chosen.empty())
      return not_parked(
          fmt::format("there is no group {}; `once park ls` lists them", *selection.group));
    return chosen;
  }
  for (const ParkedSummary& message : parked)
    if (message.reason.find(selection.failure) != std::string::npos) chosen.push_back(message);
  if (chosen.empty())
    return not_parked(
        fmt::format("no message was parked for a reason with \"{}\" in it", selection.failure));
  return chosen;
}

// An effect outside the store is guarded by its claim, which a replay leaves as it is.
Result<std::string> claim_in_the_way(Books& books, const std::string& scope,
                                     const std::string& id) {
  if (books.store().claims() == nullptr) return std::string();
  const auto found = ONCE_TRY(books.store().claims()->claims(scope, std::nullopt, id, 1));
  const bool there = !found.empty() && found[0].id == id;
  if (!there || found[0].state == ClaimState::retryable) return std::string();
  return fmt::format("its claim is {}: settle it first, see {}", name_of(found[0].state),
                     hint({"claims", "show", id, "--scope", scope}));
}

// Why a message would not count as new when it comes back; empty when it would.
Result<std::string> obstacle(Books& books, const std::string& scope, std::int64_t horizon_ms,
                             const ParkedSummary& message) {
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

// What goes to another topic than the one it came from may be meant, or a slip.
std::string detour_of(const std::vector<ParkedSummary>& messages, const Url& to) {
  const std::string_view goes_to = partition_number(to.path);  // its last part
  std::set<std::string> topics;
  std::size_t count = 0;
  for (const ParkedSummary& message : messages) {
    if (message.topic.empty() || message.topic == goes_to) continue;
    topics.insert(message.topic);
    ++count;
  }
  if (count == 0) return {};
  return fmt::format(
      "{} came from topic {} and {} to topic {}: a pipeline that reads only topic {} does not get "
      "{} back",
      count == 1 ? "1 message" : fmt::format("{} messages", count), fmt::join(topics, ", "),
      count == 1 ? "goes" : "go", goes_to, fmt::join(topics, ", "), count == 1 ? "it" : "them");
}

Status check_accepted(const RelayState& state) {
  if (state.parked == 0) return {};
  return fail(Remedy::park, "refused",
              fmt::format("the destination can never take {} of the messages; they are parked "
                          "again: `once outbox show` lists them",
                          state.parked));
}

Result<ParkChange> change_of(ParkChange::Action action, Books& books,
                             const ParkSelection& selection) {
  ParkChange change;
  change.action = action;
  change.scope = ONCE_TRY(books.scope_to_change());
  change.messages = ONCE_TRY(select(selection, ONCE_TRY(parked_in(books, change.scope))));
  return change;
}

}  // namespace

Result<std::vector<ParkedSummary>> parked_in(Books& books, const std::string& scope) {
  constexpr std::size_t page_count = 200;  // whole messages, of which we keep little
  std::vector<ParkedSummary> parked;
  while (true) {
    const std::int64_t after = parked.empty() ? 0 : parked.back().number;
    const auto page = ONCE_TRY(books.records().parked(scope, after, page_count));
    for (const ParkedRecord& record : page)
      parked.push_back({record.number, record.parked_ms, record.reason, record.message.id,
                        record.message.timestamp_ms,
                        std::string(partition_topic(record.partition))});
    if (page.size() < page_count) return parked;
  }
}

Result<ParkedMessage> find_parked(Books& books, std::int64_t number) {
  for (const std::string& scope : books.scopes()) {
    auto found = ONCE_TRY(books.records().parked(scope, number - 1, 1));
    if (!found.empty() && found[0].number == number)
      return ParkedMessage{scope, std::move(found[0])};
  }
  return fail_not_known(fmt::format("{} is not known: {} has no parked message of that number",
                                    number, books.store().traits().name));
}

int ParkSelection::ways() const {
  return static_cast<int>(!numbers.empty()) + static_cast<int>(group.has_value()) +
         static_cast<int>(!failure.empty()) + static_cast<int>(all);
}

std::vector<std::int64_t> ParkChange::numbers() const {
  std::vector<std::int64_t> found;
  for (const ParkedSummary& message : messages) found.push_back(message.number);
  return found;
}

std::size_t ParkChange::hindered() const {
  return static_cast<std::size_t>(std::count_if(obstacles.begin(), obstacles.end(),
                                                [](const auto& text) { return !text.empty(); }));
}

const char* name_of(ParkChange::Action action) {
  return action == ParkChange::Action::replay ? "replay" : "drop";
}

Result<ParkChange> plan_replay(Books& books, const ParkSelection& selection,
                               const std::string& to) {
  const Url url = ONCE_TRY(parse_url(to));
  if (holds_secret(url))
    return fail_usage(
        "--to has a password, and the store keeps the URL until the messages are sent. For Kafka, "
        "put user and password into a file that the URL names (properties=FILE). For other "
        "brokers, "
        "send them from a dead-letter topic with once consume and once produce, or replay them "
        "into a file: topic and copy that with once bridge, which keeps no password");
  ParkChange change = ONCE_TRY(change_of(ParkChange::Action::replay, books, selection));
  change.to = absolute_url(to);  // what stays in the outbox is sent from any directory
  change.detour = detour_of(change.messages, url);
  const std::int64_t horizon = ONCE_TRY(books.records().horizon_ms(change.scope));
  for (const ParkedSummary& message : change.messages)
    change.obstacles.push_back(ONCE_TRY(obstacle(books, change.scope, horizon, message)));
  return change;
}

Result<ParkChange> plan_drop(Books& books, const ParkSelection& selection) {
  return change_of(ParkChange::Action::drop, books, selection);
}

Result<std::size_t> replay_parked(Books& books, const ParkChange& change, const std::string& reason,
                                  const OnSent& on_sent) {
  Repairs* repairs = ONCE_TRY(books.repairs());
  (void)ONCE_TRY(books.outbox());
  // A place that cannot be opened is noticed before anything is changed.
  auto sink = ONCE_TRY(open_sink(change.to));
  const std::string destination = ONCE_TRY(replay_destination(change.to));
  ONCE_TRY(repairs->replay(change.scope, change.numbers(), destination, reason));
  const RelayState state = ONCE_TRY(send_replayed(books.store(), *sink, destination, on_sent));
  ONCE_TRY(check_accepted(state));
  // An earlier replay to the same place may have been interrupted: its messages went with these.
  if (state.sent >= change.messages.size()) return change.messages.size();
  return fail(Remedy::recheck, "relay",
              fmt::format("{} of {} messages were sent from here; another relay of this store "
                          "took the others: look where it sends \"{}\"",
                          state.sent, change.messages.size(), destination));
}

Status drop_parked(Books& books, const ParkChange& change, const std::string& reason) {
  Repairs* repairs = ONCE_TRY(books.repairs());
  return repairs->drop(change.scope, change.numbers(), reason);
}

Result<std::vector<ResumedReplay>> resume_replays(Books& books, const OnSent& on_sent) {
  std::vector<ResumedReplay> resumed;
  Outbox* outbox = ONCE_TRY(books.outbox());
  for (const std::string& destination : ONCE_TRY(outbox->destinations())) {
    const auto url = replay_url_of(destination);
    if (!url) continue;
    auto sink = ONCE_TRY(open_sink(*url));
    const RelayState state = ONCE_TRY(send_replayed(books.store(), *sink, destination, on_sent));
    ONCE_TRY(check_accepted(state));
    resumed.push_back({*url, state.sent});
  }
  return resumed;
}

Json json_of(const ParkedSummary& message) {
  Json json = {{"number", message.number}};
  put_bytes(json, "id", message.id);
  json["parked_ms"] = message.parked_ms;
  json["timestamp_ms"] = message.timestamp_ms;
  json["reason"] = message.reason;
  return json;
}

Json json_of(const std::string& scope, const FailureGroup& group,
             const std::vector<ParkedSummary>& parked) {
  const ParkedSummary& first = parked[group.members.front()];
  return {{"scope", scope},
          {"group", group.number},
          {"messages", group.members.size()},
          {"first_ms", first.parked_ms},
          {"last_ms", parked[group.members.back()].parked_ms},
          {"reason", group.reason},
          {"example", json_of(first)}};
}

Json planned_json(const ParkChange& change) {
  Json json = {{"dry_run", true}, {"action", name_of(change.action)}, {"scope", change.scope}};
  if (!change.to.empty()) {
    json["to"] = shown_url(change.to);
    json["detour"] = change.detour;
  }
  json["count"] = change.messages.size();
  json["messages"] = Json::array();
  for (std::size_t i = 0; i < change.messages.size(); ++i) {
    Json entry = json_of(change.messages[i]);
    entry["note"] = change.obstacles.empty() ? "" : change.obstacles[i];
    json["messages"].push_back(std::move(entry));
  }
  return json;
}

Json done_json(const ParkChange& change, std::optional<std::size_t> sent) {
  Json json = {{"action", name_of(change.action)},
               {"scope", change.scope},
               {"count", change.messages.size()}};
  if (sent) json["sent"] = *sent;
  if (!change.to.empty()) {
    json["to"] = shown_url(change.to);
    json["detour"] = change.detour;
  }
  json["numbers"] = change.numbers();
  return json;
}

}  // namespace once::operate
