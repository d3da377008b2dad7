// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/statement_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace once {
namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// Where the quoted text or comment that begins at `at` ends; `at` itself if none does.
std::size_t end_of_quoted(std::string_view text, std::size_t at) {
  const auto after = [&](std::string_view end, std::size_t from) {
    const std::size_t found = text.find(end, from);
    return found == std::string_view::npos ? text.size() : found + end.size();
  };
  if (text[at] == '\'' || text[at] == '"') {
    const bool escapes = text[at] == '\'' && at > 0 && (text[at - 1] == 'E' || text[at - 1] == 'e');
    for (std::size_t i = at + 1; i < text.size(); ++i) {
      if (escapes && text[i] == '\\')
        ++i;
      else if (text[i] == text[at])
        return i + 1;  // a doubled quote begins the next piece
    }
    return text.size();
  }
  if (text.substr(at, 2) == "--") return after("\n", at);
  if (text.substr(at, 2) == "/*") return after("*/", at + 2);
  if (text[at] == '$' && (at == 0 || !is_word(text[at - 1]))) {
    std::size_t end = at + 1;
    while (end < text.size() && is_word(text[end])) ++end;
    const bool is_tag = end < text.size() && text[end] == '$' &&
                        std::isdigit(static_cast<unsigned char>(text[at + 1])) == 0;
    if (is_tag) return after(text.substr(at, end + 1 - at), end + 1);
  }
  return at;
}

std::string lower(std::string_view text) {
  std::string made(text);
  std::transform(made.begin(), made.end(), made.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return made;
}

// What ends a transaction or, for COPY, leaves the protocol of queued statements.
constexpr std::array<std::string_view, 11> refused_words{
    "begin",   "commit", "rollback", "savepoint", "abort", "end",
    "prepare", "start",  "release",  "discard",   "copy"};

// The counters of segment ids are drawn through a handler's transaction.
bool is_book(std::string_view word) { return word.starts_with("once_") && word != "once_counter"; }

}  // namespace

StatementText number_parameters(std::string_view statement) {
  StatementText made;
  made.text.reserve(statement.size() + 16);
  for (std::size_t at = 0; at < statement.size();) {
    const std::size_t quoted = end_of_quoted(statement, at);
    if (quoted > at) {
      made.text += statement.substr(at, quoted - at);
      at = quoted;
    } else if (statement[at] != '?') {
      made.text += statement[at++];
    } else if (statement.substr(at, 2) == "??") {
      made.text += '?';
      at += 2;
    } else {
      made.text += fmt::format("${}", ++made.parameters);
      ++at;
    }
  }
  return made;
}

Status check_handler_statement(std::string_view statement) {
  std::string first;
  bool names_books = false;
  for (std::size_t at = 0; at < statement.size();) {
    const std::size_t quoted = end_of_quoted(statement, at);
    if (quoted > at) {
      names_books = names_books || lower(statement.substr(at, 6)) == "\"once_";
      at = quoted;
    } else if (is_word(statement[at])) {
      std::size_t end = at;
      while (end < statement.size() && is_word(statement[end])) ++end;
      const std::string word = lower(statement.substr(at, end - at));
      if (first.empty()) first = word;
      names_books = names_books || is_book(word);
      at = end;
    } else {
      ++at;
    }
  }
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
