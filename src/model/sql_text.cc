// SPDX-License-Identifier: Apache-2.0
#include "model/sql_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace once {

std::string lower(std::string_view text) {
  std::string made(text);
  std::transform(made.begin(), made.end(), made.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return made;
}

namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// One statement, looked at from a place on.
class Splitter {
 public:
  Splitter(std::string_view text, const SqlSyntax& syntax) : text_(text), syntax_(syntax) {}

  // Where the quoted text or comment that begins at `at` ends; `at` itself if none does.
  std::size_t end_of_quoted(std::size_t at) {
    const char c = text_[at];
    closed_ = true;
    if (c == '\'' || c == '"' || (c == '`' && syntax_.backticks)) return end_of_quotes(at);
    if (text_.substr(at, 2) == "--" || (c == '#' && syntax_.hash_comments)) {
      const std::size_t end = after("\n", at);
      closed_ = true;  // the end of the statement is one of the line, too
      return end;
    }
    if (text_.substr(at, 2) == "/*") return after("*/", at + 2);
    if (c == '$' && syntax_.dollar_quotes) return end_of_dollars(at);
    return at;
  }

  // Whether the piece that was looked at last has its end.
  bool is_closed() const { return closed_; }

  std::size_t end_of_word(std::size_t at) const {
    while (at < text_.size() && is_word(text_[at])) ++at;
    return at;
  }

 private:
  std::size_t after(std::string_view end, std::size_t from) {
    const std::size_t found = text_.find(end, from);
    closed_ = found != std::string_view::npos;
    return closed_ ? found + end.size() : text_.size();
  }

  // A doubled quote ends one piece and begins the next.
  std::size_t end_of_quotes(std::size_t at) {
    const bool marked = at > 0 && (text_[at - 1] == 'E' || text_[at - 1] == 'e');
    const bool escapes = text_[at] != '`' && (syntax_.backslashes || (text_[at] == '\'' && marked));
    for (std::size_t i = at + 1; i < text_.size(); ++i) {
      if (escapes && text_[i] == '\\')
        ++i;
      else if (text_[i] == text_[at])
        return i + 1;
    }
    closed_ = false;
    return text_.size();
  }

  std::size_t end_of_dollars(std::size_t at) {
    if (at > 0 && is_word(text_[at - 1])) return at;
    const std::size_t end = end_of_word(at + 1);
    const bool is_tag = end < text_.size() && text_[end] == '$' &&
                        std::isdigit(static_cast<unsigned char>(text_[at + 1])) == 0;
    return is_tag ? after(text_.substr(at, end + 1 - at), end + 1) : at;
  }

  const std::string_view text_;
  const SqlSyntax& syntax_;
  bool closed_ = true;
};

// What ends a transaction, or leaves the protocol of queued statements.
constexpr std::array<std::string_view, 13> refused_words{
    "begin", "commit",  "rollback", "savepoint", "abort", "end",      "prepare",
    "start", "release", "discard",  "copy",      "xa",    "delimiter"};

// The counters of segment ids are drawn through a handler's transaction.
bool is_book(std::string_view word) { return word.starts_with("once_") && word != "once_counter"; }

}  // namespace

void split_sql(std::string_view statement, const SqlSyntax& syntax,
               const std::function<void(SqlPiece, std::string_view)>& take) {
  Splitter splitter(statement, syntax);
  for (std::size_t at = 0; at < statement.size();) {
    std::size_t end = splitter.end_of_quoted(at);
    SqlPiece piece = splitter.is_closed() ? SqlPiece::quoted : SqlPiece::unclosed;
    if (end == at && is_word(statement[at])) {
      piece = SqlPiece::word;
      end = splitter.end_of_word(at);
    } else if (end == at && statement.substr(at, 2) == "??") {
      piece = SqlPiece::question;
      end = at + 2;
    } else if (end == at) {
      piece = statement[at] == '?' ? SqlPiece::parameter : SqlPiece::other;
      end = at + 1;
    }
    take(piece, statement.substr(at, end - at));
    at = end;
  }
}

std::string first_word(std::string_view statement) {
  const auto is_space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  const auto begin = std::find_if_not(statement.begin(), statement.end(), is_space);
  const auto end = std::find_if_not(begin, statement.end(), is_word);
  return lower({begin, end});
}

bool is_write(std::string_view statement) {
  constexpr std::array<std::string_view, 4> writes{"insert", "update", "delete", "replace"};
  return std::find(writes.begin(), writes.end(), first_word(statement)) != writes.end();
}

Status check_handler_statement(std::string_view statement, const SqlSyntax& syntax) {
  std::string first;
  bool names_books = false;
  split_sql(statement, syntax, [&](SqlPiece piece, std::string_view text) {
    if (piece == SqlPiece::quoted || piece == SqlPiece::unclosed) {
      const bool is_name = text.front() == '"' || text.front() == '`';
      names_books = names_books || (is_name && is_book(lower(text.substr(1, text.size() - 2))));
    } else if (piece == SqlPiece::word) {
      const std::string word = lower(text);
      if (first.empty()) first = word;
      names_books = names_books || is_book(word);
    }
  });
  if (first.empty())
    return fail(Remedy::stop, "sql", fmt::format("\"{}\" is no statement", statement));
  const bool ends =
      std::find(refused_words.begin(), refused_words.end(), first) != refused_words.end();
  if (!ends && (!names_books || first == "select")) return {};
  return fail(Remedy::stop, "sql",
              fmt::format("\"{}\": a handler may neither end the transaction nor change the books "
                          "of Once",
                          statement));
}

}  // namespace once
