// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>

#include "model/ledger.h"
#include "model/message_row.h"
#include "model/route.h"
#include "store/sql/server_store.h"

// Rows that were sent are deleted, and there is no cursor that moves over numbers: a transaction
// that took its number early and commits late is found when it has committed. So none is skipped.
// Such a row has a smaller number and a larger sequence than rows that were sent before it: what
// may have been sent is told by the sequence alone, and comes first. Both orders are one index.

namespace once {

Result<std::vector<std::string>> ServerStore::destinations() {
  const Lease lease = ONCE_TRY(lend());
  const auto answer = ONCE_TRY(
      lease->ask("SELECT name FROM once_name WHERE EXISTS "
                 "(SELECT 1 FROM once_outbox WHERE destination = once_name.number) ORDER BY name"));
  std::vector<std::string> names;
  for (int row = 0; row < answer->rows(); ++row) names.push_back(answer->bytes(row, 0));
  return names;
}

Result<std::vector<OutboxRow>> ServerStore::pending(std::string_view destination,
                                                    std::size_t count_max) {
  const Lease lease = ONCE_TRY(lend());
  const auto answer = ONCE_TRY(lease->ask(
      fmt::format("SELECT number, id, message_key, body, headers, timestamp_ms, target_partition, "
                  "target_sequence FROM once_outbox "
                  "WHERE destination = (SELECT number FROM once_name WHERE name = ?) "
                  "ORDER BY {}, number LIMIT ?",
                  words_.send_order),
      {Blob{destination}, count_max}));
  std::vector<OutboxRow> found;
  for (int i = 0; i < answer->rows(); ++i) {
    OutboxRow row;
    row.number = answer->number(i, 0);
    row.destination = destination;
    row.message.id = answer->bytes(i, 1);
    row.message.key = answer->bytes(i, 2);
    row.message.body = answer->bytes(i, 3);
    ONCE_TRY(decode_headers(answer->bytes(i, 4), row.message));
    row.message.timestamp_ms = answer->number(i, 5);
    if (!answer->is_null(i, 7))
      row.route = Route{static_cast<std::uint32_t>(answer->number(i, 6)),
                        static_cast<std::uint64_t>(answer->number(i, 7))};
    found.push_back(std::move(row));
  }
  return found;
}

// Locks the fence, so that it stays what it is until the commit.
Status ServerStore::check_fence(SqlConnection& connection, std::string_view destination,
                                std::uint64_t fence) {
  const std::int64_t scope = ONCE_TRY(number_of(relay_scope));
  const std::int64_t partition = ONCE_TRY(number_of(destination));
  const auto answer = ONCE_TRY(connection.ask(
      fmt::format("SELECT {} FROM once_position WHERE scope = ? AND source_partition = ? "
                  "FOR UPDATE",
                  position_columns),
      {scope, partition}));
  const Position actual = answer->rows() == 0 ? Position{} : position_in(*answer, 0);
  if (fence == 0 || fence != actual.fence)
    return fail(fenced(relay_scope, destination, {actual.offset, fence}, actual));
  return {};
}

Status ServerStore::assign(std::string_view destination, std::uint64_t fence,
                           std::span<const std::int64_t> numbers,
                           std::span<const std::uint32_t> partitions,
                           std::span<const std::uint64_t> sequences) {
  ONCE_TRY(check_assign(numbers, partitions, sequences));
  return write([&](SqlConnection& connection) -> Status {
    ONCE_TRY(check_fence(connection, destination, fence));
    return assign_rows(connection, destination, numbers, partitions, sequences);
  });
}

// Under the relay's fence, which no other relay has. A route that was given may have been used
// already: it never changes. New ones are counted on from the last sequence of their partition.
Status ServerStore::assign_rows(SqlConnection& connection, std::string_view name,
                                std::span<const std::int64_t> numbers,
                                std::span<const std::uint32_t> partitions,
                                std::span<const std::uint64_t> sequences) {
  const std::int64_t destination = ONCE_TRY(number_of(name));
  std::vector<std::size_t> open;  // rows without a route
  std::size_t found = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto look = [&, i](Result<std::unique_ptr<SqlAnswer>> answer) -> Status {
      if (!answer) return fail(std::move(answer).error());
      found += static_cast<std::size_t>((*answer)->rows());
      if ((*answer)->rows() == 1 && (*answer)->is_null(0, 0)) open.push_back(i);
      return {};
    };
    ONCE_TRY(connection.send(
        "SELECT target_sequence FROM once_outbox WHERE number = ? AND destination = ?",
        {numbers[i], destination}, look));
  }
  std::map<std::uint32_t, std::int64_t> next;
  for (const std::uint32_t partition : partitions) next[partition] = 0;
  for (auto& [partition, sequence] : next) {
    ONCE_TRY(connection.send(
        fmt::format("{} once_route VALUES (?, ?, 0) {}", words_.insert, words_.skip_present),
        {destination, partition}));
    const auto answer = ONCE_TRY(connection.ask(
        "SELECT next_sequence FROM once_route WHERE destination = ? AND target_partition = ?",
        {destination, partition}));
    sequence = answer->number(0, 0);
  }
  ONCE_TRY(connection.sync());
  if (found != numbers.size())
    return fail(Remedy::stop, "missing",
                fmt::format("{}: {} of {} rows are not pending in the outbox", where_,
                            numbers.size() - found, numbers.size()));
  for (const std::size_t i : open) {
    std::int64_t& sequence = next[partitions[i]];
    ONCE_TRY(check_sequence(name, partitions[i], sequence, sequences, i));
    ONCE_TRY(connection.send(
        "UPDATE once_outbox SET target_partition = ?, target_sequence = ? WHERE number = ?",
        {partitions[i], sequence++, numbers[i]}));
  }
  for (const auto& [partition, sequence] : next)
    ONCE_TRY(connection.send(
        "UPDATE once_route SET next_sequence = ? WHERE destination = ? AND target_partition = ?",
        {sequence, destination, partition}));
  return {};
}

