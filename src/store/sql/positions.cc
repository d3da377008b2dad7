// SPDX-License-Identifier: Apache-2.0
#include "store/sql/positions.h"

#include <fmt/format.h>
#include <once/outbox.h>

#include "model/ledger.h"

namespace once {

Position position_in(const SqlAnswer& answer, int row, int column) {
  return {
      answer.number(row, column),
      static_cast<std::uint64_t>(answer.number(row, column + 1)),
      {answer.number(row, column + 2), static_cast<std::uint64_t>(answer.number(row, column + 3))}};
}

Result<SqlPositions::Locked> SqlPositions::lock(SqlSession& session, std::int64_t scope,
                                                std::int64_t partition) const {
  const SqlWords& words = books_.words();
  const std::string select = fmt::format(
      "SELECT {}, source_identity, {} FROM once_position "
      "WHERE scope = ? AND source_partition = ? {}",
      position_columns, words.now_ms, words.lock);
  auto answer = ONCE_TRY(session.ask(select, {scope, partition}));
  if (answer->rows() == 0) {
    ONCE_TRY(
        session.send(fmt::format("{} once_position (scope, source_partition, at_offset, fence) "
                                 "VALUES (?, ?, -1, 0) {}",
                                 words.insert, words.skip_present),
                     {scope, partition}));
    answer = ONCE_TRY(session.ask(select, {scope, partition}));
  }
  const Position position = position_in(*answer, 0);
  return Locked{position, std::string(answer->bytes(0, 4)),
                next_fence(position.fence, answer->number(0, 5) + books_.skew_ms())};
}

Result<Position> SqlPositions::take(std::string_view scope, std::string_view partition,
                                    std::string_view source_identity) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_partition(partition));
  ONCE_TRY(check_source_identity(source_identity));
  return books_.write([&](SqlSession& session) -> Result<Position> {
    const std::int64_t scope_number = ONCE_TRY(books_.number_of(session, scope));
    const std::int64_t partition_number = ONCE_TRY(books_.number_of(session, partition));
    Locked taken = ONCE_TRY(lock(session, scope_number, partition_number));
    if (is_other_source(taken.source_identity, source_identity))
      return fail(other_source_error(scope, partition, taken.position.offset, taken.source_identity,
                                     source_identity));
    taken.position.fence = taken.next_fence;
    ONCE_TRY(
        session.send("UPDATE once_position SET fence = ?, source_identity = ? "
                     "WHERE scope = ? AND source_partition = ?",
                     {taken.position.fence,
                      Blob{source_identity.empty() ? taken.source_identity : source_identity},
                      scope_number, partition_number}));
    ONCE_TRY(books_.log_operation(session, scope_number, "take", partition,
                                  fmt::format("fence {}", taken.position.fence)));
    ONCE_TRY(SqlBooks::trim_operations(session, scope_number));
    return taken.position;
  });
}

// Waits for whoever is moving it: a commit whose answer was lost may still be on its way, and who
// looks it up must not be answered before it has happened or cannot happen any more.
Result<Position> SqlPositions::position(std::string_view scope, std::string_view partition) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_partition(partition));
  return books_.read(
      [&](SqlSession& session) { return read(session, scope, partition, books_.words().share); });
}

Result<Position> SqlPositions::read(SqlSession& session, std::string_view scope,
                                    std::string_view partition, std::string_view how) const {
  const auto answer = ONCE_TRY(session.ask(
      fmt::format("SELECT {} FROM once_position "
                  "WHERE scope = (SELECT number FROM once_name WHERE name = ?) "
                  "AND source_partition = (SELECT number FROM once_name WHERE name = ?) {}",
                  position_columns, how),
      {books_.words().name(scope), books_.words().name(partition)}));
  return answer->rows() == 0 ? Position{} : position_in(*answer, 0);
}

Status SqlPositions::check_fence(SqlSession& session, std::string_view destination,
                                 std::uint64_t fence) const {
  const Position actual = ONCE_TRY(read(session, relay_scope, destination, books_.words().lock));
  if (fence == 0 || fence != actual.fence)
    return fail(books_.fenced(relay_scope, destination, {actual.offset, fence}, actual));
  return {};
}

// --- horizons

Result<SqlHorizons::Stored> SqlHorizons::stored(std::string_view scope) {
  return books_.read([&](SqlSession& session) -> Result<Stored> {
    const auto answer =
        ONCE_TRY(session.ask("SELECT horizon_ms, held FROM once_horizon "
                             "WHERE scope = (SELECT number FROM once_name WHERE name = ?)",
                             {books_.words().name(scope)}));
    if (answer->rows() == 0) return Stored{};
    return Stored{answer->number(0, 0), answer->number(0, 1) != 0};
  });
}

Status SqlHorizons::move(std::string_view scope, std::int64_t horizon_ms) {
  const SqlWords& words = books_.words();
  return books_.write([&](SqlSession& session) -> Status {
    const std::int64_t number = ONCE_TRY(books_.number_of(session, scope));
    ONCE_TRY(books_.lock_horizon(session, number));
    const auto moves = ONCE_TRY(session.ask(
        fmt::format("SELECT 1 FROM once_horizon WHERE scope = ? AND horizon_ms < ? AND held = 0 {}",
                    words.lock),
        {number, horizon_ms}));
    if (moves->rows() == 0) return {};
    ONCE_TRY(session.send("UPDATE once_horizon SET horizon_ms = ? WHERE scope = ?",
                          {horizon_ms, number}));
    // The horizon moves all the time: one line says how far, until something else happens.
    ONCE_TRY(session.send(
        "DELETE FROM once_operation WHERE action = ? AND number = (SELECT newest FROM "
        "(SELECT max(number) AS newest FROM once_operation WHERE scope = ?) AS last_line)",
        {words.name("forget"), number}));
    ONCE_TRY(books_.log_operation(session, number, "forget", fmt::format("{}", horizon_ms),
                                  "the horizon moved"));
    return SqlBooks::trim_operations(session, number);
  });
}

}  // namespace once
