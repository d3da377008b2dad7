// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <once/outbox.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "base/assert.h"
#include "base/failpoint.h"
#include "base/mutant.h"
#include "model/reason.h"
#include "model/route.h"
#include "model/sha256.h"
#include "runtime/event_log.h"
#include "runtime/role.h"

namespace once {
namespace {

constexpr std::size_t producer_name_bytes_max = 255;  // what every destination takes

// A destination forgets a producer that is quiet for a week: Kafka its state
// (offsets.retention.minutes), a log one of which no message is left. Then it would look as if it
// had been created again. So we enter again once a day; the first time soon, for processes that are
// restarted more often.
constexpr std::int64_t ns_per_minute = 60'000'000'000;
constexpr std::int64_t renew_first_ns = 60 * ns_per_minute;
constexpr std::int64_t renew_every_ns = 24 * 60 * ns_per_minute;
constexpr std::int64_t renew_again_ns = 10 * ns_per_minute;  // after an error

using Rows = std::vector<OutboxRow>;
// Of one partition, by sequence.
using Routed = std::map<std::uint32_t, std::vector<OutboxRow*>>;

Routed routed_by_partition(Rows& rows) {
  Routed routed;
  for (OutboxRow& row : rows)
    if (row.route) routed[row.route->partition].push_back(&row);
  const auto earlier = [](const OutboxRow* a, const OutboxRow* b) {
    if (mutant(Mutant::relay_sends_by_number)) return a->number < b->number;
    return a->route->sequence < b->route->sequence;
  };
  for (auto& [partition, of_partition] : routed)
    std::sort(of_partition.begin(), of_partition.end(), earlier);
  return routed;
}

std::size_t routed_count(const Rows& rows) {
  return static_cast<std::size_t>(std::count_if(
      rows.begin(), rows.end(), [](const OutboxRow& row) { return row.route.has_value(); }));
}

bool has_unrouted(const Rows& rows) { return routed_count(rows) < rows.size(); }

// The relay has to find out anew what it is to this destination.
bool was_displaced(const Error& error) { return error.tag == "fenced" || error.tag == "unknown"; }

// Where the rows of one destination go, and as whom. All but the role is only known while we have
// the role.
struct Target {
  explicit Target(std::unique_ptr<Role> its_role) : role(std::move(its_role)) {}

  void close() {
    stamps.clear();
    sink.reset();
  }

  SinkProducers* producers() const { return sink->producers(); }
  bool has(const OutboxRow& row) const {
    const auto found = not_removed.find(row.number);
    return found != not_removed.end() && found->second == digest_of(row.message);
  }
  // Rows that are not pending were removed by a call whose answer was lost.
  void keep_not_removed(const Rows& pending) {
    std::map<std::int64_t, std::uint64_t> kept;
    for (const OutboxRow& row : pending)
      if (has(row)) kept.emplace(row.number, not_removed.at(row.number));
    not_removed = std::move(kept);
  }

  std::unique_ptr<Role> role;
  std::uint64_t tenure = 0;  // of the role, for which the rest is known
  std::shared_ptr<Sink> sink;
  std::uint32_t partitions = 0;
  Position taken;  // when we began to send: our fence, and how often the destination was restarted
  std::string producer;
  std::string next_producer;  // the name after another restart
  bool needs_person = false;  // it cannot be sent to: the role is free until it is tried again
  // By partition: what the destination takes next. Without producers it cannot be asked, and this
  // says nothing.
  std::map<std::uint32_t, Stamp> stamps;
  // Without producers: the rows, by number and digest, that are at the destination and could not be
  // removed from the outbox yet. Sent again, they would be there twice.
  std::map<std::int64_t, std::uint64_t> not_removed;
  std::optional<std::string> told_sender;  // who sends, as the observer knows it; empty: we
};

class OutboxRelay final : public Relay {
 public:
  OutboxRelay(Store& store, SinkFor sink_for, RelayOptions options, Clock& clock)
      : store_(store),
        outbox_(*store.outbox()),
        sink_for_(std::move(sink_for)),
        options_(std::move(options)),
        clock_(clock),
        events_(options_.observer, clock) {}
  ~OutboxRelay() override { events_.finish(); }

