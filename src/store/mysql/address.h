// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace once {

// What a URL says: mysql://user:password@host:port/database?ssl=verify&ssl-ca=FILE&socket=PATH
struct MysqlAddress {
  std::string user;
  std::string password;
  std::string host = "localhost";
  std::uint16_t port = 3306;
  std::string database;
  std::string socket = {};
  std::string ssl = "prefer";  // off, prefer, require, verify
  std::string ssl_ca = {};
  std::string ssl_cert = {};
  std::string ssl_key = {};

  static Result<MysqlAddress> parse(std::string_view url);
  // For people: without user and password.
  std::string where() const;
};

}  // namespace once
