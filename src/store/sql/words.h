// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/sql.h>

#include <cstdint>
#include <limits>
#include <string_view>

namespace once {

// The largest sequence of a route; the next number stands for none where NULL cannot
// (SqlWords::send_order).
inline constexpr std::int64_t sequence_max = std::numeric_limits<std::int64_t>::max() - 1;

// What the dialects say differently. Everything else is written so that all of them understand it:
// no column is called like a keyword, times and offsets are 64-bit numbers, ids, names and texts of
// messages are bytes.
struct SqlWords {
  SqlDialect dialect;
  std::string_view now_ms;        // milliseconds by the clock of the store
  std::string_view insert;        // of a row that may be there already ...
  std::string_view skip_present;  // ... and then is left alone
  std::string_view lock;          // behind a read of rows that will be changed
  std::string_view share;         // behind a read that waits for whoever is changing the row
  std::string_view least;         // the function that answers the smallest of its arguments
  std::string_view send_order;    // the sequence of an outbox row ...
  std::string_view nulls_last;    // ... and behind it: rows without one come last
  bool names_are_text = false;    // columns for names and reasons hold text; if not, bytes

  // A value for such a column.
  Value name(std::string_view text) const {
    return names_are_text ? Value(text) : Value(Blob{text});
  }
};

}  // namespace once
