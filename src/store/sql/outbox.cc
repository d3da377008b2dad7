// SPDX-License-Identifier: Apache-2.0
#include "store/sql/outbox.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "model/ledger.h"
#include "model/message_row.h"
#include "model/route.h"

// Rows that were sent are deleted, and there is no cursor that moves over numbers: a transaction
// that took its number early and commits late is found when it has committed. So none is skipped.
// Such a row has a smaller number and a larger sequence than rows that were sent before it: what
// may have been sent is told by the sequence alone, and comes first. Both orders are one index.

namespace once {

Result<std::vector<std::string>> SqlOutbox::destinations() {
  const auto answer = ONCE_TRY(
      books_.ask("SELECT name FROM once_name WHERE EXISTS "
                 "(SELECT 1 FROM once_outbox WHERE destination = once_name.number) ORDER BY name"));
  std::vector<std::string> names;
  for (int row = 0; row < answer->rows(); ++row) names.push_back(answer->bytes(row, 0));
  return names;
}

Result<std::vector<OutboxRow>> SqlOutbox::pending(std::string_view destination,
                                                  std::size_t count_max) {
  const auto answer = ONCE_TRY(books_.ask(
      fmt::format("SELECT number, id, message_key, body, headers, timestamp_ms, target_partition, "
                  "target_sequence FROM once_outbox "
                  "WHERE destination = (SELECT number FROM once_name WHERE name = ?) "
                  "ORDER BY {} {}, number LIMIT ?",
                  books_.words().send_order, books_.words().nulls_last),
      {books_.words().name(destination), count_max}));
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

Status SqlOutbox::assign(std::string_view destination, std::uint64_t fence,
                         std::span<const std::int64_t> numbers,
                         std::span<const std::uint32_t> partitions,
                         std::span<const std::uint64_t> sequences) {
  ONCE_TRY(check_assign(numbers, partitions, sequences));
  return books_.write([&](SqlSession& session) -> Status {
    ONCE_TRY(positions_.check_fence(session, destination, fence));
    return assign_rows(session, destination, numbers, partitions, sequences);
  });
}

// Under the relay's fence, which no other relay has. A route that was given may have been used
// already: it never changes. New ones are counted on from the last sequence of their partition.
Status SqlOutbox::assign_rows(SqlSession& session, std::string_view name,
                              std::span<const std::int64_t> numbers,
                              std::span<const std::uint32_t> partitions,
                              std::span<const std::uint64_t> sequences) {
  const std::int64_t destination = ONCE_TRY(books_.number_of(session, name));
  const std::vector<bool> is_open = ONCE_TRY(rows_without_route(session, destination, numbers));
  std::map<std::uint32_t, std::int64_t> next =
      ONCE_TRY(next_sequences(session, destination, partitions));
  // Rows with consecutive numbers that go to one partition get consecutive sequences at once.
  for (std::size_t begin = 0, end = 0; begin < numbers.size(); begin = end) {
    end = begin + 1;
    if (!is_open[begin]) continue;
    while (end < numbers.size() && is_open[end] && partitions[end] == partitions[begin] &&
           numbers[end] == numbers[end - 1] + 1)
      ++end;
    std::int64_t& sequence = next[partitions[begin]];
    for (std::size_t i = begin; i < end; ++i)
      ONCE_TRY(check_sequence(name, partitions[i], sequence + static_cast<std::int64_t>(i - begin),
                              sequences, i));
    const auto count = static_cast<std::int64_t>(end - begin);
    if (count == 1)
      ONCE_TRY(session.send(
          "UPDATE once_outbox SET target_partition = ?, target_sequence = ? WHERE number = ?",
          {partitions[begin], sequence, numbers[begin]}));
    else
      ONCE_TRY(
          session.send("UPDATE once_outbox SET target_partition = ?, target_sequence = number + ? "
                       "WHERE number BETWEEN ? AND ? AND destination = ?",
                       {partitions[begin], sequence - numbers[begin], numbers[begin],
                        numbers[end - 1], destination}));
    sequence += count;
  }
  for (const auto& [partition, sequence] : next)
    ONCE_TRY(session.send(
        "UPDATE once_route SET next_sequence = ? WHERE destination = ? AND target_partition = ?",
        {sequence, destination, partition}));
  return {};
}

// Whether each of them has no route yet. All have to be there.
Result<std::vector<bool>> SqlOutbox::rows_without_route(
    SqlSession& session, std::int64_t destination, std::span<const std::int64_t> numbers) const {
  std::vector<bool> is_open(numbers.size());
  if (numbers.empty()) return is_open;
  const auto [first, last] = std::minmax_element(numbers.begin(), numbers.end());
  const auto answer =
      ONCE_TRY(session.ask("SELECT number, target_sequence FROM once_outbox "
                           "WHERE destination = ? AND number BETWEEN ? AND ?",
                           {destination, *first, *last}));
  std::unordered_map<std::int64_t, bool> rows;
  for (int row = 0; row < answer->rows(); ++row)
    rows.emplace(answer->number(row, 0), answer->is_null(row, 1));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto found = rows.find(numbers[i]);
    if (found == rows.end())
      return fail(
          Remedy::stop, "missing",
          fmt::format("{}: row {} is not pending in the outbox", books_.where(), numbers[i]));
    is_open[i] = found->second;
  }
  return is_open;
}

Result<std::map<std::uint32_t, std::int64_t>> SqlOutbox::next_sequences(
    SqlSession& session, std::int64_t destination,
    std::span<const std::uint32_t> partitions) const {
  std::map<std::uint32_t, std::int64_t> next;
  for (const std::uint32_t partition : partitions) next[partition] = 0;
  for (auto& [partition, sequence] : next) {
    ONCE_TRY(session.send(fmt::format("{} once_route VALUES (?, ?, 0) {}", books_.words().insert,
                                      books_.words().skip_present),
                          {destination, partition}));
    const auto look = [&sequence = sequence](Result<std::unique_ptr<SqlAnswer>> answer) -> Status {
      if (!answer) return fail(std::move(answer).error());
      sequence = (*answer)->number(0, 0);
      return {};
    };
    ONCE_TRY(session.send(
        "SELECT next_sequence FROM once_route WHERE destination = ? AND target_partition = ?",
        {destination, partition}, look));
  }
  ONCE_TRY(session.sync());
  return next;
}

Status SqlOutbox::sent(std::string_view destination, std::uint64_t fence,
                       std::span<const std::int64_t> numbers) {
  std::vector<std::int64_t> sorted(numbers.begin(), numbers.end());
  std::sort(sorted.begin(), sorted.end());
  return books_.write([&](SqlSession& session) -> Status {
    const std::int64_t name = ONCE_TRY(books_.number_of(session, destination));
    ONCE_TRY(positions_.check_fence(session, destination, fence));
    for (std::size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
      for (end = begin + 1; end < sorted.size() && sorted[end] <= sorted[end - 1] + 1;) ++end;
      ONCE_TRY(
          session.send("DELETE FROM once_outbox WHERE number BETWEEN ? AND ? AND destination = ? "
                       "AND target_sequence IS NOT NULL",
                       {sorted[begin], sorted[end - 1], name}));
    }
    return {};
  });
}

Status SqlOutbox::park(std::string_view destination, std::uint64_t fence, std::int64_t number,
                       std::string_view reason) {
  const SqlWords& words = books_.words();
  return books_.write([&](SqlSession& session) -> Status {
    const std::int64_t name = ONCE_TRY(books_.number_of(session, destination));
    const std::int64_t scope = ONCE_TRY(books_.number_of(session, outbox_scope));
    ONCE_TRY(positions_.check_fence(session, destination, fence));
    const auto poison = ONCE_TRY(
        session.ask(fmt::format("SELECT id, target_partition, target_sequence FROM once_outbox "
                                "WHERE number = ? AND destination = ? {}",
                                words.lock),
                    {number, name}));
    if (poison->rows() == 0) return {};  // an earlier call, whose answer was lost
    if (!poison->is_null(0, 2))
      ONCE_TRY(free_sequences(session, name, poison->number(0, 1), poison->number(0, 2)));
    ONCE_TRY(session.send(
        fmt::format("INSERT INTO once_parked (scope, source_partition, at_offset, attempts, "
                    "parked_ms, reason, id, message_key, body, headers, timestamp_ms) "
                    "SELECT ?, ?, number, 1, {}, ?, id, message_key, body, headers, timestamp_ms "
                    "FROM once_outbox WHERE number = ?",
                    words.now_ms),
        {scope, words.name(destination), words.name(reason), number}));
    ONCE_TRY(session.send("DELETE FROM once_outbox WHERE number = ?", {number}));
    return books_.log_operation(session, scope, "park", poison->bytes(0, 0), reason);
  });
}

// From `first` on the sequences of a route are given anew.
Status SqlOutbox::free_sequences(SqlSession& session, std::int64_t destination,
                                 std::int64_t partition, std::int64_t first) const {
  ONCE_TRY(session.send(
      fmt::format("UPDATE once_outbox SET target_partition = NULL, target_sequence = NULL "
                  "WHERE destination = ? AND {} BETWEEN ? AND ? AND target_partition = ?",
                  books_.words().send_order),
      {destination, first, sequence_max, partition}));
  return session.send(
      "UPDATE once_route SET next_sequence = ? WHERE destination = ? AND target_partition = ?",
      {first, destination, partition});
}

}  // namespace once
