// SPDX-License-Identifier: Apache-2.0
#include "store/mysql/address.h"

#include <fmt/format.h>

#include <charconv>

namespace once {
namespace {

tl::unexpected<Error> refuse(std::string text) {
  return fail(Remedy::stop, "url",
              std::move(text) + "; write mysql://user:password@host:3306/database");
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

Result<std::string> decoded(std::string_view text) {
  std::string made;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      made += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? digit_of(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? digit_of(text[i + 2]) : -1;
    if (high < 0 || low < 0) return refuse("a % in the URL is not followed by two digits");
    made += static_cast<char>(high << 4 | low);
    i += 2;
  }
  return made;
}

std::string_view cut(std::string_view& rest, char separator) {
  const std::size_t at = rest.find(separator);
  const std::string_view head = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view() : rest.substr(at + 1);
  return head;
}

Status set_option(MysqlAddress& address, std::string_view name, std::string value) {
  if (name == "socket")
    address.socket = std::move(value);
  else if (name == "ssl-ca")
    address.ssl_ca = std::move(value);
  else if (name == "ssl-cert")
    address.ssl_cert = std::move(value);
  else if (name == "ssl-key")
    address.ssl_key = std::move(value);
  else if (name == "ssl" &&
           (value == "off" || value == "prefer" || value == "require" || value == "verify"))
    address.ssl = std::move(value);
  else if (name == "ssl")
    return refuse(fmt::format("ssl is \"{}\", but must be off, prefer, require or verify", value));
  else
    return refuse(
        fmt::format("mysql: has no parameter \"{}\"; known: ssl, ssl-ca, ssl-cert, "
                    "ssl-key, socket",
                    name));
  return {};
}

}  // namespace

Result<MysqlAddress> MysqlAddress::parse(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return refuse("the URL has no //");
  std::string_view options = url.substr(scheme + 3);
  std::string_view rest = cut(options, '?');
  MysqlAddress address;
  if (const std::size_t at = rest.rfind('@'); at != std::string_view::npos) {
    std::string_view who = rest.substr(0, at);
    rest = rest.substr(at + 1);
    address.user = ONCE_TRY(decoded(cut(who, ':')));
    address.password = ONCE_TRY(decoded(who));
  }
  std::string_view host = cut(rest, '/');
  address.database = ONCE_TRY(decoded(rest));
  if (const std::string_view name = cut(host, ':'); !name.empty())
    address.host = ONCE_TRY(decoded(name));
  if (!host.empty()) {
    const auto parsed = std::from_chars(host.data(), host.data() + host.size(), address.port);
    if (parsed.ec != std::errc() || parsed.ptr != host.data() + host.size())
      return refuse(fmt::format("\"{}\" is no port", host));
  }
  if (address.database.empty()) return refuse("the URL names no database");
  while (!options.empty()) {
    std::string_view value = cut(options, '&');
    const std::string_view name = cut(value, '=');
    ONCE_TRY(set_option(address, name, ONCE_TRY(decoded(value))));
  }
  return address;
}

std::string MysqlAddress::where() const {
  return fmt::format("mysql://{}:{}/{}", host, port, database);
}

}  // namespace once
