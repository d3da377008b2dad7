// SPDX-License-Identifier: Apache-2.0
#include "store/mysql/render.h"

#include <fmt/format.h>

#include <cmath>

namespace once {
namespace {

void append_hex(std::string& into, std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (const char byte : bytes) {
    into += digits[static_cast<unsigned char>(byte) >> 4];
    into += digits[static_cast<unsigned char>(byte) & 15];
  }
}

struct Literal {
  std::string& into;

  void operator()(std::nullptr_t) const { into += "NULL"; }
  void operator()(std::int64_t number) const { into += fmt::format("{}", number); }
  void operator()(double number) const { into += fmt::format("{:e}", number); }
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

Result<std::string> render(std::string_view statement, std::span<const Value> values) {
  std::string made;
  made.reserve(statement.size() + 32 * values.size());
  std::size_t used = 0;
  std::string_view wrong;
  split_sql(statement, mysql_syntax, [&](SqlPiece piece, std::string_view text) {
    switch (piece) {
      case SqlPiece::parameter:
        if (used < values.size()) {
          if (!is_finite(values[used])) wrong = "a number is not finite";
          std::visit(Literal{made}, values[used].variant());
        }
        ++used;
        return;
      case SqlPiece::question: made += '?'; return;
      case SqlPiece::quoted:
        if (is_run(text)) wrong = "a comment holds a statement";
        break;
      case SqlPiece::unclosed: wrong = "a quote or comment is not closed"; break;
      case SqlPiece::other:
        if (text == ";") wrong = "it is more than one statement";
        break;
      case SqlPiece::word: break;
    }
    made += text;
  });
  if (!wrong.empty()) return fail(Remedy::stop, "sql", fmt::format("\"{}\": {}", statement, wrong));
  if (used != values.size())
    return fail(Remedy::stop, "sql",
                fmt::format("\"{}\" has {} parameters, {} values were given", statement, used,
                            values.size()));
  return made;
}

}  // namespace once
