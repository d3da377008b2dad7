// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
#include <once/result.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "store/redis/call.h"

namespace once {

// A row of a stream: a number, and fields with their values. Does not outlive the answer.
class StreamRow {
 public:
  explicit StreamRow(const RedisAnswer& row) : number_(row.at(0).number()), fields_(row.at(1)) {}

  std::int64_t number() const { return number_; }
  std::string text(std::string_view field) const;
  std::int64_t integer(std::string_view field) const;
  [[nodiscard]] Result<Message> message() const;

 private:
  std::int64_t number_;
  RedisAnswer fields_;
};

// Reads rows with larger numbers than `after`.
RedisCall rows_after(std::uint16_t slot, std::string_view stream, std::int64_t after,
                     std::size_t count_max);
// Reads one.
RedisCall row_numbered(std::uint16_t slot, std::string_view stream, std::int64_t number);

}  // namespace once
