// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "model/compact_id.h"
#include "store/redis/position.h"
#include "store/redis/redis.h"
#include "store/redis/row.h"
#include "store/redis/script.h"
#include "store/redis/stream.h"

namespace once {

Result<std::vector<std::string>> RedisStore::scopes() {
  std::vector<RedisCall> calls{command({"SMEMBERS", books().key("scopes")})};
  for (const RedisPlace& shard : keys_.shards())
    calls.push_back({shard.slot(), {"SMEMBERS", shard.key("scopes")}});
  const auto answers = ONCE_TRY(nodes_.ask(calls, RedisStage::read));
  std::set<std::string> names;
  for (const RedisAnswer& answer : answers)
    for (std::size_t i = 0; i < answer.size(); ++i) names.emplace(answer.at(i).text());
  return std::vector<std::string>(names.begin(), names.end());
}

// A hash has no order: a page is chosen from all rows, by one pass over them. Whoever asks for one
// record only wants to know about that id, and is answered at once.
Result<std::vector<LedgerRecord>> RedisStore::ledger(std::string_view scope,
                                                     std::string_view from_id,
                                                     std::size_t count_max) {
  const std::string key = books().key("ledger", scope);
  std::vector<LedgerRecord> records;
  if (count_max == 1 && !from_id.empty()) {
    const RedisAnswer row =
        ONCE_TRY(ask(command({"HGET", key, CompactId(from_id).bytes()}), RedisStage::read));
    if (!row.is_nil()) records.push_back(ONCE_TRY(ledger_record(from_id, row.text())));
    return records;
  }
  std::map<std::string, std::string> first;
  ONCE_TRY(scan(books(), key, [&](std::string_view compact, std::string_view row) -> Status {
    std::string id = expand_id(compact);
    if (id < from_id ||
        (first.size() == count_max && (first.empty() || id > first.rbegin()->first)))
      return {};
    first.insert_or_assign(std::move(id), std::string(row));
    if (first.size() > count_max) first.erase(std::prev(first.end()));
    return {};
  }));
  for (const auto& [id, row] : first) records.push_back(ONCE_TRY(ledger_record(id, row)));
  return records;
}

Result<std::vector<ParkedRecord>> RedisStore::parked(std::string_view scope,
                                                     std::int64_t after_number,
                                                     std::size_t count_max) {
  const RedisAnswer rows = ONCE_TRY(
      ask(rows_after(books().slot(), books().key("parked", scope), after_number, count_max),
          RedisStage::read));
  std::vector<ParkedRecord> records;
  for (std::size_t i = 0; i < rows.size() && records.size() < count_max; ++i) {
    const StreamRow row(rows.at(i));
    Message message = ONCE_TRY(row.message());
    records.push_back({row.number(), row.text("partition"), row.integer("offset"),
                       static_cast<std::uint32_t>(row.integer("attempts")), row.integer("at"),
                       row.text("reason"), std::move(message)});
  }
  return records;
}

Result<std::vector<OperationRecord>> RedisStore::operations(std::string_view scope,
                                                            std::int64_t after_number,
                                                            std::size_t count_max) {
  const RedisAnswer rows = ONCE_TRY(
      ask(rows_after(books().slot(), books().key("operations", scope), after_number, count_max),
          RedisStage::read));
  std::vector<OperationRecord> records;
  for (std::size_t i = 0; i < rows.size() && records.size() < count_max; ++i) {
    const StreamRow row(rows.at(i));
    records.push_back({row.number(), row.integer("at"), row.text("action"), row.text("subject"),
                       row.text("reason")});
  }
  return records;
}

Result<ScopeRecord> RedisStore::describe(std::string_view scope) {
  const RedisAnswer answer =
      ONCE_TRY(ask(script(books(), redis_scripts::describe_scope,
                          {books().key("horizon", scope), books().key("positions", scope),
                           books().key("held", scope)}),
                   RedisStage::read));
  ScopeRecord record{
      number_in_eight(answer.at(1).text()), answer.at(0).number(), {}, answer.at(3).number() != 0};
  const RedisAnswer positions = answer.at(2);
  for (std::size_t i = 0; i + 1 < positions.size(); i += 2)
    record.partitions.push_back(partition_in(positions.at(i).text(), positions.at(i + 1).text()));
  std::sort(record.partitions.begin(), record.partitions.end(),
            [](const auto& a, const auto& b) { return a.partition < b.partition; });
  return record;
}

Result<RedisStore::StoredHorizon> RedisStore::stored_horizon(std::string_view scope) {
  const RedisAnswer stored =
      ONCE_TRY(ask(command({"MGET", books().key("horizon", scope), books().key("held", scope)}),
                   RedisStage::read));
  return StoredHorizon{number_in_eight(stored.at(0).text()), !stored.at(1).is_nil()};
}

}  // namespace once
