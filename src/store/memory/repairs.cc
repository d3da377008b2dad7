// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "model/ledger.h"
#include "store/memory/memory.h"

namespace once {
namespace {

auto find_number(std::vector<ParkedRecord>& parked, std::int64_t number) {
  return std::find_if(parked.begin(), parked.end(),
                      [&](const ParkedRecord& record) { return record.number == number; });
}

// All of them or none: what cannot be found, or is asked for twice, is noticed before anything is
// changed.
Status check_numbers(std::string_view scope, std::vector<ParkedRecord>* parked,
                     std::span<const std::int64_t> numbers) {
  std::set<std::int64_t> seen;
  for (const std::int64_t number : numbers) {
    const bool there = parked != nullptr && find_number(*parked, number) != parked->end();
    if (!there || !seen.insert(number).second) return fail(missing_parked(scope, number));
  }
  return {};
}

}  // namespace

std::vector<ParkedRecord>* MemoryStore::find_parked(std::string_view scope) {
  const auto found = state_.scopes.find(scope);
  return found == state_.scopes.end() ? nullptr : &found->second.parked;
}

bool MemoryStore::free_id(std::string_view scope, std::string_view id, bool parked_only) {
  const auto books = state_.scopes.find(scope);
  if (books == state_.scopes.end()) return false;
  const auto row = books->second.ledger.find(id);
  if (row == books->second.ledger.end()) return false;
  if (parked_only && row->second.outcome.kind != Outcome::Kind::parked) return false;
  books->second.by_birth.erase({row->second.born_ms, row->first});
  books->second.ledger.erase(row);
  return true;
}

Status MemoryStore::force(std::string_view scope, std::string_view id, std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_id(id));
  ONCE_TRY(check_reason(reason));
  const std::lock_guard lock(mutex_);
  const MemoryState::Scope* books = find_scope(scope);
  if (books == nullptr) return fail(missing_id(scope, id));
  const auto row = books->ledger.find(id);
  if (row == books->ledger.end()) return fail(missing_id(scope, id));
  (void)ONCE_TRY(write([&] {
    log_operation(scope, "force", id, force_note(row->second.record(id), reason));
    return free_id(scope, id, false);
  }));
  return {};
}

Status MemoryStore::replay(std::string_view scope, std::span<const std::int64_t> numbers,
                           std::string_view destination, std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_destination(destination));
  ONCE_TRY(check_reason(reason));
  const std::lock_guard lock(mutex_);
  std::vector<ParkedRecord>* parked = find_parked(scope);
  ONCE_TRY(check_numbers(scope, parked, numbers));
  const auto repair = [&](std::int64_t number) {
    const auto at = find_number(*parked, number);
    Message message = std::move(at->message);
    parked->erase(at);
    // Only what is parked is freed: an id that has had its effect stays in the ledger.
    free_id(scope, message.id, true);
    log_operation(scope, "replay", message.id, replay_note(number, destination, reason));
    const std::int64_t row = ++state_.last_outbox_number;
    state_.outbox[std::string(destination)].emplace(
        row, OutboxRow{row, std::string(destination), std::move(message), std::nullopt});
  };
  (void)ONCE_TRY(write([&] {
    for (const std::int64_t number : numbers) repair(number);
    return true;
  }));
  return {};
}

Status MemoryStore::drop(std::string_view scope, std::span<const std::int64_t> numbers,
                         std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_reason(reason));
  const std::lock_guard lock(mutex_);
  std::vector<ParkedRecord>* parked = find_parked(scope);
  ONCE_TRY(check_numbers(scope, parked, numbers));
  const auto repair = [&](std::int64_t number) {
    const auto at = find_number(*parked, number);
    log_operation(scope, "drop", at->message.id, drop_note(number, reason));
    parked->erase(at);
  };
  (void)ONCE_TRY(write([&] {
    for (const std::int64_t number : numbers) repair(number);
    return true;
  }));
  return {};
}

void MemoryStore::restart_destination(const std::string& destination) {
  for (auto& [number, row] : state_.outbox[destination]) row.route.reset();
  std::erase_if(state_.next_sequence,
                [&](const auto& next) { return next.first.first == destination; });
  Position& relay = partition_at(relay_scope, destination).position;
  ++relay.offset;
  relay.fence = next_fence(relay.fence, clock_.now_ms());
}

Status MemoryStore::correct(std::string_view scope, const Correction& correction,
                            std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_reason(reason));
  ONCE_TRY(check_correction(correction));
  const std::lock_guard lock(mutex_);
  (void)ONCE_TRY(write([&] {
    if (const auto* to = std::get_if<SetPosition>(&correction)) {
      PartitionRecord& set = partition_at(scope, to->partition);
      const std::uint64_t fence = next_fence(set.position.fence, clock_.now_ms());
      set = {.partition = to->partition, .position = {to->offset, fence, {}}};
    } else if (const auto* horizon = std::get_if<SetHorizon>(&correction)) {
      scope_at(scope).horizon_ms = horizon->horizon_ms;
      scope_at(scope).horizon_held = true;
    } else if (std::holds_alternative<ReleaseHorizon>(correction)) {
      scope_at(scope).horizon_held = false;
    } else if (const auto* restart = std::get_if<RestartDestination>(&correction)) {
      restart_destination(restart->destination);
    } else if (const auto* pending = std::get_if<DropPending>(&correction)) {
      std::int64_t told = 0;
      for (const auto& [number, row] : state_.outbox[pending->destination])
        if (told++ < dropped_ids_max)
          log_operation(scope, "drop", row.message.id,
                        drop_pending_note(pending->destination, reason));
      state_.outbox.erase(pending->destination);
      restart_destination(pending->destination);
    } else {
      state_.scopes.erase(std::string(scope));
    }
    log_operation(log_scope_of(correction, scope), action_of(correction),
                  subject_of(correction, scope), reason);
    return true;
  }));
  return {};
}

}  // namespace once