  Result<std::size_t> step() override {
    state_.sender.clear();
    events_.tick();
    std::size_t left = 0;
    std::optional<Error> trouble;
    const auto note = [&](const Error& error) {
      if (!trouble) trouble = error;
    };
    const auto waiting = asked_store(outbox_.destinations());
    if (!waiting) return fail(waiting.error());
    for (const std::string& destination : *waiting) {
      if (!is_mine(destination)) continue;
      const auto handled = serve(destination);
      if (handled)
        left += *handled;
      else
        note(handled.error());
    }
    for (auto& [destination, to] : targets_) {
      if (to.needs_person) continue;
      if (const auto held = keep(to); !held) note(held.error());
    }
    renew_quiet();
    if (trouble) return fail(std::move(*trouble));
    return left;
  }

  RelayState state() const override { return state_; }

 private:
  bool is_mine(const std::string& destination) const {
    const auto& chosen = options_.destinations;
    if (chosen.empty()) return !destination.starts_with("once.");
    return std::find(chosen.begin(), chosen.end(), destination) != chosen.end();
  }

  Target& target(const std::string& destination) {
    const auto found = targets_.find(destination);
    if (found != targets_.end()) return found->second;
    auto role = std::make_unique<Role>(*store_.claims(),
                                       RoleOptions{.scope = std::string(relay_scope),
                                                   .id = destination,
                                                   .owner = options_.owner,
                                                   .lease_ms = options_.lease_ms},
                                       clock_);
    return targets_.emplace(destination, Target(std::move(role))).first->second;
  }

  // Whether the destination is ours. One that is not may be another's to write.
  static Result<bool> keep(Target& to) {
    auto held = to.role->hold();
    if (held && (!*held || to.tenure != to.role->tenure())) to.close();
    to.tenure = to.role->tenure();
    return held;
  }

  // What is wrong there is told when there is something to send.
  void renew_quiet() {
    std::set<std::string> names(options_.destinations.begin(), options_.destinations.end());
    for (const auto& [name, to] : targets_) names.insert(name);
    const std::int64_t now_ns = clock_.ticks_ns();
    for (const std::string& name : names) {
      std::int64_t& at_ns = renew_at_ns_.try_emplace(name, now_ns + renew_first_ns).first->second;
      if (now_ns < at_ns) continue;
      at_ns = now_ns + (renew(name) ? renew_every_ns : renew_again_ns);
    }
  }

  // Where another relay sends, it is that one's to do.
  Status renew(const std::string& destination) {
    Target& to = target(destination);
    if (to.needs_person || !ONCE_TRY(keep(to))) return {};
    const bool was_open = to.sink != nullptr;
    const Status renewed = renew(destination, to);
    // What is wrong, or is not ours any more, is found as after a start.
    if (!renewed || !was_open) to.close();
    return renewed;
  }

  Status renew(const std::string& destination, Target& to) {
    ONCE_TRY(open(destination, to));
    SinkProducers* const producers = to.producers();
    if (producers == nullptr) return {};
    for (std::uint32_t partition = 0; partition < to.partitions; ++partition) {
      const auto known = to.stamps.find(partition);
      if (known == to.stamps.end() && ONCE_TRY(producers->sent_by(partition, to.producer)) == 0)
        continue;
      const Stamp entered = ONCE_TRY(producers->enter(partition, to.producer));
      if (known == to.stamps.end()) continue;
      if (entered.sequence == known->second.sequence)
        known->second = entered;
      else
        to.stamps.erase(known);
    }
    return {};
  }

  Result<std::size_t> serve(const std::string& destination) {
    Target& to = target(destination);
    to.needs_person = false;
    const bool knew_it = to.sink != nullptr;
    if (!ONCE_TRY(asked_store(keep(to)))) return stand_by(destination, to, to.role->holder());
    tell_sender(destination, to, {});
    at_destination_ = false;
    auto handled = send(destination, to);
    tell_trouble(destination, to, handled);
    if (handled || handled.error().remedy != Remedy::stop) return handled;
    const bool is_replaced = handled.error().tag == "gone";
    const bool is_outdated = handled.error().tag == "diverged" || is_replaced;
    if (is_outdated && knew_it) {
      // What we knew may be from before a restart, which other relays have taken up, or the
      // destination was replaced: what is there now is compared as after a start.
      to.close();
      to.role->doubt();
      return serve(destination);
    }
    // Whatever a person or another relay does about it, we begin anew.
    to.close();
    if (is_replaced) handled = fail(replaced_destination_error(destination, handled.error()));
    if (was_displaced(handled.error())) {
      to.role->doubt();
      return stand_by(destination, to, "another relay");
    }
    // So that `once status` shows it, and `once outbox restart` can tell what it repairs.
    to.needs_person = true;
    const bool has_diverged = handled.error().tag == "diverged";
    to.role->release(
        (has_diverged ? diverged_role(to.taken.offset + 1) : std::string(blocked_role)) +
        redacted(handled.error().text));
    return handled;
  }

