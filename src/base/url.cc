// SPDX-License-Identifier: Apache-2.0
#include "base/url.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstddef>

#include "base/hex.h"

namespace once {
namespace {

tl::unexpected<Error> fail_url(std::string text) {
  return fail(Remedy::stop, "url", std::move(text));
}

// The byte that is written as a percent sign and two digits here, or -1.
int escaped_byte(std::string_view text, std::size_t at) {
  if (text[at] != '%' || at + 2 >= text.size()) return -1;
  return hex_byte(text[at + 1], text[at + 2]);
}

Result<std::string> percent_decode(std::string_view text, std::string_view url) {
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '%' && escaped_byte(text, i) < 0)
      return fail_url(fmt::format(
          "\"{}\": % must be followed by two hexadecimal digits; write %25 for a percent sign",
          shown_url(url)));
  std::string decoded = percent_decoded(text);
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
                    shown_url(text), path.substr(0, path.find_first_of(":@/"))));
  return path;
}

// An @ that is not the one behind the credentials would be read in two ways: libpq takes the first
// for the end of a password, others the last. Nobody guesses where a password ends.
Status check_at_sign(std::string_view rest, std::string_view text) {
  if (!rest.starts_with("//")) return {};
  const auto first = rest.find('@');
  const auto end = rest.find_first_of("/?", 2);
  if (first == std::string_view::npos || (first < end && first == rest.rfind('@'))) return {};
  return fail_url(
      fmt::format("\"{}\" has an @ that may or may not end its password; write / ? @ in a password "
                  "as %2F %3F %40, and any other @ as %40",
                  shown_url(text)));
}

// Host and port of one server; a port that is not one is empty and has `is_wrong`.
struct HostPort {
  std::string_view host;
  std::string_view port;
  bool is_wrong = false;
};

bool is_port(std::string_view digits) {
  std::uint16_t port = 0;
  const char* end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, port);
  return read.ec == std::errc() && read.ptr == end && port != 0;
}

// `host`, `host:port`, `[address]:port`: the colons of an IPv6 address are inside the brackets.
HostPort split_host(std::string_view one) {
  const bool bracketed = one.starts_with('[');
  const auto close = bracketed ? one.find(']') : 0;
  if (close == std::string_view::npos) return {{}, {}, true};
  const auto colon = std::min(one.find(':', close), one.size());
  const std::string_view port = one.substr(std::min(one.size(), colon + 1));
  if (!port.empty() && !is_port(port)) return {one.substr(0, colon), {}, true};
  if (!bracketed) return {one.substr(0, colon), port, false};
  if (close == 1 || colon != close + 1) return {{}, {}, true};
  return {one.substr(1, close - 1), port, false};
}

// What is between commas.
std::vector<std::string_view> split_hosts(std::string_view hosts) {
  std::vector<std::string_view> parts;
  while (true) {
    parts.push_back(hosts.substr(0, hosts.find(',')));
    if (parts.back().size() == hosts.size()) return parts;
    hosts.remove_prefix(parts.back().size() + 1);
  }
}

// Text behind the colon of a host is only shown if it is a port: a password whose @ is missing
// stands there, too.
std::string shown_hosts_and_path(std::string_view text) {
  const std::string_view hosts = text.substr(0, text.find('/'));
  std::string shown;
  for (const std::string_view one : split_hosts(hosts)) {
    if (!shown.empty()) shown += ',';
    const HostPort split = split_host(one);
    if (split.is_wrong) return shown + std::string(split.host) + ":***";
    shown += one;
  }
  return shown + std::string(text.substr(hosts.size()));
}

// Takes `//user:password@hosts/` off the path.
Status parse_authority(std::string_view& path, std::string_view text, Url& url) {
  if (!path.starts_with("//")) return {};
  path.remove_prefix(2);
  url.has_hosts = true;
  std::string_view authority = path.substr(0, path.find('/'));
  path.remove_prefix(std::min(path.size(), authority.size() + 1));
  if (const auto at = authority.find('@'); at != std::string_view::npos) {
    const std::string_view who = authority.substr(0, at);
    authority.remove_prefix(at + 1);
    const auto colon = std::min(who.find(':'), who.size());
    url.user = ONCE_TRY(percent_decode(who.substr(0, colon), text));
    if (colon < who.size()) url.password = ONCE_TRY(percent_decode(who.substr(colon + 1), text));
  }
  url.hosts = ONCE_TRY(percent_decode(authority, text));
  for (const std::string_view one : split_hosts(url.hosts))
    if (split_host(one).is_wrong)
      return fail_url(
          fmt::format("\"{}\": a server is written HOST, HOST:PORT or [IPV6]:PORT, with a port up "
                      "to 65535",
                      shown_url(text)));
  return {};
}

std::string lower(std::string_view text) {
  std::string made;
  for (const char c : text)
    made.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  return made;
}

