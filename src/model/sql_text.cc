// SPDX-License-Identifier: Apache-2.0
#include "model/sql_text.h"

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

bool is_blank(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isspace(c) != 0; });
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
    if (c == '[' && syntax_.brackets) return after("]", at);
    if (is_line_comment(at)) {
      const std::size_t end = after("\n", at);
      closed_ = true;  // the end of the statement is one of the line, too
      return end;
    }
    if (text_.substr(at, 2) == "/*") return end_of_comment(at);
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

  bool is_line_comment(std::size_t at) const {
    if (text_[at] == '#') return syntax_.hash_comments;
    if (text_.substr(at, 2) != "--") return false;
    // Elsewhere 5--3 is a comment; there it is 8.
    return !syntax_.spaced_dashes || at + 2 == text_.size() ||
           static_cast<unsigned char>(text_[at + 2]) <= ' ';
  }

  std::size_t end_of_comment(std::size_t at) {
    if (!syntax_.nested_comments) return after("*/", at + 2);
    std::size_t depth = 1;
    for (at += 2; at + 1 < text_.size(); ++at) {
      const std::string_view two = text_.substr(at, 2);
      if (two != "/*" && two != "*/") continue;
      depth += two == "/*" ? 1 : std::size_t(-1);
      ++at;
      if (depth == 0) return at + 1;
    }
    closed_ = false;
    return text_.size();
  }

  // A doubled quote does not end it.
  std::size_t end_of_quotes(std::size_t at) {
    const char quote = text_[at];
    const bool is_e_text = quote == '\'' && (is_marked(at) || goes_on(at));
    const bool escapes = quote != '`' && (syntax_.backslashes || is_e_text);
    for (std::size_t i = at + 1; i < text_.size(); ++i) {
      if (escapes && text_[i] == '\\') {
        ++i;
      } else if (text_[i] == quote) {
        if (i + 1 < text_.size() && text_[i + 1] == quote) {
          ++i;
          continue;
        }
        if (is_e_text) e_text_end_ = i + 1;
        return i + 1;
      }
    }
    closed_ = false;
    return text_.size();
  }

  // By an E that is a word of its own: in LIKE'\' it is not.
  bool is_marked(std::size_t at) const {
    if (!syntax_.e_texts || at == 0 || (text_[at - 1] | 0x20) != 'e') return false;
    return at == 1 || (!is_word(text_[at - 2]) && text_[at - 2] != '$');
  }

  // A text on the next line goes on with the one before, and with its backslashes.
  bool goes_on(std::size_t at) const {
    if (e_text_end_ == 0) return false;
    const std::string_view gap = text_.substr(e_text_end_, at - e_text_end_);
    return gap.find('\n') != std::string_view::npos && is_blank(gap);
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
  std::size_t e_text_end_ = 0;
  bool closed_ = true;
};

}  // namespace

const SqlSyntax& syntax_of(SqlDialect dialect) {
  switch (dialect) {
    case SqlDialect::sqlite: return sqlite_syntax;
    case SqlDialect::postgresql: return postgres_syntax;
    case SqlDialect::mysql: break;
  }
  return mysql_syntax;
}

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

bool is_select(std::string_view statement) { return first_word(statement) == "select"; }

bool is_write(std::string_view statement) {
  constexpr std::array<std::string_view, 4> writes{"insert", "update", "delete", "replace"};
  return std::find(writes.begin(), writes.end(), first_word(statement)) != writes.end();
}

std::string_view name_in(std::string_view quoted, const SqlSyntax& syntax) {
  const char quote = quoted.front();
  const bool is_name = (quote == '"' && !syntax.backslashes) ||
                       (quote == '`' && syntax.backticks) || (quote == '[' && syntax.brackets);
  return is_name && quoted.size() >= 2 ? quoted.substr(1, quoted.size() - 2) : std::string_view();
}

}  // namespace once
