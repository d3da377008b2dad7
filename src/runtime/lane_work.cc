// SPDX-License-Identifier: Apache-2.0
// What a lane does inside a transaction; the order of these steps is the crash table's.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/assert.h"
#include "base/failpoint.h"
#include "base/mutant.h"
#include "model/hint.h"
#include "runtime/dead_letter.h"
#include "runtime/lane.h"
#include "runtime/spoil.h"

namespace once {
namespace {

// A handler's error that is about its message becomes what to do with the message.
std::optional<Outcome> outcome_of(const Error& error) {
  if (error.culprit || error.remedy != Remedy::park) return std::nullopt;
  return parked(error.text);
}

// Where messages differ that do so by this rule. Only one digest is kept, so of several parts
// nobody knows which.
std::string difference_by(const ContentRule& content) {
  switch (content.kind) {
    case ContentRule::Kind::none: break;
    case ContentRule::Kind::json: return "its body";
    case ContentRule::Kind::everything: return "its key, its body or one of its headers";
    case ContentRule::Kind::fields:
      return fmt::format("{}{}", content.fields.size() == 1 ? "" : "at least one of ",
                         fmt::join(content.fields, ", "));
  }
  return "nothing";
}

// Outcomes that only exist after a rollback.
bool is_never_kept(const Outcome& outcome) {
  return outcome.kind == Outcome::Kind::retry || outcome.kind == Outcome::Kind::parked ||
         outcome.kind == Outcome::Kind::later;
}

}  // namespace

Status Lane::transact(Content content) {
  if (content.work && parts_.claims != nullptr) ONCE_TRY(work_outside());
  auto transaction = ONCE_TRY(parts_.store.begin(parts_.options.scope));
  ONCE_POINT(lane_after_begin);
  if (content.advance) ONCE_TRY(advance_all(*transaction));
  ONCE_POINT(lane_after_advance);
  if (content.work) {
    const auto verdicts = ONCE_TRY(admit_all(*transaction));
    ONCE_TRY(check_keys_were_asked(verdicts));
    ONCE_POINT(lane_after_admit);
    ONCE_TRY(work_all(*transaction, verdicts));
    ONCE_TRY(check_proof(*transaction));
    check_all_recorded(verdicts);
    ONCE_TRY(cut_at_freed_id(verdicts));
    ONCE_POINT(lane_after_handler);
  }
  ONCE_POINT(lane_before_commit);
  ONCE_TRY(transaction->commit());
  ONCE_POINT(lane_after_commit);
  return {};
}

Status Lane::advance_all(Transaction& transaction) {
  for (std::size_t i = 0; i < selected_.size(); ++i) {
    Owned& partition = *selected_[i]->task->owned;
    const bool last_of_partition = selected_[i]->end_offset == partition.selected_end;
    if (!last_of_partition) continue;
    std::int64_t to = partition.selected_end;
    if (mutant(Mutant::ack_what_was_polled)) to = selected_[i]->task->batch.end_offset;
    Position from = partition.position;
    if (mutant(Mutant::zombie_not_fenced))
      from = ONCE_TRY(parts_.store.position(parts_.options.scope, partition.name));
    partition.offered = progress_after(*selected_[i]);
    ONCE_TRY(transaction.advance(partition.name, from, to, partition.offered));
  }
  return {};
}

// A verdict per selected message. Without an id rule, or without the promise that needs it, all
// are fresh.
Result<std::vector<Verdict>> Lane::admit_all(Transaction& transaction) {
  std::vector<Verdict> verdicts(selected_.size());
  if (parts_.claims != nullptr) {  // the claims have told
    for (std::size_t i = 0; i < selected_.size(); ++i)
      if (selected_[i]->outside) verdicts[i] = *selected_[i]->outside;
    return verdicts;
  }
  if (!parts_.options.id || parts_.options.semantics != Semantics::effectively_once)
    return verdicts;
  std::vector<Entry> entries;
  std::vector<std::size_t> indexes;
  entries.reserve(selected_.size());
  indexes.reserve(selected_.size());
  for (std::size_t i = 0; i < selected_.size(); ++i) {
    const Item& item = *selected_[i];
    if (item.id.empty() || !item.records_id) continue;  // it is going to be parked
    entries.push_back({.id = item.id,
                       .fingerprint = item.fingerprint,
                       .born_ms = item.born_ms,
                       .partition = item.delivery.partition,
                       .offset = item.delivery.offset,
                       .deferral = item.delivery.deferral,
                       .replays_parked = is_dead_letter_of(item.delivery, parts_.options.scope),
                       .order_key = asked_key(item)});
    indexes.push_back(i);
  }
  if (entries.empty()) return verdicts;
  if (mutant(Mutant::ledger_outside_transaction)) {
    auto apart = ONCE_TRY(parts_.store.begin(parts_.options.scope));
    auto answers = ONCE_TRY(apart->admit(entries));
    ONCE_TRY(apart->commit());
    for (std::size_t i = 0; i < indexes.size(); ++i) verdicts[indexes[i]] = std::move(answers[i]);
    return verdicts;
  }
  auto answers = ONCE_TRY(transaction.admit(entries));
  ONCE_ASSERT(answers.size() == entries.size());
  for (std::size_t i = 0; i < indexes.size(); ++i) verdicts[indexes[i]] = std::move(answers[i]);
  return verdicts;
}

Status Lane::work_all(Transaction& transaction, std::span<const Verdict> verdicts) {
  if (parts_.handler.batched()) return work_batched(transaction, verdicts);
  return work_single(transaction, verdicts);
}

// What is known about a message without asking the handler: nothing, or its outcome; asked for each
// message in order, before any handler is called for what comes behind it. A duplicate
// has been handled, so its outcome is "no effect", which nobody records.
std::optional<Outcome> Lane::outcome_without_handler(Item& item, const Verdict& verdict) {
  switch (verdict.kind) {
    case Verdict::Kind::duplicate:
      if (!item.deferred()) ++tally_.duplicates;  // else another owner was faster
      return no_effect();
    case Verdict::Kind::mismatch:
      ++tally_.mismatched;
      item.park_tag = "mismatch";
      return parked(mismatch_reason(item, verdict));
    case Verdict::Kind::too_old:
      ++tally_.too_old;
      item.park_tag = "too_old";
      return parked(fmt::format(
          "id \"{}\" was born at {} ms, before the ledger's horizon: whether it was handled is "
          "forgotten. If the birth is wrong (seconds instead of milliseconds, a wrong clock), send "
          "it again with the right one; {} tells the horizon, and `once horizon set --help` how to "
          "move it",
          item.id, item.born_ms, hint({"horizon", "show", "--scope", parts_.options.scope})));
    case Verdict::Kind::fresh: break;
  }
  if (item.outside) return verdict.stored;
  if (item.passed) ++tally_.passed;
  if (item.ahead) ++tally_.ahead;
  const auto outcome = item.decided ? item.decided : wait_behind(item, verdict);
  if (outcome && outcome->kind == Outcome::Kind::later)
    put_off_[std::string(item.delivery.key)] = outcome->after_ms;
  else if (item.deferred())
    due_done_.insert(item.delivery.deferral.number);
  return outcome;
}

bool Lane::is_ordered_by_key(const Delivery& delivery) const {
  return parts_.options.order == Order::key && delivery.has_key();
}

// The key by which the store is asked whether others wait before this message; none: not asked.
std::string_view Lane::asked_key(const Item& item) const {
  const bool may_wait = item.deferred() || parts_.may_wait == nullptr || *parts_.may_wait;
  return may_wait && is_ordered_by_key(item.delivery) ? item.delivery.key : std::string_view();
}

// Another owner of the partition has put off a message that we were delivered, too, and nobody had
// seen that messages wait: those of its key in this attempt were admitted without asking.
Status Lane::check_keys_were_asked(std::span<const Verdict> verdicts) {
  if (parts_.options.order != Order::key || parts_.may_wait == nullptr || *parts_.may_wait)
    return {};
  for (const Verdict& verdict : verdicts)
    if (verdict.kind == Verdict::Kind::duplicate && verdict.stored.kind == Outcome::Kind::later)
      undone_ = *parts_.may_wait = true;
  if (!undone_) return {};
  return fail(Remedy::retry, "message", "messages wait in the store; their keys are asked for");
}

// Ordered by key, a message waits behind those of its key that wait, in the store or since this
// attempt.
std::optional<Outcome> Lane::wait_behind(const Item& item, const Verdict& verdict) const {
  if (!is_ordered_by_key(item.delivery) || mutant(Mutant::later_overtaken)) return std::nullopt;
  // Those that wait before it and are settled in this attempt hold it up no longer.
  std::int64_t behind_ms = due_done_.contains(verdict.behind_number) ? -1 : verdict.behind_ms;
  if (const auto found = put_off_.find(item.delivery.key); found != put_off_.end())
    behind_ms = std::max(behind_ms, found->second);
  if (behind_ms < 0) return std::nullopt;
  return later("an earlier message of its key waits", behind_ms, 0);
}

std::string Lane::mismatch_reason(const Item& item, const Verdict& verdict) const {
  const std::string first = verdict.first_offset < 0
                                ? "before"
                                : fmt::format("at offset {} of partition \"{}\"",
                                              verdict.first_offset, verdict.first_partition);
  const ContentRule& content = parts_.options.content;
  return fmt::format(
      "id \"{}\" was used {} for a message with other content: {} differs; {} is compared "
      "(content = \"{}\"). If both mean the same, compare less: content = "
      "\"fields:\" and the fields that count, or \"none\"",
      item.id, first, difference_by(content), content.explanation(), content.text());
}

Status Lane::work_single(Transaction& transaction, std::span<const Verdict> verdicts) {
  Writes writes(ran_);
  const auto view = watched(transaction, writes);
  for (std::size_t i = 0; i < selected_.size(); ++i) {
    Item& item = *selected_[i];
    transaction.on_behalf_of(i);
    if (const auto known = outcome_without_handler(item, verdicts[i])) {
      ONCE_TRY(settle_known(i, *known, verdicts[i], transaction));
      continue;
    }
    writes.clear();
    view->on_behalf_of(i);
    const auto outcome = call_each(item, *view);
    if (!outcome) {
      if (const auto instead = outcome_of(outcome.error())) return spoil(i, *instead);
      Error error = outcome.error();
      if (!error.message && error.cause == Cause::other) error.message = i;
      return fail(std::move(error));
    }
    // Whatever it wrote before it changed its mind has to go: roll back, then settle it alone.
    if (is_never_kept(*outcome) || (outcome->kind != Outcome::Kind::applied && writes.any()))
      return spoil(i, *outcome);
    ONCE_TRY(settle(i, *outcome, transaction));
  }
  return {};
}

Status Lane::work_batched(Transaction& transaction, std::span<const Verdict> verdicts) {
  std::vector<std::optional<Outcome>> outcomes(selected_.size());
  std::vector<Work> fresh;
  fresh.reserve(selected_.size());
  for (std::size_t i = 0; i < selected_.size(); ++i) {
    outcomes[i] = outcome_without_handler(*selected_[i], verdicts[i]);
    if (!outcomes[i])
      fresh.push_back({.delivery = &selected_[i]->delivery, .message = i, .outcome = applied()});
  }
  if (!fresh.empty()) ONCE_TRY(work_fresh(fresh, transaction));
  for (Work& work : fresh) outcomes[work.message] = std::move(work.outcome);
  for (std::size_t i = 0; i < selected_.size(); ++i) {
    transaction.on_behalf_of(i);
    ONCE_TRY(settle_known(i, *outcomes[i], verdicts[i], transaction));
  }
  return {};
}

// The batch handler. Nothing is on behalf of any message before it says so.
Status Lane::work_fresh(std::span<Work> fresh, Transaction& transaction) {
  Writes writes(ran_);
  const auto view = watched(transaction, writes);
  if (const auto spoiled = ONCE_TRY(call_batched(fresh, *view))) {
    if (fresh.size() == 1) return spoil(fresh.front().message, *spoiled);
    spoiled_by_someone_ = true;  // smaller and smaller batches will show who it is
    return fail(Remedy::retry, "message", spoiled->detail);
  }
  for (const Work& work : fresh)
    if (is_never_kept(work.outcome)) return spoil(work.message, work.outcome);
  return undo_refused(fresh, writes);
}

// What was written for messages that were not applied has to go: all is rolled back, and the next
// attempt settles them as decided and gives the handler the others.
Status Lane::undo_refused(std::span<const Work> fresh, const Writes& writes) {
  for (const Work& work : fresh) {
    if (work.outcome.kind == Outcome::Kind::applied || !writes.maybe_for(work.message)) continue;
    selected_[work.message]->decided = work.outcome;
    undone_ = true;
  }
  if (!undone_) return {};
  return fail(Remedy::retry, "message", "messages were refused after something was written");
}

// An exception is the handler's way to say that it could not do it this time.
Result<Outcome> Lane::call_each(const Item& item, Transaction& transaction) {
  ran_.note({});
  try {
    return parts_.handler.each()(item.delivery, transaction);
  } catch (const SimulatedDeath&) {
    throw;
  } catch (const std::exception& exception) {
    return retry(fmt::format("the handler threw: {}", exception.what()));
  } catch (...) {
    return retry("the handler threw something that is no std::exception");
  }
}

// An outcome here is that of some message of the batch, of which one is not known.
Result<std::optional<Outcome>> Lane::call_batched(std::span<Work> work, Transaction& transaction) {
  ran_.note({});
  try {
    const Status done = parts_.handler.batched()(work, transaction);
    if (done) return std::nullopt;
    if (auto outcome = outcome_of(done.error())) return outcome;
    return fail(done.error());
  } catch (const SimulatedDeath&) {
    throw;
  } catch (const std::exception& exception) {
    return retry(fmt::format("the handler threw: {}", exception.what()));
  } catch (...) {
    return retry("the handler threw something that is no std::exception");
  }
}

// What was admitted as fresh is settled, each once, and nothing else.
void Lane::check_all_recorded(std::span<const Verdict> verdicts) const {
  std::size_t fresh = 0;
  for (std::size_t i = 0; i < selected_.size(); ++i)
    if (!selected_[i]->passed && verdicts[i].kind != Verdict::Kind::duplicate) ++fresh;
  ONCE_ASSERT(recorded_ == fresh);
}

std::string Lane::redacted(std::string_view reason) const {
  return parts_.options.redact ? parts_.options.redact(reason) : std::string(reason);
}

// A result is the handler's own and stays as it is.
Outcome Lane::redacted(Outcome outcome) const {
  if (outcome.kind != Outcome::Kind::applied && !outcome.detail.empty())
    outcome.detail = redacted(outcome.detail);
  return outcome;
}

// All that is recorded of a message goes through here.
Status Lane::settle(std::size_t index, const Outcome& decided, Transaction& transaction) {
  const Outcome outcome = redacted(decided);
  ++recorded_;
  if (parts_.on_outcome) parts_.on_outcome(outcome);
  switch (outcome.kind) {
    case Outcome::Kind::applied: ++tally_.applied; break;
    case Outcome::Kind::rejected: ++tally_.rejected; break;
    case Outcome::Kind::no_effect:
      ++tally_.no_effect;
      freed_.push_back(index);
      break;
    case Outcome::Kind::parked:
      ++tally_.parked;
      tally_.parked_messages.push_back({selected_[index]->delivery.partition,
                                        selected_[index]->delivery.offset, outcome.detail});
      ONCE_POINT(lane_before_park);
      break;
    case Outcome::Kind::later: return put_off(*selected_[index], outcome, transaction);
    case Outcome::Kind::retry: return spoil(index, outcome);
  }
  // Without an admitted id there is nothing to remember an outcome by; a message is still parked.
  const Item& item = *selected_[index];
  const bool admitted = !item.id.empty() && item.records_id &&
                        parts_.options.semantics == Semantics::effectively_once;
  if (outcome.kind != Outcome::Kind::parked && !item.deferred() &&
      (!admitted || (outcome.kind == Outcome::Kind::applied && outcome.detail.empty())))
    return {};
  ONCE_TRY(transaction.settle(item.delivery, outcome));
  if (outcome.kind == Outcome::Kind::parked) return copy_parked(item, outcome, transaction);
  return {};
}

// It goes on waiting, or begins to. How often it was tried is only known of what the handler put
// off; one that waits behind another was not tried.
Status Lane::put_off(const Item& item, const Outcome& outcome, Transaction& transaction) {
  ++tally_.deferred;
  if (parts_.may_wait != nullptr) *parts_.may_wait = true;
  Delivery kept = item.delivery;
  kept.attempt = item.delivery.deferral.attempts + (item.decided ? 1 : 0);
  kept.deferral.in_order = is_ordered_by_key(item.delivery);
  return transaction.settle(kept, outcome);
}

// A message that is passed over and a duplicate leave no record. What waited and had its effect
// otherwise, since its id was freed, waits no longer; if it is not there as we have read it,
// another owner has handled it.
Status Lane::settle_known(std::size_t index, const Outcome& outcome, const Verdict& verdict,
                          Transaction& transaction) {
  const Item& item = *selected_[index];
  if (item.passed) return {};
  if (verdict.kind != Verdict::Kind::duplicate) return settle(index, outcome, transaction);
  if (!item.deferred() || verdict.stored.kind == Outcome::Kind::later) return {};
  return transaction.settle(item.delivery, no_effect());
}

// Its copy for the dead-letter topic leaves if and only if the message is parked.
Status Lane::copy_parked(const Item& item, const Outcome& outcome, Transaction& transaction) {
  if (parts_.options.park_to.empty()) return {};
  return transaction.enqueue(parts_.options.park_to,
                             dead_letter_of(item.delivery, {.reason = outcome.detail,
                                                            .tag = item.park_tag,
                                                            .scope = parts_.options.scope,
                                                            .source = parts_.source}));
}

// A message that had no effect leaves its id free, but all ids were admitted before that was known:
// another message with this id, be it a copy, was measured against it. It belongs to the next
// attempt, so that what becomes of it does not depend on the size of the batch.
Status Lane::cut_at_freed_id(std::span<const Verdict> verdicts) {
  for (std::size_t i = 0; i < verdicts.size() && !freed_.empty() && !cut_; ++i) {
    const Verdict::Kind kind = verdicts[i].kind;
    if (kind == Verdict::Kind::duplicate && mutant(Mutant::copy_of_freed_id_is_duplicate)) continue;
    if (kind != Verdict::Kind::mismatch && kind != Verdict::Kind::duplicate) continue;
    for (const std::size_t freed : freed_)
      if (freed < i && selected_[freed]->id == selected_[i]->id) cut_ = i;
  }
  if (!cut_) return {};
  return fail(Remedy::retry, "message", "an id was freed; what comes behind is tried again");
}

}  // namespace once