  std::string redacted(const std::string& reason) const {
    return options_.redact ? options_.redact(reason) : reason;
  }

  std::size_t stand_by(const std::string& destination, Target& to, const std::string& sender) {
    state_.sender = sender;
    tell_sender(destination, to, sender);
    return 0;
  }

  void tell_sender(const std::string& destination, Target& to, const std::string& sender) {
    if (to.told_sender == sender) return;
    to.told_sender = sender;
    const bool ours = sender.empty();
    events_.tell({.kind = ours ? EventKind::took_over : EventKind::standing_by,
                  .text = ours ? fmt::format("{}: this process sends", destination)
                               : fmt::format("{}: {} sends; standing by", destination, sender),
                  .subject = destination});
  }

  // What is tried again is told as an outage of the side that failed.
  void tell_trouble(const std::string& destination, const Target& to,
                    const Result<std::size_t>& handled) {
    if (handled) {
      events_.back(a_destination, destination, &to);
      events_.back(the_store, {}, this);
      return;
    }
    if (handled.error().remedy == Remedy::stop) return;
    if (at_destination_)
      events_.away(a_destination, destination, &to, handled.error());
    else
      events_.away(the_store, {}, this, handled.error());
  }

  template <class T>
  Result<T> asked_store(Result<T> answer) {
    if (answer)
      events_.back(the_store, {}, this);
    else if (answer.error().remedy != Remedy::stop)
      events_.away(the_store, {}, this, answer.error());
    return answer;
  }
  template <class T>
  Result<T> asked_sink(Result<T> answer) {
    at_destination_ = at_destination_ || !answer;
    return answer;
  }

  // A row is given its route first, then sent, then removed. Dying in between, the next relay
  // finds the route in the row and sends the same message with the same stamp.
  Result<std::size_t> send(const std::string& destination, Target& to) {
    ONCE_TRY(open(destination, to));
    Rows rows = ONCE_TRY(pending(destination));
    to.keep_not_removed(rows);
    ONCE_TRY(enter(destination, to, rows));
    Routed routed = routed_by_partition(rows);
    Status agreed = check_routes(destination, to, routed);
    if (!agreed && agreed.error().tag != "diverged") return fail(agreed.error());
    if (agreed && has_unrouted(rows)) {
      agreed = assign_routes(destination, to, rows);
      if (!agreed && agreed.error().tag != "diverged") return fail(agreed.error());
      if (agreed) rows = ONCE_TRY(pending(destination));
      routed = routed_by_partition(rows);
    }
    // Where they agree it is sent in any case, so that a person who restarts the destination
    // doubles nothing there.
    std::size_t left = 0;
    for (const auto& [partition, of_partition] : routed)
      left += ONCE_TRY(send(destination, to, partition, of_partition));
    if (!agreed) return fail(agreed.error());
    return left;
  }

  Status open(const std::string& destination, Target& to) {
    if (to.sink) return check_current(destination, to);
    auto sink = asked_sink(sink_for_(destination));
    if (!sink) {
      Error error = std::move(sink).error();
      if (error.tag == "busy") error.remedy = Remedy::retry;  // its writer will end
      return fail(std::move(error));
    }
    to.partitions = ONCE_TRY(asked_sink((*sink)->partitions()));
    const Position taken = ONCE_TRY(take(destination, to.taken));
    if (std::exchange(to.taken, taken) != taken) to.not_removed.clear();  // others sent since
    to.producer = producer_name(to.taken.offset + 1);
    to.next_producer = producer_name(to.taken.offset + 2);
    to.sink = std::move(*sink);
    return {};
  }

