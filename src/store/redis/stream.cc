// SPDX-License-Identifier: Apache-2.0
#include "store/redis/stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "model/message_row.h"

namespace once {

std::string StreamRow::text(std::string_view field) const {
  for (std::size_t i = 0; i + 1 < fields_.size(); i += 2)
    if (fields_.at(i).text() == field) return std::string(fields_.at(i + 1).text());
  return {};
}

std::int64_t StreamRow::integer(std::string_view field) const {
  for (std::size_t i = 0; i + 1 < fields_.size(); i += 2)
    if (fields_.at(i).text() == field) return fields_.at(i + 1).number();
  return 0;
}

Result<Message> StreamRow::message() const {
  Message made{text("id"), text("key"), text("body"), {}, integer("time")};
  ONCE_TRY(decode_headers(text("headers"), made));
  return made;
}

RedisCall rows_after(std::uint16_t slot, std::string_view stream, std::int64_t after,
                     std::size_t count_max) {
  constexpr std::size_t count_limit = std::numeric_limits<std::int32_t>::max();
  const std::string from =
      fmt::format("{}-0", static_cast<std::uint64_t>(std::max<std::int64_t>(after, 0)) + 1);
  RedisCall call(slot, {"XRANGE", stream, from, "+", "COUNT"});
  return std::move(call.add(static_cast<std::int64_t>(std::min(count_max, count_limit))));
}

RedisCall row_numbered(std::uint16_t slot, std::string_view stream, std::int64_t number) {
  const std::string at = fmt::format("{}-0", std::max<std::int64_t>(number, 0));
  return {slot, {"XRANGE", stream, at, at}};
}

}  // namespace once
