// SPDX-License-Identifier: Apache-2.0
#include "store/mysql/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/hex.h"
#include "model/handler_statement.h"
#include "model/sql_update.h"
#include "store/mysql/joinable.h"

namespace once {

void append_number(std::string& into, double number) {
  char text[32];
  const auto end =
      std::to_chars(text, text + sizeof text, number, std::chars_format::scientific).ptr;
  into.append(text, end);
}

namespace {

constexpr std::size_t decimal_digits_max = 65;
constexpr std::size_t decimal_scale_max = 30;

bool are_digits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string decimal_literal(std::string_view digits) {
  const std::string_view sign = digits.starts_with('-') ? "-" : "";
  std::string_view number = digits.substr(sign.size());
  int exponent = 0;
  if (const std::size_t mark = number.find_first_of("eE"); mark != std::string_view::npos) {
    std::string_view text = number.substr(mark + 1);
    if (text.starts_with('+')) text.remove_prefix(1);
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, exponent);
    if (read.ec != std::errc() || read.ptr != end || std::abs(exponent) > 1000) return {};
    number = number.substr(0, mark);
  }
  const std::size_t point = std::min(number.find('.'), number.size());
  std::string all(number.substr(0, point));
  if (point < number.size()) all += number.substr(point + 1);
  if (point == 0 || point + 1 == number.size() || !are_digits(all)) return {};
  // The point moves by the exponent, over zeros that are not there yet.
  auto whole = static_cast<std::ptrdiff_t>(point) + exponent;
  if (whole < 1) all.insert(0, static_cast<std::size_t>(1 - whole), '0');
  whole = std::max<std::ptrdiff_t>(whole, 1);
  if (all.size() < static_cast<std::size_t>(whole))
    all.resize(static_cast<std::size_t>(whole), '0');
  const std::size_t scale = all.size() - static_cast<std::size_t>(whole);
  if (all.size() > decimal_digits_max || scale > decimal_scale_max) return {};
  if (scale > 0) all.insert(static_cast<std::size_t>(whole), 1, '.');
  return std::string(sign) + all;
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
    into += "_binary x'";  // without it, it would be a number among numbers
    append_hex(into, blob.bytes);
    into += '\'';
  }
  void operator()(Decimal decimal) const { into += decimal_literal(decimal.digits); }
};

Status check_decimals(std::string_view statement, std::span<const Value> values) {
  for (const Value& value : values)
    if (const auto* decimal = std::get_if<Decimal>(&value.variant());
        decimal != nullptr && decimal_literal(decimal->digits).empty())
      return fail(Remedy::park, "constraint",
                  fmt::format("\"{}\": \"{}\" is not a decimal of at most {} digits, {} of them "
                              "behind the point",
                              statement, decimal->digits, decimal_digits_max, decimal_scale_max));
  return {};
}

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
  made.is_joinable_ = once::is_joinable(statement);
  made.is_call_ = first_keyword(statement, SqlDialect::mysql) == "call";
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
  return check_decimals(statement_, values);
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
