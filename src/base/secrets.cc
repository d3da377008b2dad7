// SPDX-License-Identifier: Apache-2.0
#include "base/secrets.h"

#include <algorithm>
#include <array>

#include "base/url.h"

namespace once {
namespace {

constexpr std::string_view stars = "***";
constexpr std::size_t value_bytes_min = 4;

std::string lower(std::string_view text) {
  std::string made(text);
  for (char& c : made)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return made;
}

// A value of libpq's key-value form, which may be quoted; removes it from the text.
std::string take_value(std::string_view& text) {
  const bool quoted = text.starts_with('\'');
  std::size_t at = quoted ? 1 : 0;
  std::string value;
  for (; at < text.size(); ++at) {
    if (quoted ? text[at] == '\'' : text[at] == ' ') break;
    if (text[at] == '\\' && at + 1 < text.size()) ++at;
    value.push_back(text[at]);
  }
  text.remove_prefix(std::min(text.size(), at + 1));
  return value;
}

bool is_scheme_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
         c == '-' || c == '.';
}

// Whether what is behind the slashes of a URL has an @ that may end a password, and not one of a
// path, or a parameter with the name of a secret.
bool has_credentials(std::string_view rest) {
  const std::size_t at = rest.find('@');
  if (at != std::string_view::npos && (at < rest.find('/') || rest.find(':') < at)) return true;
  for (std::size_t equals = rest.find('='); equals != std::string_view::npos;
       equals = rest.find('=', equals + 1)) {
    const std::size_t begin = rest.find_last_of("?&", equals);
    if (begin != std::string_view::npos &&
        is_secret_name(percent_decoded(rest.substr(begin + 1, equals - begin - 1))))
      return true;
  }
  return false;
}

}  // namespace

bool is_secret_name(std::string_view name) {
  // Those that people write by mistake, too: `passwort`, `pasword`.
  constexpr std::array<std::string_view, 9> marks{
      "passw", "pasw", "passphrase", "pwd", "secret", "token", "credential", "jaas", ".pem"};
  const std::string small = lower(name);
  return small == "pass" || small == "pw" ||
         std::any_of(marks.begin(), marks.end(),
                     [&](std::string_view mark) { return small.find(mark) != std::string::npos; });
}

bool holds_secret(const Url& url) {
  return !url.password.empty() ||
         std::any_of(url.parameters.begin(), url.parameters.end(), [](const auto& parameter) {
           return is_secret_name(parameter.first) && !parameter.second.empty();
         });
}

bool is_secret_variable(std::string_view name) {
  return name.starts_with("file:") || lower(name).find("key") != std::string::npos ||
         is_secret_name(name);
}

void Secrets::learn(std::string_view address) {
  const std::string shown = shown_url(address);
  if (shown != address) instead_of_.emplace(address, shown);
  std::string_view rest = address.substr(scheme_bytes(address));
  if (rest.starts_with("//")) rest.remove_prefix(2);
  // Where a password has an unescaped @, / or ?, there are several ways to read it: all of them.
  const std::size_t colon = rest.find(':');
  for (std::size_t at = rest.find('@'); at != std::string_view::npos; at = rest.find('@', at + 1)) {
    const std::size_t begin = colon < at ? colon + 1 : 0;
    add(rest.substr(begin, at - begin), shown);
  }
  if (const std::size_t question = rest.find('?'); question != std::string_view::npos)
    learn_parameters(rest.substr(question + 1), '&', shown);
  // What stands before the first = of a URL is not the name of a parameter.
  if (scheme_bytes(address) == 0) learn_parameters(address, ' ', shown);
}

void Secrets::learn_shape(std::string_view address) {
  const std::size_t question = address.find('?');
  if (question == std::string_view::npos || address.find('=', question) == std::string_view::npos)
    return;
  instead_of_.emplace(address, shown_url(address));
}

void Secrets::learn_parameters(std::string_view text, char separator, std::string_view shown) {
  while (!text.empty()) {
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) return;
    const std::string_view before = text.substr(0, equals);
    const std::size_t begin = before.rfind(separator);
    const std::string name =
        percent_decoded(begin == std::string_view::npos ? before : before.substr(begin + 1));
    text.remove_prefix(equals + 1);
    if (separator == '&') {
      const std::string_view value = text.substr(0, text.find('&'));
      text.remove_prefix(std::min(text.size(), value.size() + 1));
      if (is_secret_name(name)) add(value, shown);
    } else {
      const std::string value = take_value(text);
      if (is_secret_name(name)) add(value, shown);
    }
  }
}

void Secrets::add(std::string_view raw, std::string_view shown) {
  for (const std::string& secret : {std::string(raw), percent_decoded(raw)}) {
    if (secret.empty()) continue;
    // What is also the name of a user, a host or a database is shown there: to hide the word
    // everywhere would hide those, and tell what the password is.
    const bool is_open = shown.find(secret) != std::string_view::npos;
    if (secret.size() >= value_bytes_min && !is_open)
      instead_of_.emplace(secret, stars);
    else
      instead_of_.emplace(":" + secret + "@", ":***@");
  }
}

void Secrets::learn_value(std::string_view value, std::string instead) {
  if (value.size() >= value_bytes_min)
    instead_of_.insert_or_assign(std::string(value), std::move(instead));
}

std::string Secrets::redacted(std::string_view text) const {
  std::string made(text);
  for (const auto& [secret, instead] : instead_of_)
    for (std::size_t at = made.find(secret); at != std::string::npos;
         at = made.find(secret, at + instead.size()))
      made.replace(at, secret.size(), instead);
  return without_credentials(made);
}

std::string without_credentials(std::string_view text) {
  std::string made;
  while (true) {
    const std::size_t slashes = text.find("://");
    if (slashes == std::string_view::npos) return made + std::string(text);
    const std::string_view before = text.substr(0, slashes);
    const auto letter = std::find_if_not(before.rbegin(), before.rend(), is_scheme_byte);
    const auto begin = static_cast<std::size_t>(before.rend() - letter);
    const std::size_t end = std::min(text.find_first_of(" \t\r\n\"'<>`", slashes), text.size());
    const std::string_view url = text.substr(begin, end - begin);
    made += text.substr(0, begin);
    made += has_credentials(url.substr(slashes + 3 - begin)) ? shown_url(url) : std::string(url);
    text.remove_prefix(end);
  }
}

}  // namespace once
