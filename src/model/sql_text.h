// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/sql.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace once {

// How a dialect of SQL writes what must not be looked into.
struct SqlSyntax {
  bool dollar_quotes = false;    // $tag$ ... $tag$
  bool backticks = false;        // `name`
  bool brackets = false;         // [name]
  bool backslashes = false;      // escape in every quoted text
  bool e_texts = false;          // E'...', the only one with backslashes
  bool hash_comments = false;    // # to the end of the line
  bool spaced_dashes = false;    // -- begins a comment only if a blank follows
  bool nested_comments = false;  // /* /* */ */
  bool folds_names = false;      // a name without quotes is meant in small letters
};

inline constexpr SqlSyntax sqlite_syntax{.backticks = true, .brackets = true};
inline constexpr SqlSyntax postgres_syntax{
    .dollar_quotes = true, .e_texts = true, .nested_comments = true, .folds_names = true};
// With the SQL mode that every connection of ours sets.
inline constexpr SqlSyntax mysql_syntax{
    .backticks = true, .backslashes = true, .hash_comments = true, .spaced_dashes = true};

const SqlSyntax& syntax_of(SqlDialect dialect);

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

// It reads, unless a function that it calls writes.
bool is_select(std::string_view statement);

// It inserts, changes or deletes rows, and begins with what it does.
bool is_write(std::string_view statement);

// The name in a quoted piece; empty if it is a text or a comment.
std::string_view name_in(std::string_view quoted, const SqlSyntax& syntax);

}  // namespace once