tl::unexpected<Error> no_scheme(std::string_view text, std::string_view usual) {
  if (text.find('=') != std::string_view::npos)
    return fail_url(
        "what was given has no scheme; names and values (host=...) are not read: write a URL, for "
        "example postgresql://USER:PASSWORD@HOST/DATABASE");
  const std::string shown = shown_url(text);
  return fail_url(fmt::format("\"{}\" has no scheme; did you mean {}:{}?", shown, usual,
                              shown == text && !text.empty() ? shown
                              : usual == "file"              ? "DIR/TOPIC"
                                                             : "PATH"));
}

}  // namespace

bool is_local_scheme(std::string_view scheme) { return scheme == "file" || scheme == "sqlite"; }

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int byte = escaped_byte(text, i);
    decoded.push_back(byte < 0 ? text[i] : static_cast<char>(byte));
    if (byte >= 0) i += 2;
  }
  return decoded;
}

std::size_t scheme_bytes(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || !is_scheme(text.substr(0, colon))) return 0;
  return colon + 1;
}

std::string shown_url(std::string_view text) {
  const std::string scheme(text.substr(0, scheme_bytes(text)));
  std::string_view rest = text.substr(scheme.size());
  if (scheme.empty())  // a path, or anything at all
    return rest.find_first_of(":@=?%& \t\r\n") == std::string_view::npos ? std::string(rest)
                                                                         : "***";
  const auto question = rest.find('?');
  const bool hides_more = question != std::string_view::npos;
  const std::string tail = hides_more ? "?..." : "";
  const bool late_at = hides_more && rest.find('@', question) != std::string_view::npos;
  rest = rest.substr(0, question);
  if (!rest.starts_with("//")) {
    const bool local = is_local_scheme(lower(scheme.substr(0, scheme.size() - 1)));
    return local ? scheme + std::string(rest) + tail : scheme + (rest.empty() ? tail : "...");
  }
  rest.remove_prefix(2);
  const auto at = rest.rfind('@');
  if (at == std::string_view::npos && !late_at)
    return scheme + "//" + shown_hosts_and_path(rest) + tail;
  // A name is no secret; where there is no colon, nobody knows whether it is a name.
  const auto colon = rest.find(':');
  const bool named = colon != std::string_view::npos && (late_at || colon < at);
  const std::string who =
      scheme + "//" + (named ? std::string(rest.substr(0, colon)) + ":" : "") + "***";
  return late_at ? who + tail : who + "@" + shown_hosts_and_path(rest.substr(at + 1)) + tail;
}

const std::string* Url::parameter(std::string_view name) const {
  for (const auto& [known, value] : parameters)
    if (known == name) return &value;
  return nullptr;
}

Result<Url> parse_url(std::string_view text, std::string_view usual) {
  const std::size_t scheme = scheme_bytes(text);
  if (scheme == 0) return no_scheme(text, usual);
  Url url;
  url.scheme = lower(text.substr(0, scheme - 1));
  std::string_view rest = text.substr(scheme);
  if (!is_local_scheme(url.scheme)) ONCE_TRY(check_at_sign(rest, text));
  const auto question = rest.find('?');
  if (question != std::string_view::npos) {
    ONCE_TRY(parse_query(rest.substr(question + 1), text, url));
    rest = rest.substr(0, question);
  }
  if (is_local_scheme(url.scheme))
    rest = ONCE_TRY(without_authority(rest, text));
  else
    ONCE_TRY(parse_authority(rest, text, url));
  url.path = ONCE_TRY(percent_decode(rest, text));
  return url;
}

std::vector<Endpoint> endpoints_of(const Url& url, std::uint16_t port) {
  std::vector<Endpoint> endpoints;
  for (const std::string_view one : split_hosts(url.hosts)) {
    const HostPort split = split_host(one);
    Endpoint& endpoint = endpoints.emplace_back();
    endpoint.port = port;
    if (!split.host.empty()) endpoint.host = split.host;
    std::from_chars(split.port.data(), split.port.data() + split.port.size(), endpoint.port);
  }
  return endpoints;
}

std::string shown_endpoint(const Endpoint& endpoint) {
  const bool is_ipv6 = endpoint.host.find(':') != std::string::npos;
  return is_ipv6 ? fmt::format("[{}]:{}", endpoint.host, endpoint.port)
                 : fmt::format("{}:{}", endpoint.host, endpoint.port);
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
    const std::string_view guess = nearest(name, known);
    return fail_url(fmt::format("\"{}:\" has no parameter \"{}\" here{}{}{}; known: {}", url.scheme,
                                name, guess.empty() ? "" : ", did you mean \"", guess,
                                guess.empty() ? "" : "\"?", fmt::join(known, ", ")));
  }
  return {};
}

}  // namespace once
