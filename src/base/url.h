// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace once {

// A URL taken apart: `file:data/orders?end=stop`, `kafka://me:secret@a:9092,b:9092/orders?group=x`.
// All parts are percent-decoded, so that any byte but NUL can be written in them.
struct Url {
  std::string scheme;
  bool has_hosts = false;  // two slashes: the next three are there, if only empty
  std::string user;
  std::string password;
  std::string hosts;  // as written: HOST:PORT or [IPV6]:PORT, or several with commas
  std::string path;   // behind the hosts, without the slash between them
  std::vector<std::pair<std::string, std::string>> parameters;

  // The value of a parameter, or nullptr.
  const std::string* parameter(std::string_view name) const;
};

// A server.
struct Endpoint {
  std::string host = "localhost";
  std::uint16_t port = 0;

  auto operator<=>(const Endpoint&) const = default;
};

// All errors of these functions have the tag "url" and show no secret.

// `usual`: the scheme that is most likely meant where a text has none.
Result<Url> parse_url(std::string_view text, std::string_view usual = "file");

// A URL as people may see it: without password and without the values of parameters. Where it can
// be read in more than one way, nothing is shown that may be part of a password; of a text that is
// not a URL at all only a plain path is shown.
std::string shown_url(std::string_view text);

// Whether a path of this machine follows the scheme, and no servers.
bool is_local_scheme(std::string_view scheme);

// How many bytes of a text are its scheme and the colon; 0 if it has none.
std::size_t scheme_bytes(std::string_view text);

// Text with its %41 decoded; a percent sign that stands for nothing is left as it is.
std::string percent_decoded(std::string_view text);

// The servers of a URL, at least one; what is left out is localhost and `port`. IPv6 addresses come
// without their brackets.
std::vector<Endpoint> endpoints_of(const Url& url, std::uint16_t port);

// HOST:PORT, or [IPV6]:PORT.
std::string shown_endpoint(const Endpoint& endpoint);

// Refuses a scheme that is not in `known`; `purpose` ("source", ...) is for the error, which
// names the nearest one.
Status require_scheme(const Url& url, std::span<const std::string_view> known,
                      std::string_view purpose);

// Refuses a parameter that is not in `known`; the error names the nearest one.
Status require_parameters(const Url& url, std::span<const std::string_view> known);

// The one of `known` that is most like `word`, or an empty view when none is.
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

}  // namespace once
