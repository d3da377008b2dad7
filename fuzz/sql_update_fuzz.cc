// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "model/handler_statement.h"
#include "model/sql_text.h"
#include "model/sql_update.h"

namespace {

using namespace once;

std::size_t parameters_in(std::string_view statement, const SqlSyntax& syntax) {
  std::size_t count = 0;
  split_sql(statement, syntax, [&](SqlPiece piece, std::string_view) {
    if (piece == SqlPiece::parameter) ++count;
  });
  return count;
}

// The pieces are the statement, none is empty, and only the last can be without an end.
void check_pieces(std::string_view statement, const SqlSyntax& syntax) {
  std::string whole;
  bool ended = false;
  split_sql(statement, syntax, [&](SqlPiece piece, std::string_view text) {
    ONCE_ASSERT(!text.empty() && !ended);
    ended = piece == SqlPiece::unclosed;
    whole += text;
  });
  ONCE_ASSERT(whole == statement);
}

// What is taken for an update of rows by key is one when it is put together again.
void check_update(std::string_view statement, const SqlSyntax& syntax) {
  const auto update = keyed_update(statement, syntax);
  if (!update) return;
  ONCE_ASSERT(first_word(statement) == "update" && is_write(statement));
  ONCE_ASSERT(!update->keys.empty() && !update->path.empty() && !update->assigned.empty());
  ONCE_ASSERT(update->is_plain.size() == parameters_in(statement, syntax));
  for (const KeyedUpdate::Key& key : update->keys) {
    ONCE_ASSERT(key.parameter < update->is_plain.size());
    ONCE_ASSERT(!update->assigned.contains(key.column));
  }
  const auto question = [](std::size_t) { return std::string("?"); };
  const std::string again = "UPDATE " + update->table + " SET " + update->set_with(question) +
                            " WHERE " + update->where_with(question);
  const auto same = keyed_update(again, syntax);
  ONCE_ASSERT(same.has_value());
  ONCE_ASSERT(same->path == update->path && same->assigned == update->assigned);
  ONCE_ASSERT(same->keys == update->keys && same->is_plain == update->is_plain);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view statement(reinterpret_cast<const char*>(data), size);
  for (unsigned bits = 0; bits < 16; ++bits) {
    const SqlSyntax syntax{.dollar_quotes = (bits & 1) != 0,
                           .backticks = (bits & 2) != 0,
                           .backslashes = (bits & 4) != 0,
                           .hash_comments = (bits & 8) != 0};
    check_pieces(statement, syntax);
    check_update(statement, syntax);
  }
  for (const SqlDialect dialect : {SqlDialect::sqlite, SqlDialect::postgresql, SqlDialect::mysql}) {
    static_cast<void>(check_handler_statement(statement, dialect));
    static_cast<void>(may_change_session(statement, dialect));
  }
  static_cast<void>(may_change_tables(statement));
  return 0;
}