Status ServerStore::sent(std::string_view destination, std::uint64_t fence,
                         std::span<const std::int64_t> numbers) {
  const std::int64_t name = ONCE_TRY(number_of(destination));
  return write([&](SqlConnection& connection) -> Status {
    ONCE_TRY(check_fence(connection, destination, fence));
    for (const std::int64_t number : numbers)
      ONCE_TRY(
          connection.send("DELETE FROM once_outbox WHERE number = ? AND destination = ? "
                          "AND target_sequence IS NOT NULL",
                          {number, name}));
    return {};
  });
}

Status ServerStore::park(std::string_view destination, std::uint64_t fence, std::int64_t number,
                         std::string_view reason) {
  const std::int64_t name = ONCE_TRY(number_of(destination));
  const std::int64_t scope = ONCE_TRY(number_of(outbox_scope));
  return write([&](SqlConnection& connection) -> Status {
    ONCE_TRY(check_fence(connection, destination, fence));
    const auto poison =
        ONCE_TRY(connection.ask("SELECT id, target_partition, target_sequence FROM once_outbox "
                                "WHERE number = ? AND destination = ? FOR UPDATE",
                                {number, name}));
    if (poison->rows() == 0) return {};  // an earlier call, whose answer was lost
    if (!poison->is_null(0, 2))
      ONCE_TRY(free_sequences(connection, name, poison->number(0, 1), poison->number(0, 2)));
    ONCE_TRY(connection.send(
        fmt::format("INSERT INTO once_parked (scope, source_partition, at_offset, attempts, "
                    "parked_ms, reason, id, message_key, body, headers, timestamp_ms) "
                    "SELECT ?, ?, number, 1, {}, ?, id, message_key, body, headers, timestamp_ms "
                    "FROM once_outbox WHERE number = ?",
                    words_.now_ms),
        {scope, Blob{destination}, Blob{reason}, number}));
    ONCE_TRY(connection.send("DELETE FROM once_outbox WHERE number = ?", {number}));
    return log_operation(connection, scope, "park", poison->bytes(0, 0), reason);
  });
}

// From `first` on the sequences of a route are given anew.
Status ServerStore::free_sequences(SqlConnection& connection, std::int64_t destination,
                                   std::int64_t partition, std::int64_t first) {
  ONCE_TRY(connection.send(
      fmt::format("UPDATE once_outbox SET target_partition = NULL, target_sequence = NULL "
                  "WHERE destination = ? AND {} BETWEEN ? AND ? AND target_partition = ?",
                  words_.send_order),
      {destination, first, sequence_max, partition}));
  return connection.send(
      "UPDATE once_route SET next_sequence = ? WHERE destination = ? AND target_partition = ?",
      {first, destination, partition});
}

}  // namespace once
