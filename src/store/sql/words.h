// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/sql.h>

#include <string_view>

namespace once {

// What the dialects say differently. Everything else is written so that all of them understand it:
// no column is called like a keyword, times and offsets are 64-bit numbers, ids, names and texts of
// messages are bytes.
struct SqlWords {
  SqlDialect dialect;
  std::string_view now_ms;        // milliseconds by the server's clock
  std::string_view insert;        // of a row that may be there already ...
  std::string_view skip_present;  // ... and then is left alone
  std::string_view share;         // behind a read that waits for whoever is changing the row
  std::string_view send_order;    // the sequence of an outbox row; last where there is none
};

}  // namespace once
