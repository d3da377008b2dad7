// SPDX-License-Identifier: Apache-2.0
#include "base/url.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace once {
namespace {

tl::unexpected<Error> fail_url(std::string text) {
  return fail(Remedy::stop, "url", std::move(text));
}

int hex_digit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

Result<std::string> percent_decode(std::string_view text, std::string_view url) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0)
      return fail_url(fmt::format(
          "\"{}\": % must be followed by two hexadecimal digits; write %25 for a percent sign",
          shown_url(url)));
    decoded.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  if (decoded.find('\0') != std::string::npos)
    return fail_url(fmt::format("\"{}\" holds a NUL byte", shown_url(url)));
  return decoded;
}

bool is_scheme(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto more = [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
  };
  return !text.empty() && letter(text[0]) && std::all_of(text.begin(), text.end(), more);
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

Status parse_query(std::string_view query, std::string_view text, Url& url) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    const auto equals = pair.find('=');
    if (equals == std::string_view::npos || equals == 0)
      return fail_url(fmt::format("\"{}\": a parameter is written name=value", shown_url(text)));
    std::string name = ONCE_TRY(percent_decode(pair.substr(0, equals), text));
    if (url.parameter(name) != nullptr)
      return fail_url(fmt::format("\"{}\" gives the parameter {} twice", shown_url(text), name));
    url.parameters.emplace_back(std::move(name),
                                ONCE_TRY(percent_decode(pair.substr(equals + 1), text)));
  }
  return {};
}

// file:///data and file:/data are the same; file://host/data is not ours.
Result<std::string_view> without_authority(std::string_view path, std::string_view text) {
  if (!path.starts_with("//")) return path;
  path.remove_prefix(2);
  if (path.starts_with("localhost/")) path.remove_prefix(9);
  if (!path.empty() && path[0] != '/')
    return fail_url(
        fmt::format("\"{}\" names the host \"{}\"; only local paths can be opened: "
                    "write one slash, or three before an absolute path",
                    text, path.substr(0, path.find('/'))));
  return path;
}

// Takes `//user:password@hosts/` off the path.
Status parse_authority(std::string_view& path, std::string_view text, Url& url) {
  if (!path.starts_with("//")) return {};
  path.remove_prefix(2);
  url.has_hosts = true;
  std::string_view authority = path.substr(0, path.find('/'));
  path.remove_prefix(std::min(path.size(), authority.size() + 1));
  if (const auto at = authority.rfind('@'); at != std::string_view::npos) {
    const std::string_view who = authority.substr(0, at);
    authority.remove_prefix(at + 1);
    const auto colon = std::min(who.find(':'), who.size());
    url.user = ONCE_TRY(percent_decode(who.substr(0, colon), text));
    if (colon < who.size()) url.password = ONCE_TRY(percent_decode(who.substr(colon + 1), text));
  }
  url.hosts = ONCE_TRY(percent_decode(authority, text));
  return {};
}

bool is_local(std::string_view scheme) { return scheme == "file" || scheme == "sqlite"; }

}  // namespace

std::string shown_url(std::string_view text) {
  std::string shown(text.substr(0, text.find('?')));
  if (shown.size() < text.size()) shown += "?...";
  const auto begin = shown.find("://");
  if (begin == std::string::npos) return shown;
  const auto end = std::min(shown.find('/', begin + 3), shown.size());
  const auto at = shown.rfind('@', end);
  if (at == std::string::npos || at < begin) return shown;
  const auto colon = shown.find(':', begin + 3);
  if (colon < at) shown.replace(colon, at - colon, ":***");
  return shown;
}

const std::string* Url::parameter(std::string_view name) const {
  for (const auto& [known, value] : parameters)
    if (known == name) return &value;
  return nullptr;
}

Result<Url> parse_url(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || !is_scheme(text.substr(0, colon)))
    return fail_url(fmt::format("\"{}\" has no scheme; did you mean file:{}?", text,
                                text.empty() ? "DIR/TOPIC" : text));
  Url url;
  for (const char c : text.substr(0, colon))
    url.scheme.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  std::string_view rest = text.substr(colon + 1);
  const auto question = rest.find('?');
  if (question != std::string_view::npos) {
    ONCE_TRY(parse_query(rest.substr(question + 1), text, url));
    rest = rest.substr(0, question);
  }
  if (is_local(url.scheme))
    rest = ONCE_TRY(without_authority(rest, text));
  else
    ONCE_TRY(parse_authority(rest, text, url));
  url.path = ONCE_TRY(percent_decode(rest, text));
  return url;
}

Result<std::vector<Endpoint>> endpoints_of(const Url& url, std::uint16_t port) {
  std::vector<Endpoint> endpoints;
  for (std::string_view rest = url.hosts;;) {
    const std::string_view one = rest.substr(0, rest.find(','));
    Endpoint& endpoint = endpoints.emplace_back();
    endpoint.port = port;
    const auto colon = std::min(one.rfind(':'), one.size());
    if (colon > 0) endpoint.host = one.substr(0, colon);
    const std::string_view digits = one.substr(std::min(one.size(), colon + 1));
    const char* end = digits.data() + digits.size();
    const auto read = std::from_chars(digits.data(), end, endpoint.port);
    if (!digits.empty() && (read.ec != std::errc() || read.ptr != end || endpoint.port == 0))
      return fail_url(fmt::format("\"{}\" is no port; it is a number up to 65535", digits));
    if (one.size() == rest.size()) return endpoints;
    rest.remove_prefix(one.size() + 1);
  }
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> known) {
  std::string_view best;
  std::size_t best_distance = word.size() / 2 + 2;  // farther than this is no guess
  for (const std::string_view candidate : known) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance && distance < candidate.size()) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

Status require_scheme(const Url& url, std::span<const std::string_view> known,
                      std::string_view purpose) {
  if (std::find(known.begin(), known.end(), url.scheme) != known.end()) return {};
  const std::string_view guess = nearest(url.scheme, known);
  return fail_url(fmt::format("no {} has the scheme \"{}:\"{}{}{}; known: {}:", purpose, url.scheme,
                              guess.empty() ? "" : ", did you mean \"", guess,
                              guess.empty() ? "" : ":\"?", fmt::join(known, ":, ")));
}

Status require_parameters(const Url& url, std::span<const std::string_view> known) {
  for (const auto& [name, value] : url.parameters) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    if (known.empty())
      return fail_url(
          fmt::format("\"{}:\" has no parameter \"{}\"; it takes none here", url.scheme, name));
    return fail_url(fmt::format("\"{}:\" has no parameter \"{}\" here; known: {}", url.scheme, name,
                                fmt::join(known, ", ")));
  }
  return {};
}

}  // namespace once
