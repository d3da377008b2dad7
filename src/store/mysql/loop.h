// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/mysql/bulk.h"

namespace once {

// Rows of values as one table of the server.
struct JsonRows {
  std::string table;              // JSON_TABLE(...)
  std::vector<std::string> uses;  // how each value is read from it, and made what it was
};
// The rows are of the types that `types` took; `alias` is what the table will be called.
JsonRows json_rows(std::string_view alias, const RowTypes& types,
                   std::span<const std::span<const Value>> rows);

// A block for MariaDB that runs one write for every row of values, in their order, and answers a
// text with how many rows each touched. `statement` has one `?` for each value; the rows are of the
// types that `types` took. Where one of them fails, those behind it are not run.
std::string loop_block(std::string_view statement, const RowTypes& types,
                       std::span<const std::span<const Value>> rows);

// What the block answers; unset if it is anything but `rows` numbers.
std::optional<std::vector<std::int64_t>> counts_of_loop(std::string_view text, std::size_t rows);

}  // namespace once
