// SPDX-License-Identifier: Apache-2.0
#include "model/reason.h"

#include <algorithm>
#include <cstddef>

namespace once {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hexadecimal(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || c == '-'; }
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' ||
         (static_cast<unsigned char>(c) & 0x80) != 0;
}

// The end of a quotation that begins here, or npos. An apostrophe inside a word begins none.
std::size_t end_of_quotation(std::string_view text, std::size_t at) {
  const char quote = text[at];
  if (quote != '"' && quote != '\'') return std::string_view::npos;
  if (quote == '\'' && at > 0 && is_word(text[at - 1])) return std::string_view::npos;
  std::size_t end = text.find(quote, at + 1);
  while (quote == '\'' && end != std::string_view::npos && end + 1 < text.size() &&
         is_word(text[end + 1]))
    end = text.find(quote, end + 1);
  return end;
}

std::size_t end_of_word(std::string_view text, std::size_t at) {
  while (at < text.size() && is_word(text[at])) ++at;
  return at;
}

std::string masked_word(std::string_view word) {
  constexpr std::size_t id_size_min = 8;
  if (std::none_of(word.begin(), word.end(), is_digit)) return std::string(word);
  const bool id =
      word.size() >= id_size_min && std::all_of(word.begin(), word.end(), is_hexadecimal);
  if (id || is_digit(word[0])) return "#";
  std::string text;
  for (const char c : word) {
    if (!is_digit(c))
      text.push_back(c);
    else if (text.empty() || text.back() != '#')
      text.push_back('#');
  }
  return text;
}

}  // namespace

std::string masked(std::string_view reason) {
  std::string text;
  for (std::size_t at = 0; at < reason.size();) {
    if (const std::size_t end = end_of_quotation(reason, at); end != std::string_view::npos) {
      text += "\"…\"";
      at = end + 1;
    } else if (is_word(reason[at])) {
      const std::size_t word_end = end_of_word(reason, at);
      text += masked_word(reason.substr(at, word_end - at));
      at = word_end;
    } else {
      text.push_back(reason[at++]);
    }
  }
  return text;
}

}  // namespace once
