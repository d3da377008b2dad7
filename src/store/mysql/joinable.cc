// SPDX-License-Identifier: Apache-2.0
#include "store/mysql/joinable.h"

#include <algorithm>
#include <array>
#include <string>

#include "model/sql_text.h"

namespace once {
namespace {

// What may stand before a bracket: keywords, and functions that make the same of the same values.
constexpr std::array<std::string_view, 47> before_brackets{"values",
                                                           "value",
                                                           "in",
                                                           "and",
                                                           "or",
                                                           "not",
                                                           "set",
                                                           "where",
                                                           "when",
                                                           "then",
                                                           "else",
                                                           "case",
                                                           "between",
                                                           "like",
                                                           "coalesce",
                                                           "greatest",
                                                           "least",
                                                           "abs",
                                                           "ifnull",
                                                           "nullif",
                                                           "if",
                                                           "concat",
                                                           "lower",
                                                           "upper",
                                                           "trim",
                                                           "ltrim",
                                                           "rtrim",
                                                           "left",
                                                           "right",
                                                           "substring",
                                                           "substr",
                                                           "length",
                                                           "char_length",
                                                           "round",
                                                           "floor",
                                                           "ceil",
                                                           "ceiling",
                                                           "mod",
                                                           "sign",
                                                           "cast",
                                                           "hex",
                                                           "unhex",
                                                           "now",
                                                           "current_timestamp",
                                                           "utc_timestamp",
                                                           "from_unixtime",
                                                           "json_extract"};

bool is_known(std::string_view word) {
  return std::find(before_brackets.begin(), before_brackets.end(), word) != before_brackets.end();
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

// Looks at one piece after the other.
class Reader {
 public:
  void take(SqlPiece piece, std::string_view text) {
    if (is_blank(text)) return;
    const bool is_name = piece == SqlPiece::word || !name_in(text, mysql_syntax).empty();
    if (text == "(") joinable_ = joinable_ && (is_table_ || !is_name_ || is_known(last_));
    if (text == "@") joinable_ = false;
    // INSERT INTO table (columns), also with a schema.
    const bool goes_on = is_table_ && (text == "." || last_ == ".");
    is_table_ = goes_on || (is_name && last_ == "into");
    is_name_ = is_name;
    last_ = lower(text);
    if (piece == SqlPiece::word && last_ == "select") joinable_ = false;
  }
  bool is_joinable() const { return joinable_; }

 private:
  std::string last_;
  bool is_name_ = false;
  bool is_table_ = false;
  bool joinable_ = true;
};

}  // namespace

bool is_joinable(std::string_view statement) {
  if (!is_write(statement)) return false;
  Reader reader;
  split_sql(statement, mysql_syntax,
            [&](SqlPiece piece, std::string_view text) { reader.take(piece, text); });
  return reader.is_joinable();
}

}  // namespace once