  // A destination that needs a person is opened again and again. While nobody else has taken it,
  // it stays ours: every take is a line in the operation log.
  Result<Position> take(const std::string& destination, const Position& last) {
    const Position now = ONCE_TRY(store_.position(relay_scope, destination));
    if (last.fence != 0 && now == last) return last;
    return store_.take(relay_scope, destination);
  }

  // Rows that another relay has given their routes, after a person has restarted the destination,
  // must not be sent in the name that we had before.
  Status check_current(const std::string& destination, const Target& to) {
    const Position now = ONCE_TRY(store_.position(relay_scope, destination));
    if (now == to.taken) return {};
    return fail(Remedy::stop, "fenced",
                fmt::format("outbox \"{}\": another relay sends there", destination));
  }

  // Of this store, and of nobody else; another one when the sequences begin anew.
  std::string producer_name(std::int64_t restarts) const {
    std::string name = fmt::format("{}@{}", options_.name, store_.traits().identity);
    if (restarts > 0) name += fmt::format(".{}", restarts);
    if (name.size() <= producer_name_bytes_max) return name;
    Sha256 hash("relay");
    hash.field(name);
    return "relay/" + to_hex(hash.digest128());
  }

  // All rows that have a route, and up to a batch in all.
  Result<Rows> pending(const std::string& destination) {
    std::size_t count_max = options_.batch_count_max;
    while (true) {
      Rows rows = ONCE_TRY(outbox_.pending(destination, count_max));
      if (rows.size() < count_max || has_unrouted(rows)) return rows;
      count_max *= 2;  // an earlier relay had larger batches
    }
  }

  std::uint32_t partition_for(const Target& to, const OutboxRow& row) const {
    return row.route ? row.route->partition : partition_of(row.message, to.partitions);
  }

  // First the destination says what it has: no row gets a route to a partition before. One without
  // producers does not know; then the store alone counts.
  Status enter(const std::string& destination, Target& to, const Rows& rows) {
    for (const OutboxRow& row : rows) {
      const std::uint32_t partition = partition_for(to, row);
      if (to.stamps.contains(partition)) continue;
      if (to.producers() == nullptr) {
        to.stamps.emplace(partition, Stamp{});
        continue;
      }
      ONCE_TRY(check_restarts(destination, to, partition));
      to.stamps.emplace(partition,
                        ONCE_TRY(asked_sink(to.producers()->enter(partition, to.producer))));
      ONCE_POINT(relay_after_enter);
    }
    return {};
  }

  // After a rollback to before a restart the sequences of the earlier name may agree, although the
  // same messages were sent under the later one.
  Status check_restarts(const std::string& destination, Target& to, std::uint32_t partition) {
    const std::uint64_t sent =
        ONCE_TRY(asked_sink(to.producers()->sent_by(partition, to.next_producer)));
    if (sent == 0) return {};
    return fail(restart_unknown_error(destination, partition, sent));
  }

  // Takes out the partitions where store and destination do not agree.
  Status check_routes(const std::string& destination, const Target& to, Routed& routed) {
    Status agreed;
    if (to.producers() == nullptr) return agreed;
    for (auto at = routed.begin(); at != routed.end();) {
      Status same = check_route(destination, to, at->first, at->second);
      if (same) {
        ++at;
        continue;
      }
      if (same.error().tag != "diverged") return same;
      if (agreed) agreed = std::move(same);
      at = routed.erase(at);
    }
    return agreed;
  }

  Status check_route(const std::string& destination, const Target& to, std::uint32_t partition,
                     const std::vector<OutboxRow*>& rows) {
    if (mutant(Mutant::relay_ignores_enter)) return {};
    const RouteRange range{rows.front()->route->sequence, rows.back()->route->sequence + 1};
    const std::uint64_t sequence = to.stamps.at(partition).sequence;
    if (!agrees(range, sequence))
      return fail(diverged_error(destination, partition, range, sequence));
    if (sequence == range.first || mutant(Mutant::relay_ignores_content)) return {};
    // Some are there already. A clone of this store may have sent others under their sequences.
    const OutboxRow& last = *rows[sequence - range.first - 1];
    const auto there = ONCE_TRY(asked_sink(to.producers()->last_digest(partition, to.producer)));
    if (!there || *there == digest_of(last.message)) return {};
    return fail(another_sender_error(destination, partition, last.route->sequence));
  }

