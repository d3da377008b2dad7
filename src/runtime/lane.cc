// SPDX-License-Identifier: Apache-2.0
#include "runtime/lane.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/assert.h"
#include "base/failpoint.h"
#include "base/mutant.h"
#include "model/hint.h"
#include "model/ledger.h"
#include "model/reason.h"
#include "runtime/backoff.h"

namespace once {
namespace {

constexpr std::int64_t ns_per_ms = 1'000'000;

// The older of two births, of which -1 is none.
std::int64_t older(std::int64_t a_ms, std::int64_t b_ms) {
  if (a_ms < 0 || b_ms < 0) return std::max(a_ms, b_ms);
  return std::min(a_ms, b_ms);
}

// What is waited for after an error that says that nothing has happened.
const Dependency& awaited_after(const Error& error) {
  return error.tag == "in_progress" || error.tag == "superseded" ? a_claim : the_store;
}

}  // namespace

Lane::Lane(const LaneParts& parts) : parts_(parts), limit_(parts.options.batch_count_max) {
  parts_.counters.batch_count = limit_;
}

Lane::Owned& Lane::owned(std::string_view partition) {
  auto found = owned_.find(partition);
  if (found == owned_.end()) {
    auto fresh = std::make_unique<Owned>();
    fresh->name = partition;
    found = owned_.emplace(std::string(partition), std::move(fresh)).first;
  }
  return *found->second;
}

void Lane::own(std::string_view partition, const Position& position) {
  owned(partition).position = position;
}

void Lane::disown(std::string_view partition) {
  const auto found = owned_.find(partition);
  if (found == owned_.end()) return;
  Owned& gone = *found->second;
  gone.leaving = true;
  leaving_.push_back(std::move(found->second));
  owned_.erase(found);
  // Messages of a commit in doubt may be committed: they are kept until that is known.
  std::erase_if(tasks_, [&](const auto& task) {
    return task->owned == &gone && !(doubt_ && task->selected > task->next);
  });
  if (!doubt_) drop_leaving();
  if (tasks_.empty() && parts_.events != nullptr)
    for (const Dependency* on : {&the_store, &a_claim, &a_statement})
      parts_.events->leave(*on, {}, this);
}

void Lane::drop_leaving() {
  selected_.clear();
  std::erase_if(tasks_, [](const auto& task) { return task->owned->leaving; });
  leaving_.clear();
}

Lane::Prepared Lane::prepare(Batch batch) const {
  auto task = std::make_unique<Task>();
  task->batch = std::move(batch);
  task->items.reserve(task->batch.deliveries.size());
  for (const Delivery& delivery : task->batch.deliveries) {
    Item& item = task->items.emplace_back();
    item.delivery = delivery;
    item.task = task.get();
    item.end_offset = delivery.offset + 1;
    if (item.deferred())
      identify_deferred(item);
    else
      identify(item);
  }
  if (!task->items.empty())
    task->items.back().end_offset = std::max(task->items.back().end_offset, task->batch.end_offset);
  std::int64_t oldest_ms = -1;
  for (auto item = task->items.rbegin(); item != task->items.rend(); ++item)
    item->oldest_ms = oldest_ms = older(oldest_ms, item->progress_ms);
  return task;
}

Lane::Births Lane::births(const Task& task) {
  Births births{task.batch.partition};
  births.born_ms.reserve(task.items.size());
  for (const Item& item : task.items)
    births.born_ms.emplace_back(Watermark::Tag{item.delivery.session, item.delivery.offset},
                                item.progress_ms);
  return births;
}

std::vector<std::string> Lane::ids(const Task& task) {
  std::vector<std::string> ids;
  ids.reserve(task.items.size());
  for (const Item& item : task.items) ids.push_back(item.id);
  return ids;
}

void Lane::push(Prepared task) {
  task->owned = &owned(task->batch.partition);
  task->owned->drained_ms.reset();
  if (!is_deferred(task->batch)) parts_.counters.delivered += task->items.size();
  tasks_.push_back(std::move(task));
}

// Decided before the id rule is asked: messages of another kind need not have an id.
bool Lane::is_passed_over(Item& item) const {
  if (!parts_.options.wanted) return false;
  const auto wanted = parts_.options.wanted(item.delivery);
  if (wanted && *wanted) return false;
  item.passed = wanted.has_value();
  item.decided = wanted ? no_effect() : parked(wanted.error().text);
  return true;
}

// What the message is (id, birth) and what it says (fingerprint). A message without an id is not
// handled: it is parked, and the partition goes on.
void Lane::identify(Item& item) const {
  item.born_ms = item.delivery.timestamp_ms;
  if (is_passed_over(item)) {
    if (parts_.options.id) item.delivery.id = {};
    return count_birth(item, item.born_ms);
  }
  if (!parts_.options.id) return count_birth(item, item.born_ms);
  auto id = parts_.options.id->id_of(item.delivery);
  if (!id) {
    item.decided = parked(id.error().text);
    item.park_tag = id.error().tag;
    item.delivery.id = {};
    return count_birth(item, item.born_ms);
  }
  item.id = std::move(*id);
  item.delivery.id = item.id;
  if (const auto born = born_ms_of(parts_.options.born, item.delivery, item.id)) {
    item.born_ms = *born;
  } else {
    item.decided = parked(born.error().text);
    item.park_tag = born.error().tag;
    item.delivery.id = {};
    item.id.clear();
    return;
  }
  item.fingerprint = fingerprint_of(item.delivery, parts_.options.content);
  count_birth(item, item.born_ms);
}

// Its id was found when it was delivered. It says nothing about the progress of its partition,
// which has gone on without it.
void Lane::identify_deferred(Item& item) const {
  item.id = item.delivery.id;
  item.delivery.id = item.id;
  item.delivery.attempt = item.delivery.deferral.attempts + 1;
  item.born_ms =
      born_ms_of(parts_.options.born, item.delivery, item.id).value_or(item.delivery.timestamp_ms);
  item.fingerprint = fingerprint_of(item.delivery, parts_.options.content);
}

// What a birth says about the progress of its partition. One that is far ahead of the store's clock
// is wrong and says nothing; where births decide what is forgotten, its message is parked, and its
// id stays free for a message with the right one.
void Lane::count_birth(Item& item, std::int64_t born_ms) const {
  const std::int64_t now_ms =
      parts_.store_clock != nullptr ? parts_.store_clock->now_ms() : born_ms;
  const bool ahead = born_ms > now_ms && born_ms - now_ms > parts_.options.ahead_ms_max &&
                     !mutant(Mutant::births_ahead_believed);
  if (!ahead) {
    item.progress_ms = std::max<std::int64_t>(0, std::min(born_ms, now_ms));
    if (mutant(Mutant::births_ahead_believed)) item.progress_ms = born_ms;
    return;
  }
  if (item.decided || !parts_.options.id || parts_.options.retention_ms < 0) return;
  item.ahead = true;
  item.park_tag = "ahead";
  item.records_id = false;
  item.decided = parked(fmt::format(
      "the message was born at {} ms, {} ms ahead of the store's clock; at most {} ms are allowed. "
      "Its producer may count microseconds or nanoseconds instead of milliseconds, or its clock is "
      "wrong. Send it again with the right time, or allow more (ahead) and replay it",
      born_ms, born_ms - now_ms, parts_.options.ahead_ms_max));
}

// The messages of the next attempt: of each partition the oldest ones, up to the limit. A message
// that has to wait holds back those behind it in its partition, and no others.
void Lane::select() {
  selected_.clear();
  for (auto& [name, partition] : owned_) {
    partition->selected_end = partition->position.offset;
    partition->selected_ms = partition->settled_ms;
    partition->blocked = false;
  }
  const std::int64_t now_ns = parts_.clock.ticks_ns();
  std::int64_t earliest_ns = std::numeric_limits<std::int64_t>::max();
  for (const auto& task : tasks_) task->selected = task->next;
  for (const auto& task : tasks_) {
    if (selected_.size() >= limit_) break;
    if (!task->owned->blocked) select_from(*task, now_ns, earliest_ns);
  }
  wait_until_ns_ = selected_.empty() ? earliest_ns : now_ns;
}

void Lane::select_from(Task& task, std::int64_t now_ns, std::int64_t& earliest_ns) {
  Owned& partition = *task.owned;
  for (std::size_t i = task.next; i < task.items.size() && selected_.size() < limit_; ++i) {
    Item& item = task.items[i];
    if (!selected_.empty() && (selected_.front()->halfway != item.halfway ||
                               selected_.front()->deferred() != item.deferred())) {
      partition.blocked = true;
      return;
    }
    if (parts_.positions && !item.halfway && !item.deferred()) {
      if (item.delivery.offset < partition.position.offset) {  // the position says: handled
        ONCE_ASSERT(i == task.next);
        item.settled = true;
        task.selected = ++task.next;
        ++parts_.counters.skipped;
        continue;
      }
      if (item.delivery.offset < partition.selected_end) {  // comes twice in this selection
        partition.blocked = true;
        return;
      }
    }
    if (item.apart) continue;
    if (item.not_before_ns > now_ns) {
      earliest_ns = std::min(earliest_ns, item.not_before_ns);
      partition.blocked = parts_.ordered || mutant(Mutant::waiting_blocks_lane);
      return;
    }
    partition.selected_end = std::max(partition.selected_end, item.end_offset);
    partition.selected_ms = std::max(partition.selected_ms, item.progress_ms);
    task.selected = i + 1;
    selected_.push_back(&item);
  }
}

Result<Lane::Step> Lane::step() {
  Step step;
  const std::int64_t now_ns = parts_.clock.ticks_ns();
  if (not_before_ns_ > now_ns) {
    step.wait_ms = (not_before_ns_ - now_ns) / ns_per_ms + 1;
    return step;
  }
  if (doubt_) {
    ONCE_TRY(resolve_doubt());
  } else {
    select();
    ONCE_TRY(publish());
    if (!selected_.empty() && not_before_ns_ <= now_ns) ONCE_TRY(attempt());
  }
  retire(step);
  step.given_back = std::exchange(given_back_, {});
  const std::int64_t wait_until = std::max(not_before_ns_, wait_until_ns_);
  const std::int64_t after_ns = parts_.clock.ticks_ns();
  if (!step.worked && !tasks_.empty() && wait_until > after_ns)
    step.wait_ms = (wait_until - after_ns) / ns_per_ms + 1;
  return step;
}

// Of its batch only those of the items of which `keep` says so.
template <class Keep>
void Lane::keep_deliveries(Task& task, const Keep& keep) {
  auto& deliveries = task.batch.deliveries;
  ONCE_ASSERT(deliveries.size() == task.items.size());
  std::size_t kept = 0;
  for (std::size_t i = 0; i < task.items.size(); ++i) {
    if (!keep(task.items[i])) continue;
    if (kept != i) deliveries[kept] = deliveries[i];
    ++kept;
  }
  deliveries.resize(kept);
}

// Takes what is settled out of the queue.
void Lane::retire(Step& step) {
  if (doubt_) return;
  for (auto& task : tasks_) {
    if (!task->is_done()) continue;
    step.worked = true;
    if (!parts_.ordered) keep_deliveries(*task, [](const Item& item) { return !item.apart; });
    if (!task->batch.deliveries.empty()) step.finished.push_back(std::move(task->batch));
    task.reset();
  }
  std::erase(tasks_, nullptr);
}

std::size_t Lane::waiting_count() const {
  return static_cast<std::size_t>(
      std::count_if(tasks_.begin(), tasks_.end(), [](const auto& task) { return task->waits; }));
}

std::size_t Lane::batches_queued() const {
  const std::size_t waiting = waiting_count();
  return tasks_.size() - std::min(waiting, parts_.waiting_max);
}

std::vector<Batch> Lane::give_back() {
  std::vector<Batch> batches;
  for (auto& task : tasks_) {
    if (task->owned->leaving) continue;
    keep_deliveries(*task, [](const Item& item) { return !item.settled && !item.apart; });
    if (!task->batch.deliveries.empty()) batches.push_back(std::move(task->batch));
  }
  tasks_.clear();
  selected_.clear();
  leaving_.clear();
  doubt_.reset();
  return batches;
}

// One attempt at what is selected, as the semantics says: in one transaction or in two.
Status Lane::attempt() {
  if (charged_count() == selected_.size() && !ONCE_TRY(await_proof())) return {};
  const bool halfway = selected_.front()->halfway;
  const bool move = parts_.positions;
  if (selected_.front()->deferred()) return attempt_once({.advance = false, .work = true});
  switch (parts_.options.semantics) {
    case Semantics::effectively_once:
      if (mutant(Mutant::position_before_effect) && move) {
        if (!halfway) return attempt_once({.advance = true, .work = false});
        return attempt_once({.advance = false, .work = true});
      }
      return attempt_once({.advance = move, .work = true});
    case Semantics::at_least_once:
      if (!halfway) {
        ONCE_TRY(attempt_once({.advance = false, .work = true}));
        if (!move || selected_.empty() || !selected_.front()->halfway) return {};
        ONCE_POINT(lane_after_work);
      }
      return attempt_once({.advance = true, .work = false});
    case Semantics::at_most_once:
      if (!halfway && move) {
        ONCE_TRY(attempt_once({.advance = true, .work = false}));
        if (selected_.empty() || !selected_.front()->halfway) return {};
        ONCE_POINT(lane_after_position);
      }
      return attempt_once({.advance = false, .work = true});
  }
  return {};
}

Status Lane::attempt_once(Content content) {
  if (content.work) tally_ = {};  // the other half of two transactions counts nothing
  spoiled_by_someone_ = false;
  undone_ = false;
  recorded_ = 0;
  freed_.clear();
  put_off_.clear();
  due_done_.clear();
  cut_.reset();
  ran_.clear();
  const Status done = transact(content);
  if (!done) return failed(done.error(), content);
  committed(content);
  return {};
}

// The transaction is durable. Either that was all, or half of it.
void Lane::committed(Content content) {
  ++parts_.counters.transactions;
  store_failures_ = 0;
  store_answered();
  if (content.work && charged_count() < selected_.size()) parts_.passed->passed(ran_);
  if (content.advance)
    for (Item* item : selected_) {
      Owned& partition = *item->task->owned;
      partition.position.offset = item->end_offset;
      partition.settled_ms = partition.offered.settled_ms;
      partition.stored_waiting_ms = partition.offered.waiting_ms;
    }
  const bool two =
      !(content.advance && content.work) && parts_.positions && !selected_.front()->deferred();
  if (two && !selected_.front()->halfway) {
    for (Item* item : selected_) item->halfway = true;
    return;
  }
  settled();
}

void Lane::settled() {
  Counters& counters = parts_.counters;
  counters.add(tally_);
  if (tally_.deferred > 0) ONCE_POINT(lane_after_defer);
  tell_parked();
  tally_ = {};
  unproven_ = 0;
  if (limit_ >= parts_.options.batch_count_max) lasting_count_ = 0;
  for (Item* item : selected_) {
    item->settled = true;
    item->task->go_on();
  }
  limit_ = std::min(parts_.options.batch_count_max, limit_ * 2);
  counters.batch_count = limit_;
  selected_.clear();
}

// The attempt is rolled back, or nobody knows. Decides what the next step does about it; an error
// is returned only when there is nothing to be done.
Status Lane::failed(const Error& error, Content content) {
  ++parts_.counters.rolled_back;
  if (error.culprit) {
    ONCE_TRY(check_can_wait(error.culprit->instead));
    blame(*error.culprit);
    return {};
  }
  if (undone_) return {};
  if (cut_) {
    limit_ = *cut_;
    return {};
  }
  if (spoiled_by_someone_) return isolate(error);
  const bool is_suspect = error.cause == Cause::handler && error.remedy != Remedy::park;
  if (is_suspect && charged_count() < selected_.size()) return suspect(error), Status();
  switch (error.remedy) {
    case Remedy::retry: wait_for(awaited_after(error), error); return {};
    case Remedy::recheck: doubt_ = {content, error}; return {};
    case Remedy::park: return isolate(error);
    case Remedy::stop:
      if (error.tag == "fenced" && content.advance && ONCE_TRY(arrived_late())) return {};
      break;
  }
  return fail(named(error));
}

std::string Lane::drop_hint(const Item& item, std::string_view reason) const {
  return hint({"later", "drop", fmt::format("{}", item.delivery.deferral.number), "--scope",
               parts_.options.scope, "--reason", reason});
}

// Some message spoiled the attempt, and nothing says which: a constraint that is checked at commit,
// a value that is too long for a column. Smaller and smaller attempts show who it is. Alone, it is
// parked; if the store refuses even that, then without recording its id, then without its id.
Status Lane::isolate(const Error& error) {
  const std::size_t charged = charged_count();
  if (selected_.size() > charged + 1) {
    limit_ = charged + (selected_.size() - charged) / 2;
    parts_.counters.batch_count = limit_;
    return {};
  }
  const auto other = std::find_if(selected_.begin(), selected_.end(),
                                  [](const Item* one) { return !one->charged(); });
  Item& item = other == selected_.end() ? *selected_.front() : **other;
  // Its id has a record, without which it cannot be parked.
  if (item.deferred() && item.refused > 0) {
    Error last = error;
    last.text +=
        fmt::format("; message {} waits in the store and could not even be parked: {} gives it up",
                    item.delivery.deferral.number, drop_hint(item, "could not be parked"));
    return fail(std::move(last));
  }
  switch (item.refused++) {
    case 0:
      item.decided = parked(error.text);
      item.park_tag = error.tag;
      return {};
    case 1: item.records_id = false; return {};
    case 2: item.delivery.id = {}; return {};
    default: return fail(error);
  }
}

// The message spoiled the attempt. It is settled as decided next time, or tried again later, or,
// after its last attempt, parked. Those before it go first.
void Lane::blame(const Culprit& culprit) {
  ONCE_ASSERT(culprit.message < selected_.size());
  Item& item = *selected_[culprit.message];
  if (culprit.instead.kind == Outcome::Kind::later) {
    decide_later(item, culprit.instead);
  } else if (culprit.instead.kind != Outcome::Kind::retry) {
    item.decided = culprit.instead;
  } else if (++item.attempts >= parts_.options.retry.attempts_max) {
    item.decided =
        parked(fmt::format("gave up after {} attempts: {}", item.attempts, culprit.instead.detail));
    item.park_tag = "attempts";
  } else {
    const std::int64_t wait_ms = culprit.instead.after_ms > 0
                                     ? culprit.instead.after_ms
                                     : backoff_ms(parts_.options.retry, item.attempts);
    item.delivery.attempt = item.attempts + 1;
    ++parts_.counters.retried;
    tell_retried(item, culprit.instead.detail);
    wait(item, wait_ms);
  }
  limit_ = std::max({parts_.options.batch_count_min, culprit.message + 1, std::size_t{1}});
  parts_.counters.batch_count = limit_;
}

// It is tried again after this time; until then those behind it wait with it, or it waits apart.
void Lane::wait(Item& item, std::int64_t wait_ms) {
  item.not_before_ns = parts_.clock.ticks_ns() + wait_ms * ns_per_ms;
  if (!parts_.ordered && !item.deferred() && !mutant(Mutant::waiting_blocks_lane))
    set_apart(item, wait_ms);
}

// A batch of its own, which shares the memory of the one that it leaves.
void Lane::set_apart(Item& item, std::int64_t wait_ms) {
  Task& from = *item.task;
  if (from.waits) return;
  const auto index = static_cast<std::size_t>(&item - from.items.data());
  Batch batch;
  batch.partition = from.batch.partition;
  batch.deliveries.push_back(from.batch.deliveries[index]);
  batch.memory = from.batch.memory;
  if (parts_.gives_back && waiting_count() >= parts_.waiting_max) {
    given_back_.push_back({std::move(batch), wait_ms});
  } else {
    auto task = std::make_unique<Task>();
    task->batch = std::move(batch);
    task->owned = from.owned;
    task->waits = true;
    Item& apart = task->items.emplace_back(std::move(item));
    apart.task = task.get();
    if (!apart.delivery.id.empty()) apart.delivery.id = apart.id;
    tasks_.push_back(std::move(task));
  }
  item.apart = true;
  from.go_on();
}

// What waits is known by its record in the ledger, which is made in the transaction that puts it
// off.
Status Lane::check_can_wait(const Outcome& outcome) const {
  if (outcome.kind != Outcome::Kind::later) return {};
  const bool recorded = parts_.options.id && parts_.claims == nullptr &&
                        parts_.options.semantics == Semantics::effectively_once;
  if (recorded && parts_.store.deferrals() != nullptr) return {};
  return fail(Remedy::stop, "config",
              fmt::format("scope \"{}\": a message can be put off until later only where its id is "
                          "in the ledger of a store that can keep it: set an id rule and "
                          "effectively once, or answer `retry`",
                          parts_.options.scope));
}

void Lane::decide_later(Item& item, const Outcome& outcome) {
  const std::uint32_t attempts = item.delivery.deferral.attempts + 1;
  item.delivery.attempt = attempts;
  item.decided = outcome;
  if (outcome.attempts_max == 0 || attempts < outcome.attempts_max) return;
  item.decided = parked(fmt::format("gave up after {} attempts: {}", attempts, outcome.detail));
  item.park_tag = "attempts";
}

// The store could not do it and nothing happened. That is no fault of any message, so it is tried
// again without limit, ever more slowly.
void Lane::wait_for(const Dependency& on, const Error& why) {
  ++store_failures_;
  if (parts_.events != nullptr) {
    if (on.away != the_store.away) parts_.events->back(the_store, {}, this);
    if (on.away != a_statement.away) parts_.events->back(a_statement, {}, this);
    parts_.events->away(on, {}, this, why);
  }
  not_before_ns_ =
      parts_.clock.ticks_ns() + backoff_ms(parts_.options.retry, store_failures_) * ns_per_ms;
}

void Lane::store_answered() {
  if (parts_.events == nullptr) return;
  parts_.events->back(the_store, {}, this);
  parts_.events->back(a_claim, {}, this);
  parts_.events->back(a_statement, {}, this);
}

// Once it is committed.
void Lane::tell_parked() {
  if (parts_.parked_share != nullptr)
    parts_.parked_share->settled(tally_.applied + tally_.rejected + tally_.no_effect);
  for (const auto& [partition, offset, reason] : tally_.parked_messages) {
    if (parts_.parked_share != nullptr) parts_.parked_share->parked(reason);
    if (parts_.events == nullptr) continue;
    parts_.events->count({.severity = Severity::warning,
                          .kind = EventKind::message_parked,
                          .text = fmt::format("parked {} offset {}: {}", partition, offset, reason),
                          .subject = std::string(partition)},
                         masked(reason));
  }
}

void Lane::tell_retried(const Item& item, std::string_view reason) {
  if (parts_.events == nullptr) return;
  const std::string why = redacted(reason);
  parts_.events->count({.severity = Severity::info,
                        .kind = EventKind::message_retried,
                        .text = fmt::format("{} offset {} is tried again: {}",
                                            item.delivery.partition, item.delivery.offset, why),
                        .subject = std::string(item.delivery.partition)},
                       masked(why));
}

// Unknown is an answer, and the store knows better: look, then go on from what is true. What did
// not happen is tried again as slowly as what failed: the next answer may be lost, too.
Status Lane::resolve_doubt() {
  const auto [content, why] = *doubt_;
  ++parts_.counters.rechecked;
  if (content.advance) {
    const auto now = positions_now();
    if (!now && now.error().remedy != Remedy::stop) {
      wait_for_store(now.error());
      return {};
    }
    doubt_.reset();
    if (!now) return fail(now.error());
    const bool there =
        !now->empty() && std::all_of(now->begin(), now->end(), [](const auto& found) {
          return found.second.offset == found.first->selected_end;
        });
    if (there && !mutant(Mutant::unknown_taken_for_failed)) {
      committed(content);
    } else {
      // It may still come. What has moved elsewhere was moved by one that came late before it.
      if (!adopt(*now)) wait_for_store(why);
      for (const auto& [partition, position] : *now) partition->doubted = true;
    }
  } else {
    doubt_.reset();
    // Work without a position: with ids, the ledger tells at the next attempt; at least once, it
    // may be repeated; at most once, it must not be.
    if (parts_.options.semantics == Semantics::at_most_once)
      committed(content);
    else
      wait_for_store(why);
  }
  drop_leaving();
  return {};
}

// Of all partitions that are selected and still ours: a commit is true for all or for none. What
// was taken away may have another owner by now; what becomes of it is that owner's to find out.
// Another fence on what is ours is an error.
Result<Lane::Positions> Lane::positions_now() const {
  Positions positions;
  for (const Item* item : selected_) {
    Owned* const partition = item->task->owned;
    if (partition->leaving) continue;
    const bool known = std::any_of(positions.begin(), positions.end(),
                                   [&](const auto& found) { return found.first == partition; });
    if (!known) positions.emplace_back(partition, Position{});
  }
  for (auto& [partition, now] : positions) {
    now = ONCE_TRY(parts_.store.position(parts_.options.scope, partition->name));
    if (now.fence != partition->position.fence)
      return fail(fenced_error(parts_.options.scope, partition->name, partition->position, now));
  }
  return positions;
}

// The fence is ours alone, so if a position has moved under it, that was us: what lies below is
// handled, and is skipped.
bool Lane::adopt(const Positions& now) {
  bool moved = false;
  for (const auto& [partition, position] : now) {
    if (position.offset <= partition->position.offset) continue;
    if (mutant(Mutant::unknown_taken_for_failed)) continue;
    partition->position = position;
    moved = true;
  }
  return moved;
}

// A server may still have been at work on a commit when we looked and did not find it; then the
// attempt after it meets a position that was moved by ourselves.
Result<bool> Lane::arrived_late() {
  const bool doubted = std::any_of(selected_.begin(), selected_.end(),
                                   [](const Item* item) { return item->task->owned->doubted; });
  if (!doubted) return false;
  const auto now = positions_now();
  if (now) return adopt(*now);
  if (now.error().remedy == Remedy::stop) return fail(now.error());
  wait_for_store(now.error());
  return true;
}

}  // namespace once
