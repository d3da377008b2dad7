// SPDX-License-Identifier: Apache-2.0
#include "store/memory/transaction.h"

#include <fmt/format.h>

#include "base/mutant.h"
#include "model/fingerprint.h"
#include "model/message_view.h"

namespace once {
namespace {

Error conflict(std::string_view what, std::string_view name) {
  return {Remedy::retry, "conflict",
          fmt::format("memory: {} \"{}\" was changed by another transaction; run this one again",
                      what, name),
          std::nullopt};
}

bool is_fenced(const Position& from, const Position& actual) {
  if (mutant(Mutant::older_store_accepted) && actual.fence <= from.fence) return false;
  return actual != from;
}

}  // namespace

Status MemoryTransaction::check_alive() {
  if (doom_) return fail(*doom_);
  if (finished_)
    return fail(Remedy::stop, "config", "memory: the transaction was committed; begin another");
  if (generation_ != store_.generation_) return fail(*(doom_ = MemoryStore::lost_answer()));
  return {};
}

Status MemoryTransaction::advance(std::string_view partition, const Position& from, std::int64_t to,
                                  const Progress& progress) {
  ONCE_TRY(check_advance(partition, from, to));
  const std::lock_guard lock(store_.mutex_);
  ONCE_TRY(check_alive());
  const auto earlier = moves_.find(partition);
  const Position actual =
      earlier != moves_.end() ? earlier->second.to : store_.position_at(scope_, partition);
  if (is_fenced(from, actual))
    return fail(*(doom_ = fenced_error(scope_, partition, from, actual)));
  const Position target{to, from.fence, {}};
  if (earlier != moves_.end()) {
    earlier->second.to = target;
    earlier->second.progress = joined(earlier->second.progress, progress);
  } else {
    moves_.emplace(partition, Move{from, target, progress});
  }
  return {};
}

Result<std::vector<Verdict>> MemoryTransaction::admit(std::span<const Entry> entries) {
  ONCE_TRY(check_entries(entries));
  const std::lock_guard lock(store_.mutex_);
  ONCE_TRY(check_alive());
  return admit_resuming(entries);
}

Result<std::vector<Verdict>> MemoryTransaction::admit_plain(std::span<const Entry> entries) {
  std::vector<Verdict> verdicts;
  verdicts.reserve(entries.size());
  for (const Entry& entry : entries) verdicts.push_back(verdict_of(entry));
  return verdicts;
}

Verdict MemoryTransaction::verdict_of(const Entry& entry) {
  const auto compared = [&](const MemoryState::LedgerRow& row) {
    const bool other = contradicts(row.fingerprint, entry.fingerprint);
    if (!other) return Verdict{Verdict::Kind::duplicate, row.outcome};
    return Verdict{Verdict::Kind::mismatch, row.outcome, row.partition, row.offset};
  };
  if (const auto ours = fresh_.find(entry.id); ours != fresh_.end()) return compared(ours->second);
  const std::int64_t born_ms = ledger_time(entry.born_ms);
  if (const MemoryState::Scope* books = store_.find_scope(scope_)) {
    const auto stored = books->ledger.find(entry.id);
    if (stored != books->ledger.end()) return compared(stored->second);
    if (born_ms < books->horizon_ms) return {.kind = Verdict::Kind::too_old, .stored = {}};
  }
  fresh_.emplace(entry.id, MemoryState::LedgerRow{entry.fingerprint,
                                                  {},
                                                  born_ms,
                                                  store_.clock_.now_ms(),
                                                  std::string(entry.partition),
                                                  entry.offset});
  return {};
}

bool MemoryTransaction::still_waits(std::int64_t number, std::uint32_t attempts) const {
  const MemoryState::Scope* books = store_.find_scope(scope_);
  if (books == nullptr) return false;
  const auto found = books->deferred.find(number);
  return found != books->deferred.end() && found->second.attempts == attempts;
}

Status MemoryTransaction::ask_gone(const Entry& entry, bool& gone) {
  const Deferral& deferral = entry.deferral;
  gone = !still_waits(deferral.number, deferral.attempts) ||
         store_.find_scope(scope_)->deferred.at(deferral.number).message.id != entry.id;
  if (!gone) due_[deferral.number] = deferral.attempts;
  return {};
}

Status MemoryTransaction::resume(const Entry& entry, Outcome::Kind from) {
  resumed_.emplace(entry.id, from);
  const auto& stored = store_.find_scope(scope_)->ledger.find(entry.id)->second;
  fresh_.emplace(entry.id, MemoryState::LedgerRow{entry.fingerprint,
                                                  {},
                                                  stored.born_ms,
                                                  store_.clock_.now_ms(),
                                                  std::string(entry.partition),
                                                  entry.offset});
  return {};
}

Status MemoryTransaction::ask_behind(const Entry& entry, Verdict& verdict) {
  const MemoryState::Scope* books = store_.find_scope(scope_);
  if (books == nullptr) return {};
  for (const auto& [number, record] : books->deferred) {
    if (entry.deferral.number != 0 && number >= entry.deferral.number) break;
    if (!record.in_order || record.message.key != entry.order_key) continue;
    verdict.behind_number = number;
    verdict.behind_ms = std::max<std::int64_t>(0, record.due_ms - store_.clock_.now_ms());
  }
  return {};
}

Status MemoryTransaction::settle(const Delivery& delivery, const Outcome& outcome) {
  ONCE_TRY(check_settle(outcome));
  const std::lock_guard lock(store_.mutex_);
  ONCE_TRY(check_alive());
  const auto row = fresh_.find(delivery.id);
  // A later copy in the same batch, parked for its other content, must not touch the first one's.
  const bool ours = row != fresh_.end() && row->second.offset == delivery.offset &&
                    row->second.partition == delivery.partition;
  if (ours) {
    if (outcome.kind == Outcome::Kind::no_effect) {
      freed_.emplace_back(row->first, row->second.born_ms);
      fresh_.erase(row);
    } else {
      row->second.outcome = outcome;
    }
  }
  if (outcome.kind == Outcome::Kind::parked) {
    parked_.push_back({0, std::string(delivery.partition), delivery.offset, delivery.attempt,
                       store_.clock_.now_ms(), outcome.detail, message_of(delivery)});
  }
  if (outcome.kind == Outcome::Kind::later)
    put_off(delivery, outcome);
  else if (delivery.deferral.number != 0)
    changed_[delivery.deferral.number] = std::nullopt;
  return {};
}

void MemoryTransaction::put_off(const Delivery& delivery, const Outcome& outcome) {
  const std::int64_t now_ms = store_.clock_.now_ms();
  DeferredRecord record{delivery.deferral.number,
                        std::string(delivery.partition),
                        delivery.offset,
                        delivery.attempt,
                        now_ms,
                        now_ms + std::max<std::int64_t>(outcome.after_ms, 0),
                        delivery.deferral.in_order && delivery.has_key(),
                        outcome.detail,
                        message_of(delivery)};
  if (record.number != 0)
    changed_[record.number] = std::move(record);
  else
    deferred_.push_back(std::move(record));
}

Status MemoryTransaction::enqueue(std::string_view destination, const Message& message) {
  ONCE_TRY(check_destination(destination));
  const std::lock_guard lock(store_.mutex_);
  ONCE_TRY(check_alive());
  enqueued_.push_back(
      {++store_.state_.last_outbox_number, std::string(destination), message, std::nullopt});
  return {};
}

Status MemoryTransaction::commit() {
  const std::lock_guard lock(store_.mutex_);
  ONCE_TRY(check_alive());
  using Fault = MemoryStore::CommitFault;
  const Fault fault = store_.commit_fault_ ? store_.commit_fault_() : Fault::none;
  if (fault == Fault::refused)
    return fail(*(doom_ = Error{Remedy::retry, "busy",
                                "memory: the commit was refused; run the "
                                "transaction again",
                                std::nullopt}));
  if (fault == Fault::constraint)
    return fail(*(doom_ = Error{Remedy::park, "constraint",
                                "memory: a constraint that is checked at commit refuses this write",
                                std::nullopt}));
  if (fault == Fault::lost_before) return fail(*(doom_ = MemoryStore::lost_answer()));
  if (store_.late_) arrive(store_);
  if (fault == Fault::lost_late) {
    store_.late_ = let_go();
    return fail(*(doom_ = MemoryStore::lost_answer()));
  }
  if (auto valid = validate(); !valid) return fail(*(doom_ = std::move(valid).error()));
  apply();
  if (fault == Fault::lost_after) return fail(*(doom_ = MemoryStore::lost_answer()));
  finished_ = true;
  return {};
}

std::unique_ptr<MemoryTransaction> MemoryTransaction::let_go() {
  auto late = std::make_unique<MemoryTransaction>(store_, scope_, generation_);
  late->moves_ = std::move(moves_);
  late->fresh_ = std::move(fresh_);
  late->freed_ = std::move(freed_);
  late->resumed_ = std::move(resumed_);
  late->due_ = std::move(due_);
  late->changed_ = std::move(changed_);
  late->deferred_ = std::move(deferred_);
  late->parked_ = std::move(parked_);
  late->enqueued_ = std::move(enqueued_);
  late->read_ = std::move(read_);
  late->written_ = std::move(written_);
  return late;
}

void MemoryTransaction::arrive(MemoryStore& store) {
  const auto late = std::exchange(store.late_, nullptr);
  if (late->generation_ == store.generation_ && late->validate()) late->apply();
}

Status MemoryTransaction::validate() const {
  for (const auto& [partition, move] : moves_) {
    const Position actual = store_.position_at(scope_, partition);
    if (is_fenced(move.from, actual))
      return fail(fenced_error(scope_, partition, move.from, actual));
  }
  for (const auto& [id, row] : fresh_)
    if (!is_free(id, row.born_ms)) return fail(conflict("id", id));
  for (const auto& [id, born_ms] : freed_)
    if (!is_free(id, born_ms)) return fail(conflict("id", id));
  for (const auto& [number, attempts] : due_)
    if (!still_waits(number, attempts))
      return fail(conflict("the waiting message", std::to_string(number)));
  for (const auto& [key, value] : read_) {
    const auto found = store_.state_.values.find(key);
    const bool same =
        found == store_.state_.values.end() ? !value.has_value() : value == found->second;
    if (!same) return fail(conflict("key", key));
  }
  return {};
}

// An id that was new when we looked may have been recorded, and even forgotten, since; one that is
// to be had again may have been had.
bool MemoryTransaction::is_free(const std::string& id, std::int64_t born_ms) const {
  const MemoryState::Scope* books = store_.find_scope(scope_);
  if (const auto resumed = resumed_.find(id); resumed != resumed_.end()) {
    const auto row = books->ledger.find(id);
    return row != books->ledger.end() && row->second.outcome.kind == resumed->second;
  }
  return books == nullptr || (!books->ledger.contains(id) && born_ms >= books->horizon_ms);
}

void MemoryTransaction::apply() {
  MemoryState& state = store_.state_;
  MemoryState::Scope& books = store_.scope_at(scope_);
  for (const auto& [partition, move] : moves_) {
    PartitionRecord& moved = store_.partition_at(scope_, partition);
    moved.position.offset = move.to.offset;
    if (move.progress.witness.offset >= 0) moved.position.witness = move.progress.witness;
    moved.settled_ms = std::max(moved.settled_ms, move.progress.settled_ms);
    moved.waiting_ms = move.progress.waiting_ms;
    if (move.progress.drained) moved.drained_ms = store_.clock_.now_ms();
  }
  for (const auto& [id, outcome] : resumed_) {
    store_.free_id(scope_, id, false);
    if (outcome == Outcome::Kind::parked)
      std::erase_if(books.parked,
                    [&id = id](const ParkedRecord& record) { return record.message.id == id; });
  }
  for (auto& [id, row] : fresh_) {
    books.by_birth.emplace(row.born_ms, id);
    books.ledger.emplace(id, std::move(row));
  }
  for (ParkedRecord& record : parked_) {
    record.number = ++state.last_parked_number;
    store_.log_operation(scope_, "park", record.message.id, record.reason);
    books.parked.push_back(std::move(record));
  }
  for (auto& [number, record] : changed_) {
    const auto stored = books.deferred.find(number);
    if (stored == books.deferred.end()) continue;
    if (record) {
      record->message = std::move(stored->second.message);
      record->in_order = stored->second.in_order;
      stored->second = std::move(*record);
    } else {
      books.deferred.erase(stored);
    }
  }
  for (DeferredRecord& record : deferred_) {
    record.number = ++state.last_deferred_number;
    books.deferred.emplace(record.number, std::move(record));
  }
  for (OutboxRow& row : enqueued_)
    state.outbox[row.destination].emplace(row.number, std::move(row));
  for (auto& [key, value] : written_) {
    if (value)
      state.values[key] = std::move(*value);
    else
      state.values.erase(key);
  }
}

Result<std::optional<std::string>> MemoryTransaction::get(std::string_view key) {
  const std::lock_guard lock(store_.mutex_);
  ONCE_TRY(check_alive());
  if (const auto ours = written_.find(key); ours != written_.end()) return ours->second;
  if (const auto before = read_.find(key); before != read_.end()) return before->second;
  const auto found = store_.state_.values.find(key);
  std::optional<std::string> value;
  if (found != store_.state_.values.end()) value = found->second;
  read_.emplace(key, value);
  return value;
}

Status MemoryTransaction::put(std::string_view key, std::string_view value) {
  const std::lock_guard lock(store_.mutex_);
  ONCE_TRY(check_alive());
  written_.insert_or_assign(std::string(key), std::string(value));
  return {};
}

Status MemoryTransaction::erase(std::string_view key) {
  const std::lock_guard lock(store_.mutex_);
  ONCE_TRY(check_alive());
  written_.insert_or_assign(std::string(key), std::nullopt);
  return {};
}

}  // namespace once