  Status assign_routes(const std::string& destination, Target& to, Rows& rows) {
    std::map<std::uint32_t, std::uint64_t> next;
    for (const auto& [partition, stamp] : to.stamps) next[partition] = stamp.sequence;
    for (const auto& [partition, routed] : routed_by_partition(rows))
      next[partition] = routed.back()->route->sequence + 1;
    std::vector<std::int64_t> numbers;
    std::vector<std::uint32_t> partitions;
    std::vector<std::uint64_t> sequences;
    for (const OutboxRow& row : rows) {
      if (row.route) continue;
      numbers.push_back(row.number);
      partitions.push_back(partition_for(to, row));
      sequences.push_back(next[partitions.back()]++);
    }
    ONCE_ASSERT(numbers.size() == sequences.size() && numbers.size() == partitions.size());
    if (to.producers() == nullptr || mutant(Mutant::relay_ignores_enter)) sequences.clear();
    const Status assigned =
        outbox_.assign(destination, to.taken.fence, numbers, partitions, sequences);
    if (assigned) {
      ONCE_POINT(relay_after_assign);
      return {};
    }
    // An earlier request, whose answer was lost, may have been granted only now.
    if (assigned.error().tag == "diverged" &&
        routed_count(ONCE_TRY(pending(destination))) != routed_count(rows))
      return fail(
          Remedy::retry, "moved",
          fmt::format("outbox \"{}\": its routes have changed; they are read again", destination));
    return assigned;
  }

  Result<std::size_t> send(const std::string& destination, Target& to, std::uint32_t partition,
                           const std::vector<OutboxRow*>& rows) {
    const Appended appended =
        ONCE_TRY(to.producers() != nullptr ? append(to, partition, rows)
                                           : append_unrecognised(to, partition, rows));
    ONCE_POINT(relay_after_append);
    if (!appended.numbers.empty()) {
      ONCE_TRY(outbox_.sent(destination, to.taken.fence, appended.numbers));
      for (const std::int64_t number : appended.numbers) to.not_removed.erase(number);
      ONCE_POINT(relay_after_sent);
      state_.sent += appended.numbers.size();
    }
    // The last first: rows behind a parked one lose their routes, and these were refused under
    // them.
    for (auto refused = appended.refused.rbegin(); refused != appended.refused.rend(); ++refused)
      ONCE_TRY(park(destination, to, refused->number, refused->why));
    return appended.numbers.size() + appended.refused.size();
  }

  Status park(const std::string& destination, const Target& to, std::int64_t number, Error why) {
    why.text = redacted(why.text);
    ONCE_TRY(outbox_.park(destination, to.taken.fence, number, why.text));
    ++state_.parked;
    events_.count({.severity = Severity::warning,
                   .kind = EventKind::message_parked,
                   .text = fmt::format(
                       "{} can never accept message {}, which is parked (`once outbox show`): {}",
                       destination, number, why.text),
                   .subject = destination,
                   .tag = why.tag},
                  destination + masked(why.text));
    return {};
  }

  // The numbers of the rows that the destination has, and of those that it will never have.
  struct Refused {
    std::int64_t number = 0;
    Error why;
  };
  struct Appended {
    std::vector<std::int64_t> numbers = {};
    std::vector<Refused> refused = {};
  };

  static std::vector<Message> messages_of(std::span<OutboxRow* const> rows) {
    std::vector<Message> messages;
    messages.reserve(rows.size());
    for (OutboxRow* row : rows) messages.push_back(std::move(row->message));
    return messages;
  }

  Result<Appended> append(Target& to, std::uint32_t partition,
                          const std::vector<OutboxRow*>& rows) {
    const std::vector<Message> messages = messages_of(rows);
    const Run run = ONCE_TRY(append(to, partition, rows.front()->route->sequence, messages));
    Appended appended;
    for (std::size_t i = 0; i < run.count; ++i) appended.numbers.push_back(rows[i]->number);
    if (run.refused) appended.refused.push_back({rows[run.count]->number, *run.refused});
    return appended;
  }

  // How many messages of a run the destination has, and why it will never have the one behind them.
  struct Run {
    std::size_t count = 0;
    std::optional<Error> refused = {};
  };

