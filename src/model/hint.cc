// SPDX-License-Identifier: Apache-2.0
#include "model/hint.h"

#include <algorithm>
#include <array>

namespace once {
namespace {

constexpr std::string_view begin_mark = "`once ";

constexpr std::array<std::string_view, 7> of_a_scope{"position", "horizon", "park", "ledger",
                                                     "claims",   "later",   "trace"};
constexpr std::array<std::string_view, 3> of_a_store{"outbox", "scope", "status"};

template <std::size_t count>
bool is_in(const std::array<std::string_view, count>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_@%+=:,./-").find(c) != std::string_view::npos;
}

std::string quoted(std::string_view word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return std::string(word);
  std::string made = "'";
  for (const char c : word) {
    if (c == '\'')
      made += "'\\''";
    else
      made += c;
  }
  return made + "'";
}

// The backtick that ends a command: one in a quoted word is part of it.
std::size_t end_of(std::string_view text, std::size_t at) {
  for (bool in_quotes = false; at < text.size(); ++at) {
    if (text[at] == '\'')
      in_quotes = !in_quotes;
    else if (text[at] == '\\' && !in_quotes)
      ++at;
    else if (text[at] == '`' && !in_quotes)
      return at;
  }
  return std::string_view::npos;
}

std::string completed(std::string_view command, const HintPlace& place) {
  std::string made(command);
  const std::string_view behind = command.substr(begin_mark.size());
  const std::string_view first = behind.substr(0, behind.find(' '));
  const auto add = [&](std::string_view flag, std::string_view value) {
    if (value.empty() || made.find(flag) != std::string::npos) return;
    made += flag;
    made += quoted(value);
  };
  // What a pipeline's file says, a command about it need not.
  const bool names_a_file = behind.starts_with("park add ");
  if (names_a_file || command.find(" --help") != std::string_view::npos) return made;
  if (is_in(of_a_scope, first)) add(" --scope ", place.scope);
  if (is_in(of_a_scope, first) || is_in(of_a_store, first)) add(" --store ", place.store);
  return made;
}

}  // namespace

std::string hint(std::initializer_list<std::string_view> words) {
  std::string command = "`once";
  for (const std::string_view word : words) {
    command += ' ';
    command += quoted(word);
  }
  return command + "`";
}

std::string with_complete_hints(std::string_view text, const HintPlace& place) {
  std::string made;
  while (true) {
    const std::size_t begin = text.find(begin_mark);
    const std::size_t end =
        begin == std::string_view::npos ? begin : end_of(text, begin + begin_mark.size());
    if (end == std::string_view::npos) return made.append(text);
    made.append(text.substr(0, begin));
    made += completed(text.substr(begin, end - begin), place);
    text.remove_prefix(end);
    made += '`';
    text.remove_prefix(1);
  }
}

}  // namespace once
