// SPDX-License-Identifier: Apache-2.0
#include "store/mysql/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "model/sql_update.h"

#include "base/hex.h"

namespace once {

void append_number(std::string& into, double number) {
  char text[32];
  const auto end =
      std::to_chars(text, text + sizeof text, number, std::chars_format::scientific).ptr;
  into.append(text, end);
}

namespace {

struct Literal {
  std::string& into;

  void operator()(std::nullptr_t) const { into += "NULL"; }
  void operator()(std::int64_t number) const { into += fmt::format("{}", number); }
  void operator()(double number) const { append_number(into, number); }
  void operator()(std::string_view text) const {
    into += "_utf8mb4 x'";
    append_hex(into, text);
    into += '\'';
  }
  void operator()(Blob blob) const {
    into += "x'";
    append_hex(into, blob.bytes);
    into += '\'';
  }
};

bool is_finite(const Value& value) {
  const auto* number = std::get_if<double>(&value.variant());
  return number == nullptr || std::isfinite(*number);
}

// A comment that the server runs.
bool is_run(std::string_view quoted) {
  return quoted.starts_with("/*!") || quoted.starts_with("/*M!");
}

}  // namespace

Result<StatementPieces> StatementPieces::cut(std::string_view statement) {
  StatementPieces made;
  made.statement_ = statement;
  made.may_change_tables_ = once::may_change_tables(statement);
  made.pieces_.emplace_back();
  std::string_view wrong;
  split_sql(statement, mysql_syntax, [&](SqlPiece piece, std::string_view text) {
    switch (piece) {
      case SqlPiece::parameter: made.pieces_.emplace_back(); return;
      case SqlPiece::question: made.pieces_.back() += '?'; return;
      case SqlPiece::quoted:
        if (is_run(text)) wrong = "a comment holds a statement";
        break;
      case SqlPiece::unclosed: wrong = "a quote or comment is not closed"; break;
      case SqlPiece::other:
        if (text == ";") wrong = "it is more than one statement";
        break;
      case SqlPiece::word: break;
    }
    made.pieces_.back() += text;
  });
  if (!wrong.empty()) return fail(Remedy::stop, "sql", fmt::format("\"{}\": {}", statement, wrong));
  return made;
}

Status StatementPieces::check(std::span<const Value> values) const {
  if (values.size() + 1 != pieces_.size())
    return fail(Remedy::stop, "sql",
                fmt::format("\"{}\" has {} parameters, {} values were given", statement_,
                            pieces_.size() - 1, values.size()));
  if (!std::all_of(values.begin(), values.end(), is_finite))
    return fail(Remedy::stop, "sql", fmt::format("\"{}\": a number is not finite", statement_));
  return {};
}

void StatementPieces::render(std::span<const Value> values, std::string& into) const {
  into += pieces_.front();
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::visit(Literal{into}, values[i].variant());
    into += pieces_[i + 1];
  }
}

std::string StatementPieces::prepared() const {
  std::string text = pieces_.front();
  for (std::size_t i = 1; i < pieces_.size(); ++i) text += '?' + pieces_[i];
  return text;
}

Result<std::string> render(std::string_view statement, std::span<const Value> values) {
  const StatementPieces pieces = ONCE_TRY(StatementPieces::cut(statement));
  ONCE_TRY(pieces.check(values));
  std::string made;
  pieces.render(values, made);
  return made;
}

}  // namespace once