  // A run with a message that is refused is halved until that one is alone.
  Result<Run> append(Target& to, std::uint32_t partition, std::uint64_t sequence,
                     std::span<const Message> messages) {
    Stamp& known = to.stamps.at(partition);
    Stamp first = known;
    first.sequence = sequence;
    const auto receipt = to.sink->append(partition, first, messages);
    if (receipt) {
      ONCE_ASSERT(receipt->refused.empty());  // their sequences would be missing
      known.sequence = std::max<std::uint64_t>(known.sequence, sequence + messages.size());
      return Run{messages.size()};
    }
    if (receipt.error().remedy != Remedy::park) {
      to.stamps.erase(partition);  // what the destination has now must be asked for
      at_destination_ = true;
      return fail(receipt.error());
    }
    if (messages.size() == 1) return Run{0, receipt.error()};
    const std::size_t half = messages.size() / 2;
    Run run = ONCE_TRY(append(to, partition, sequence, messages.first(half)));
    if (run.refused) return run;
    run = ONCE_TRY(append(to, partition, sequence + half, messages.subspan(half)));
    run.count += half;
    return run;
  }

  // To a destination that takes whatever it gets. What is known to be there is not sent again;
  // after a crash, or an answer that was lost, a copy cannot be avoided.
  Result<Appended> append_unrecognised(Target& to, std::uint32_t partition,
                                       const std::vector<OutboxRow*>& rows) {
    Appended appended;
    std::vector<OutboxRow*> open;
    for (OutboxRow* row : rows) {
      if (to.has(*row))
        appended.numbers.push_back(row->number);
      else
        open.push_back(row);
    }
    const std::vector<Message> messages = messages_of(open);
    if (!open.empty())
      ONCE_TRY(asked_sink(append_unrecognised(to, partition, open, messages, appended)));
    return appended;
  }

  // What was appended is noted at once, so that no later error makes it be sent again.
  Status append_unrecognised(Target& to, std::uint32_t partition, std::span<OutboxRow* const> rows,
                             std::span<const Message> messages, Appended& appended) {
    const auto receipt = to.sink->append(partition, Stamp{}, messages);
    if (!receipt && receipt.error().remedy != Remedy::park) return fail(receipt.error());
    if (!receipt && rows.size() > 1) {
      const std::size_t half = rows.size() / 2;
      ONCE_TRY(
          append_unrecognised(to, partition, rows.first(half), messages.first(half), appended));
      return append_unrecognised(to, partition, rows.subspan(half), messages.subspan(half),
                                 appended);
    }
    if (!receipt) {
      appended.refused.push_back({rows.front()->number, receipt.error()});
      return {};
    }
    auto refused = receipt->refused.begin();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::int64_t number = rows[i]->number;
      if (refused != receipt->refused.end() && refused->message == i) {
        appended.refused.push_back({number, refused++->why});
        continue;
      }
      appended.numbers.push_back(number);
      to.not_removed[number] = digest_of(messages[i]);
    }
    ONCE_ASSERT(refused == receipt->refused.end());  // in the order of the messages, each once
    return {};
  }

  Store& store_;
  Outbox& outbox_;
  SinkFor sink_for_;
  const RelayOptions options_;
  Clock& clock_;
  EventLog events_;
  std::map<std::string, Target, std::less<>> targets_;
  std::map<std::string, std::int64_t> renew_at_ns_;  // by destination
  RelayState state_;
  bool at_destination_ = false;  // the last error is the destination's, not the store's
};

tl::unexpected<Error> refuse(std::string text) {
  return fail(Remedy::stop, "config", std::move(text));
}

}  // namespace

Result<std::unique_ptr<Relay>> Relay::make(Store& store, SinkFor sink_for, RelayOptions options,
                                           Clock& clock) {
  const std::string& name = store.traits().name;
  if (store.outbox() == nullptr)
    return refuse(fmt::format("the store {} has no outbox, so there is nothing to relay", name));
  if (store.claims() == nullptr)
    return refuse(fmt::format("the store {} has no claims, so relays cannot take turns", name));
  if (options.name.empty())
    return refuse("a relay needs a name: its identity as a producer, the same after every restart");
  if (options.batch_count_max == 0) return refuse("the relay's batch_count_max must be at least 1");
  if (options.lease_ms < 10)
    return refuse(
        fmt::format("the relay's lease_ms must be at least 10, not {}", options.lease_ms));
  return std::make_unique<OutboxRelay>(store, std::move(sink_for), std::move(options), clock);
}

}  // namespace once
