// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "model/ledger.h"
#include "model/route.h"
#include "store/redis/position.h"
#include "store/redis/redis.h"
#include "store/redis/script.h"
#include "store/redis/stream.h"

// The rows of a destination are a stream, numbered by the script that commits them: so numbers are
// in the order of the commits, and no transaction can come late with a small one. Sequences need
// not have that order: a row that lost its route gets a later one.

namespace once {
namespace {

// "2 25": sequence 25 of partition 2.
Route route_in(std::string_view text) {
  const Position kept = position_in(text);
  return {static_cast<std::uint32_t>(kept.offset), kept.fence};
}

}  // namespace

Result<std::vector<std::string>> RedisStore::destinations() {
  const RedisAnswer known =
      ONCE_TRY(ask(command({"SMEMBERS", books().key("destinations")}), RedisStage::read));
  std::vector<std::string> names;
  std::vector<RedisCall> calls;
  for (std::size_t i = 0; i < known.size(); ++i) {
    names.emplace_back(known.at(i).text());
    calls.push_back(command({"XLEN", books().key("outbox", names.back())}));
  }
  const auto sizes = ONCE_TRY(nodes_.ask(calls, RedisStage::read));
  std::vector<std::string> waiting;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (sizes[i].number() > 0) waiting.push_back(std::move(names[i]));
  std::sort(waiting.begin(), waiting.end());
  return waiting;
}

// The first rows of the stream, and all routes: few rows have one at a time. Rows with a route that
// are not among the first are read in a second round trip.
Result<std::vector<OutboxRow>> RedisStore::pending(std::string_view destination,
                                                   std::size_t count_max) {
  const std::string stream = books().key("outbox", destination);
  const std::vector<RedisCall> calls{rows_after(books().slot(), stream, 0, count_max),
                                     command({"HGETALL", books().key("routes", destination)})};
  const auto answers = ONCE_TRY(nodes_.ask(calls, RedisStage::read));
  std::map<std::int64_t, OutboxRow> found;
  const auto add = [&](const RedisAnswer& rows) -> Status {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const StreamRow row(rows.at(i));
      Message message = ONCE_TRY(row.message());
      found.insert_or_assign(row.number(), OutboxRow{row.number(), std::string(destination),
                                                     std::move(message), std::nullopt});
    }
    return {};
  };
  ONCE_TRY(add(answers[0]));

  std::vector<std::pair<Route, std::int64_t>> routed;
  for (std::size_t i = 0; i + 1 < answers[1].size(); i += 2)
    routed.emplace_back(route_in(answers[1].at(i + 1).text()), answers[1].at(i).number());
  std::sort(routed.begin(), routed.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.sequence, a.second) < std::pair(b.first.sequence, b.second);
  });
  std::vector<RedisCall> missing;
  for (std::size_t i = 0; i < std::min(routed.size(), count_max); ++i)
    if (!found.contains(routed[i].second))
      missing.push_back(row_numbered(books().slot(), stream, routed[i].second));
  const auto others = ONCE_TRY(nodes_.ask(missing, RedisStage::read));
  for (const RedisAnswer& other : others) ONCE_TRY(add(other));

  std::vector<OutboxRow> rows;
  for (const auto& [route, number] : routed) {
    auto row = found.extract(number);
    if (row.empty() || rows.size() == count_max) continue;
    row.mapped().route = route;
    rows.push_back(std::move(row.mapped()));
  }
  for (auto& [number, row] : found)
    if (rows.size() < count_max) rows.push_back(std::move(row));
  return rows;
}

Status RedisStore::done_by_relay(const RedisAnswer& answer, std::string_view destination,
                                 std::uint64_t fence) const {
  const std::string_view what = answer.at(0).text();
  if (what == "ok") return {};
  if (what == "missing")
    return fail(Remedy::stop, "missing",
                fmt::format("{}: row {} is not pending in the outbox for \"{}\"", address_.where(),
                            answer.at(1).text(), destination));
  const Position actual = position_in(answer.at(1).text());
  return fail(fenced_error(relay_scope, destination, {actual.offset, fence}, actual));
}

Status RedisStore::assign(std::string_view destination, std::uint64_t fence,
                          std::span<const std::int64_t> numbers,
                          std::span<const std::uint32_t> partitions,
                          std::span<const std::uint64_t> sequences) {
  ONCE_TRY(check_assign(numbers, partitions, sequences));
  RedisCall call =
      script(books(), redis_scripts::assign_routes,
             {books().key("positions", relay_scope), books().key("outbox", destination),
              books().key("routes", destination), books().key("sequences", destination)});
  call.add(destination).add(fmt::format("{}", fence));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    call.add(numbers[i])
        .add(std::int64_t{partitions[i]})
        .add(sequences.empty() ? std::string() : fmt::format("{}", sequences[i]));
  const RedisAnswer answer = ONCE_TRY(ask(call, RedisStage::write));
  if (answer.at(0).text() == "diverged") {
    const auto row = static_cast<std::size_t>(answer.at(1).number());
    return check_sequence(destination, partitions[row], answer.at(2).number(), sequences, row);
  }
  return done_by_relay(answer, destination, fence);
}

Status RedisStore::sent(std::string_view destination, std::uint64_t fence,
                        std::span<const std::int64_t> numbers) {
  RedisCall call = script(books(), redis_scripts::remove_sent,
                          {books().key("positions", relay_scope),
                           books().key("outbox", destination), books().key("routes", destination)});
  call.add(destination).add(fmt::format("{}", fence));
  for (const std::int64_t number : numbers) call.add(number);
  return done_by_relay(ONCE_TRY(ask(call, RedisStage::write)), destination, fence);
}

Status RedisStore::park(std::string_view destination, std::uint64_t fence, std::int64_t number,
                        std::string_view reason) {
  RedisCall call =
      script(books(), redis_scripts::park_row,
             {books().key("positions", relay_scope), books().key("outbox", destination),
              books().key("routes", destination), books().key("sequences", destination),
              books().key("scopes"), books().key("parked", outbox_scope),
              books().key("operations", outbox_scope)});
  call.add(destination).add(fmt::format("{}", fence)).add(number).add(reason).add(outbox_scope);
  return done_by_relay(ONCE_TRY(ask(call, RedisStage::write)), destination, fence);
}

}  // namespace once
