// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "model/ledger.h"
#include "model/message_row.h"
#include "model/route.h"
#include "store/sqlite/sqlite.h"

namespace once {

// Rows take their numbers while their transaction holds the only turn at writing, so that numbers
// and commits have the same order. Sequences need not have it: a row that was replayed or lost its
// route gets a later one.

Result<std::vector<std::string>> SqliteStore::destinations() {
  return read([&](Connection& reader) -> Result<std::vector<std::string>> {
    std::vector<std::string> names;
    const Rows rows =
        ONCE_TRY(reader.query("SELECT name FROM once_name WHERE number IN "
                              "(SELECT DISTINCT destination FROM once_outbox) ORDER BY name"));
    for (const Row& row : rows) names.push_back(std::get<std::string>(row[0]));
    return names;
  });
}

Result<std::vector<OutboxRow>> SqliteStore::pending(std::string_view destination,
                                                    std::size_t count_max) {
  return read([&](Connection& reader) -> Result<std::vector<OutboxRow>> {
    std::vector<OutboxRow> found;
    Statement statement = ONCE_TRY(reader.prepare(
        "SELECT number, id, key, body, headers, timestamp_ms, partition, sequence FROM once_outbox "
        "WHERE destination = (SELECT number FROM once_name WHERE name = ?) "
        "ORDER BY sequence NULLS LAST, number LIMIT ?"));
    statement.bind_text(1, destination);
    statement.bind(2, static_cast<std::int64_t>(count_max));
    int code = statement.step();
    for (; code == SQLITE_ROW; code = statement.step()) {
      OutboxRow row;
      row.number = statement.number(0);
      row.destination = destination;
      row.message.id = statement.bytes(1);
      row.message.key = statement.bytes(2);
      row.message.body = statement.bytes(3);
      ONCE_TRY(decode_headers(statement.bytes(4), row.message));
      row.message.timestamp_ms = statement.number(5);
      if (!statement.is_null(7))
        row.route = Route{static_cast<std::uint32_t>(statement.number(6)),
                          static_cast<std::uint64_t>(statement.number(7))};
      found.push_back(std::move(row));
    }
    if (code != SQLITE_DONE) return fail(reader.error(code, "read the outbox"));
    return found;
  });
}

Status SqliteStore::check_fence(Connection& writer, std::string_view destination,
                                std::uint64_t fence) {
  const Position actual = ONCE_TRY(position_of(writer, relay_scope, destination));
  if (fence == 0 || fence != actual.fence)
    return fail(fenced_error(relay_scope, destination, {actual.offset, fence}, actual));
  return {};
}

Status SqliteStore::assign(std::string_view destination, std::uint64_t fence,
                           std::span<const std::int64_t> numbers,
                           std::span<const std::uint32_t> partitions,
                           std::span<const std::uint64_t> sequences) {
  ONCE_TRY(check_assign(numbers, partitions, sequences));
  return write([&](Connection& writer) -> Status {
    ONCE_TRY(check_fence(writer, destination, fence));
    const std::int64_t name = ONCE_TRY(names_.number_of(writer, destination));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const Rows row = ONCE_TRY(
          writer.query("SELECT sequence FROM once_outbox WHERE number = ? AND destination = ?",
                       {numbers[i], name}));
      if (row.empty())
        return fail(Remedy::stop, "missing",
                    fmt::format("{}: row {} is not pending in the outbox for \"{}\"", traits().name,
                                numbers[i], destination));
      // A route that was given may have been used already: it never changes.
      if (!std::holds_alternative<std::nullptr_t>(row[0][0])) continue;
      const Rows next = ONCE_TRY(
          writer.query("INSERT INTO once_route (destination, partition, next_sequence) "
                       "VALUES (?, ?, 1) ON CONFLICT (destination, partition) "
                       "DO UPDATE SET next_sequence = next_sequence + 1 RETURNING next_sequence",
                       {name, partitions[i]}));
      const std::int64_t sequence = std::get<std::int64_t>(next.at(0).at(0)) - 1;
      ONCE_TRY(check_sequence(destination, partitions[i], sequence, sequences, i));
      ONCE_TRY(writer.run("UPDATE once_outbox SET partition = ?, sequence = ? WHERE number = ?",
                          {partitions[i], sequence, numbers[i]}));
    }
    return {};
  });
}

Status SqliteStore::sent(std::string_view destination, std::uint64_t fence,
                         std::span<const std::int64_t> numbers) {
  return write([&](Connection& writer) -> Status {
    ONCE_TRY(check_fence(writer, destination, fence));
    const std::int64_t name = ONCE_TRY(names_.number_of(writer, destination));
    for (const std::int64_t number : numbers)
      ONCE_TRY(
          writer.run("DELETE FROM once_outbox WHERE number = ? AND destination = ? "
                     "AND sequence IS NOT NULL",
                     {number, name}));
    return {};
  });
}

Status SqliteStore::park(std::string_view destination, std::uint64_t fence, std::int64_t number,
                         std::string_view reason) {
  return write([&](Connection& writer) -> Status {
    ONCE_TRY(check_fence(writer, destination, fence));
    const std::int64_t name = ONCE_TRY(names_.number_of(writer, destination));
    const std::int64_t scope = ONCE_TRY(names_.number_of(writer, outbox_scope));
    const Rows poison = ONCE_TRY(writer.query(
        "SELECT id, partition, sequence FROM once_outbox WHERE number = ? AND destination = ?",
        {number, name}));
    if (poison.empty()) return {};  // an earlier call, whose answer was lost
    if (const auto* sequence = std::get_if<std::int64_t>(&poison[0].at(2)))
      ONCE_TRY(free_sequences(writer, name, std::get<std::int64_t>(poison[0].at(1)), *sequence));
    ONCE_TRY(writer.run(
        "INSERT INTO once_parked (scope, partition, offset, attempts, parked_ms, reason, id, key, "
        "body, headers, timestamp_ms) "
        "SELECT ?, ?, number, 1, ?, ?, id, key, body, headers, timestamp_ms "
        "FROM once_outbox WHERE number = ?",
        {scope, destination, clock_.now_ms(), reason, number}));
    ONCE_TRY(writer.run("DELETE FROM once_outbox WHERE number = ?", {number}));
    return log_operation(scope, "park", std::get<std::string>(poison[0].at(0)), reason);
  });
}

// From `first` on the sequences of a route are given anew.
Status SqliteStore::free_sequences(Connection& writer, std::int64_t destination,
                                   std::int64_t partition, std::int64_t first) {
  ONCE_TRY(
      writer.run("UPDATE once_outbox SET partition = NULL, sequence = NULL "
                 "WHERE destination = ?1 AND partition = ?2 AND sequence >= ?3",
                 {destination, partition, first}));
  return writer.run(
      "UPDATE once_route SET next_sequence = ? WHERE destination = ? AND partition = ?",
      {first, destination, partition});
}

}  // namespace once
