// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "model/compact_id.h"
#include "model/ledger.h"
#include "store/redis/redis.h"
#include "store/redis/script.h"
#include "store/redis/stream.h"

namespace once {

Status RedisStore::force(std::string_view scope, std::string_view id, std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_id(id));
  ONCE_TRY(check_reason(reason));
  RedisCall call = script(books(), redis_scripts::force_id,
                          {books().key("ledger", scope), books().key("operations", scope)});
  call.add(CompactId(id).bytes()).add(id).add(reason);
  const RedisAnswer answer = ONCE_TRY(ask(call, RedisStage::write));
  if (answer.at(0).text() != "ok") return fail(missing_id(scope, id));
  return {};
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

Status RedisStore::correct(std::string_view, const Correction&, std::string_view) {
  return fail(Remedy::stop, "config", "unsupported");
}

Status RedisStore::park(std::string_view, std::uint64_t, std::int64_t, std::string_view) {
  return fail(Remedy::stop, "config", "unsupported");
}

}  // namespace once
