// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "model/ledger.h"
#include "model/message_row.h"
#include "store/postgres/postgres.h"

// Rows that were sent are deleted, and there is no cursor that moves over numbers: a transaction
// that took its number early and commits late is found when it has committed. So none is skipped.

namespace once {

Result<std::vector<std::string>> PostgresStore::destinations() {
  const Lease lease = ONCE_TRY(lend());
  const Answer answer =
      ONCE_TRY(lease->ask("SELECT name FROM once_name AS n WHERE EXISTS "
                          "(SELECT 1 FROM once_outbox WHERE destination = n.number) ORDER BY name",
                          {}));
  std::vector<std::string> names;
  for (int row = 0; row < answer.rows(); ++row) names.emplace_back(answer.text(row, 0));
  return names;
}

Result<std::vector<OutboxRow>> PostgresStore::pending(std::string_view destination,
                                                      std::size_t count_max) {
  const Lease lease = ONCE_TRY(lend());
  const Answer answer = ONCE_TRY(lease->ask(
      "SELECT number, id, key, body, headers, timestamp_ms, partition, sequence FROM once_outbox "
      "WHERE destination = (SELECT number FROM once_name WHERE name = $1) "
      "ORDER BY number LIMIT $2",
      {destination, count_max}));
  std::vector<OutboxRow> found;
  for (int i = 0; i < answer.rows(); ++i) {
    OutboxRow row;
    row.number = answer.number(i, 0);
    row.destination = destination;
    row.message.id = answer.bytes(i, 1);
    row.message.key = answer.bytes(i, 2);
    row.message.body = answer.bytes(i, 3);
    row.message.headers = ONCE_TRY(decode_headers(answer.bytes(i, 4)));
    row.message.timestamp_ms = answer.number(i, 5);
    if (!answer.is_null(i, 7))
      row.route = Route{static_cast<std::uint32_t>(answer.number(i, 6)),
                        static_cast<std::uint64_t>(answer.number(i, 7))};
    found.push_back(std::move(row));
  }
  return found;
}

// Locks the fence, so that it stays what it is until the commit.
Status PostgresStore::check_fence(PgConnection& connection, std::string_view destination,
                                  std::uint64_t fence) {
  const std::int64_t scope = ONCE_TRY(number_of(relay_scope));
  const std::int64_t partition = ONCE_TRY(number_of(destination));
  const Answer answer = ONCE_TRY(connection.ask(
      "SELECT at_offset, fence FROM once_position WHERE scope = $1 AND partition = $2 FOR UPDATE",
      {scope, partition}));
  Position actual;
  if (answer.rows() > 0)
    actual = {answer.number(0, 0), static_cast<std::uint64_t>(answer.number(0, 1))};
  if (fence == 0 || fence != actual.fence)
    return fail(fenced_error(relay_scope, destination, {actual.offset, fence}, actual));
  return {};
}

Status PostgresStore::assign(std::string_view destination, std::uint64_t fence,
                             std::span<const std::int64_t> numbers,
                             std::span<const std::uint32_t> partitions) {
  if (numbers.size() != partitions.size())
    return fail(Remedy::stop, "config", "assign needs one partition for each row");
  const std::int64_t name = ONCE_TRY(number_of(destination));
  const std::vector<std::int64_t> wide(partitions.begin(), partitions.end());
  return write([&](PgConnection& connection) -> Status {
    ONCE_TRY(check_fence(connection, destination, fence));
    Parameters asked{name};
    asked.add_array(numbers);
    const Answer there = ONCE_TRY(connection.ask(
        "SELECT count(*) FROM unnest($2::bigint[]) AS u (number) WHERE EXISTS "
        "(SELECT 1 FROM once_outbox AS o WHERE o.number = u.number AND o.destination = $1)",
        asked));
    if (there.number(0, 0) != static_cast<std::int64_t>(numbers.size()))
      return fail(Remedy::stop, "missing",
                  fmt::format("{}: some of {} rows are not pending in the outbox for \"{}\"",
                              where_, numbers.size(), destination));
    // A route that was given may have been used already: it never changes. New ones are counted on
    // from the last sequence of their partition, in the order in which the rows were given.
    Parameters given{name};
    given.add_array(numbers);
    given.add_array(wide);
    ONCE_TRY(connection.send(
        "WITH u AS (SELECT u.number, u.partition, "
        "row_number() OVER (PARTITION BY u.partition ORDER BY u.place) AS rank "
        "FROM unnest($2::bigint[], $3::bigint[]) WITH ORDINALITY AS u (number, partition, place) "
        "JOIN once_outbox AS o ON o.number = u.number AND o.sequence IS NULL), "
        "r AS (INSERT INTO once_route AS r SELECT $1, partition, count(*) FROM u GROUP BY "
        "partition "
        "ON CONFLICT (destination, partition) "
        "DO UPDATE SET next_sequence = r.next_sequence + excluded.next_sequence "
        "RETURNING partition, next_sequence), "
        "c AS (SELECT partition, count(*) AS count FROM u GROUP BY partition) "
        "UPDATE once_outbox AS o SET partition = u.partition, "
        "sequence = r.next_sequence - c.count + u.rank - 1 "
        "FROM u JOIN r USING (partition) JOIN c USING (partition) WHERE o.number = u.number",
        given));
    return {};
  });
}

Status PostgresStore::sent(std::string_view destination, std::uint64_t fence,
                           std::span<const std::int64_t> numbers) {
  const std::int64_t name = ONCE_TRY(number_of(destination));
  return write([&](PgConnection& connection) -> Status {
    ONCE_TRY(check_fence(connection, destination, fence));
    Parameters parameters{name};
    parameters.add_array(numbers);
    return connection.send(
        "DELETE FROM once_outbox WHERE destination = $1 AND number = ANY ($2::bigint[])",
        parameters);
  });
}

}  // namespace once
