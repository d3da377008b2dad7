// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace once {

// How a dialect of SQL writes what must not be looked into.
struct SqlSyntax {
  bool dollar_quotes = false;  // $tag$ ... $tag$
  bool backticks = false;      // `name`
  bool backslashes = false;    // escape in every quoted text; else only in E'...'
  bool hash_comments = false;  // # to the end of the line
};

enum class SqlPiece : std::uint8_t {
  quoted,     // text, a quoted name or a comment
  unclosed,   // the same, without its end
  word,       // keyword, name or number
  parameter,  // ?
  question,   // ??, which stands for one question mark
  other,
};

// Splits a statement; the pieces together are the statement.
void split_sql(std::string_view statement, const SqlSyntax& syntax,
               const std::function<void(SqlPiece, std::string_view)>& take);

// ASCII letters as small ones.
std::string lower(std::string_view text);

// The word that a statement begins with, in small letters; empty if it begins with something else.
std::string first_word(std::string_view statement);

// It inserts, changes or deletes rows, and begins with what it does.
bool is_write(std::string_view statement);

// Refuses what a handler may not do: end the transaction, or change the books of Once.
[[nodiscard]] Status check_handler_statement(std::string_view statement, const SqlSyntax& syntax);

}  // namespace once
