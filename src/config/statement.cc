// SPDX-License-Identifier: Apache-2.0
#include "config/statement.h"

#include <cctype>

#include "model/handler_statement.h"
#include "model/sql_text.h"

namespace once {
namespace {

// Takes the pieces of a statement one by one; a name is told from a cast by what comes before it.
class Namer {
 public:
  void take(SqlPiece piece, std::string_view text) {
    const bool after_colon = colons_ == 1;
    if (after_colon && piece == SqlPiece::word && is_name(text)) {
      made_.text.back() = '?';  // in the place of the colon
      made_.names.emplace_back(text);
      colons_ = 0;
      return;
    }
    colons_ = text == ":" ? colons_ + 1 : 0;
    if (ended_ && !is_blank(piece, text)) complaint_ = "it is more than one statement";
    if (piece == SqlPiece::unclosed) complaint_ = "a quote or comment is not closed";
    if (piece == SqlPiece::parameter)
      complaint_ = "a parameter is written :name; write ?? for the operator";
    if (text == ";") {
      ended_ = true;
      return;
    }
    made_.text += text;
  }

  Result<NamedStatement> finish() && {
    if (complaint_.empty()) return std::move(made_);
    return fail(Remedy::stop, "sql", std::string(complaint_));
  }

 private:
  // A number after a colon is a slice of a list: a[1:2].
  static bool is_name(std::string_view word) {
    return std::isdigit(static_cast<unsigned char>(word[0])) == 0;
  }
  static bool is_blank(SqlPiece piece, std::string_view text) {
    if (piece == SqlPiece::quoted) return text.starts_with("--") || text.starts_with("/*");
    return piece == SqlPiece::other && std::isspace(static_cast<unsigned char>(text[0])) != 0;
  }

  NamedStatement made_;
  std::size_t colons_ = 0;  // in a row, just before
  bool ended_ = false;
  std::string_view complaint_;
};

}  // namespace

Result<NamedStatement> name_parameters(std::string_view statement, SqlDialect dialect) {
  ONCE_TRY(check_handler_statement(statement, dialect));
  Namer namer;
  split_sql(statement, syntax_of(dialect),
            [&](SqlPiece piece, std::string_view text) { namer.take(piece, text); });
  return std::move(namer).finish();
}

}  // namespace once
