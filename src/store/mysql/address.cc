// SPDX-License-Identifier: Apache-2.0
#include "store/mysql/address.h"

#include <fmt/format.h>

#include "base/url.h"

namespace once {
namespace {

constexpr std::uint16_t default_port = 3306;

tl::unexpected<Error> refuse(std::string text) {
  return fail(Remedy::stop, "url",
              std::move(text) + "; write mysql://user:password@host:3306/database");
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

Result<MysqlAddress> MysqlAddress::parse(std::string_view text) {
  const Url url = ONCE_TRY(parse_url(text));
  if (!url.has_hosts) return refuse("the URL has no //");
  if (url.path.empty()) return refuse("the URL names no database");
  MysqlAddress address;
  address.user = url.user;
  address.password = url.password;
  address.database = url.path;
  const Endpoint server = endpoints_of(url, default_port).front();
  address.host = server.host;
  address.port = server.port;
  for (const auto& parameter : url.parameters)
    ONCE_TRY(set_option(address, parameter.first, parameter.second));
  return address;
}

std::string MysqlAddress::where() const {
  return fmt::format("mysql://{}/{}", shown_endpoint({host, port}), database);
}

}  // namespace once
