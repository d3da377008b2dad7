// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "model/compact_id.h"
#include "model/ledger.h"
#include "store/redis/redis.h"
#include "store/redis/row.h"
#include "store/redis/script.h"
#include "store/redis/stream.h"

namespace once {

Status RedisStore::force(std::string_view scope, std::string_view id, std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_id(id));
  ONCE_TRY(check_reason(reason));
  const CompactId compact(id);
  while (true) {
    const RedisAnswer row = ONCE_TRY(
        ask(command({"HGET", books().key("ledger", scope), compact.bytes()}), RedisStage::read));
    if (row.is_nil()) return fail(missing_id(scope, id));
    const LedgerRecord was = ONCE_TRY(ledger_record(id, row.text()));
    RedisCall call = script(books(), redis_scripts::force_id,
                            {books().key("ledger", scope), books().key("operations", scope)});
    call.add(compact.bytes()).add(id).add(force_note(was, reason)).add(row.text());
    if (ONCE_TRY(ask(call, RedisStage::write)).at(0).text() == "ok") return {};
  }
}

// The ids of parked messages, which never change while they are parked.
Result<std::vector<std::string>> RedisStore::parked_ids(std::string_view scope,
                                                        std::span<const std::int64_t> numbers) {
  const std::string stream = books().key("parked", scope);
  std::vector<RedisCall> calls;
  for (const std::int64_t number : numbers)
    calls.push_back(row_numbered(books().slot(), stream, number));
  const auto answers = ONCE_TRY(nodes_.ask(calls, RedisStage::read));
  std::vector<std::string> ids;
  std::set<std::int64_t> seen;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const bool again = !seen.insert(numbers[i]).second;
    if (again || answers[i].size() == 0) return fail(missing_parked(scope, numbers[i]));
    ids.push_back(StreamRow(answers[i].at(0)).text("id"));
  }
  return ids;
}

Status RedisStore::replay(std::string_view scope, std::span<const std::int64_t> numbers,
                          std::string_view destination, std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_destination(destination));
  ONCE_TRY(check_reason(reason));
  if (numbers.empty()) return {};
  const std::vector<std::string> ids = ONCE_TRY(parked_ids(scope, numbers));
  RedisCall call = script(
      books(), redis_scripts::replay,
      {books().key("parked", scope), books().key("operations", scope), books().key("ledger", scope),
       books().key("outbox", destination), books().key("destinations")});
  call.add(destination);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    call.add(numbers[i])
        .add(CompactId(ids[i]).bytes())
        .add(ids[i])
        .add(replay_note(numbers[i], destination, reason));
  const RedisAnswer answer = ONCE_TRY(ask(call, RedisStage::write));
  if (answer.at(0).text() != "ok") return fail(missing_parked(scope, answer.at(1).number()));
  return {};
}

Status RedisStore::drop(std::string_view scope, std::span<const std::int64_t> numbers,
                        std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_reason(reason));
  if (numbers.empty()) return {};
  const std::vector<std::string> ids = ONCE_TRY(parked_ids(scope, numbers));
  RedisCall call = script(books(), redis_scripts::drop,
                          {books().key("parked", scope), books().key("operations", scope)});
  for (std::size_t i = 0; i < numbers.size(); ++i)
    call.add(numbers[i]).add(ids[i]).add(drop_note(numbers[i], reason));
  const RedisAnswer answer = ONCE_TRY(ask(call, RedisStage::write));
  if (answer.at(0).text() != "ok") return fail(missing_parked(scope, answer.at(1).number()));
  return {};
}

Status RedisStore::set_position(std::string_view scope, const SetPosition& to,
                                std::string_view reason) {
  RedisCall call = script(
      books(), redis_scripts::set_position,
      {books().key("scopes"), books().key("positions", scope), books().key("operations", scope)});
  call.add(scope).add(to.partition).add(to.offset);
  call.add(action_of(to)).add(subject_of(to, scope)).add(reason);
  ONCE_TRY(ask(call, RedisStage::write));
  return {};
}

Status RedisStore::restart_destination(std::string_view scope, const std::string& destination,
                                       const Correction& correction, std::string_view reason) {
  RedisCall call =
      script(books(), redis_scripts::restart_destination,
             {books().key("scopes"), books().key("positions", relay_scope),
              books().key("operations", scope), books().key("routes", destination),
              books().key("sequences", destination), books().key("outbox", destination)});
  call.add(scope).add(relay_scope).add(destination);
  call.add(action_of(correction)).add(subject_of(correction, scope)).add(reason);
  call.add(std::holds_alternative<DropPending>(correction) ? "drop" : "keep");
  call.add(drop_pending_note(destination, reason)).add(dropped_ids_max);
  ONCE_TRY(ask(call, RedisStage::write));
  return {};
}

// The books last, in one step with the line about it: what fails half-way can be repeated.
Status RedisStore::drop_scope(std::string_view scope, std::string_view reason) {
  if (keys_.shards().size() > 1)
    for (const RedisPlace& shard : keys_.shards()) {
      RedisCall call = script(shard, redis_scripts::drop_scope,
                              {shard.key("scopes"), shard.key("claims", scope),
                               shard.key("horizon", scope), shard.key("held", scope)});
      ONCE_TRY(ask(call.add(scope), RedisStage::write));
    }
  RedisCall call = script(
      books(), redis_scripts::drop_scope,
      {books().key("scopes"), books().key("operations", store_scope),
       books().key("positions", scope), books().key("ledger", scope), books().key("horizon", scope),
       books().key("held", scope), books().key("parked", scope), books().key("claims", scope),
       books().key("operations", scope), books().key("deferred", scope), books().key("due", scope),
       books().key("order", scope), books().key("deferrals", scope)});
  call.add(scope).add(store_scope).add(action_of(DropScope{})).add(reason);
  ONCE_TRY(ask(call, RedisStage::write));
  return {};
}

Status RedisStore::correct(std::string_view scope, const Correction& correction,
                           std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_reason(reason));
  ONCE_TRY(check_correction(correction));
  if (const auto* to = std::get_if<SetPosition>(&correction))
    return set_position(scope, *to, reason);
  if (const auto* horizon = std::get_if<SetHorizon>(&correction))
    return write_horizon(scope, horizon->horizon_ms, redis_scripts::set_horizon,
                         {action_of(correction), subject_of(correction, scope), reason});
  if (std::holds_alternative<ReleaseHorizon>(correction))
    return write_horizon(scope, 0, redis_scripts::release_horizon,
                         {action_of(correction), subject_of(correction, scope), reason});
  if (const auto* restart = std::get_if<RestartDestination>(&correction))
    return restart_destination(scope, restart->destination, correction, reason);
  if (const auto* pending = std::get_if<DropPending>(&correction))
    return restart_destination(scope, pending->destination, correction, reason);
  return drop_scope(scope, reason);
}

}  // namespace once
