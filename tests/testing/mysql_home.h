// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "store/mysql/mysql.h"
#include "testing/live_server.h"

namespace once::testing {

// As PostgresHome: a MariaDB, whose places are databases.
struct MysqlHome {
  static constexpr const char* name = "mysql";
  // Only a commit is written so: what else has these letters is in small ones.
  static constexpr const char* commit_mark = "COMMIT";
  // No transaction can change the schema: it would be committed.
  static constexpr bool schema_commits = true;
  static constexpr const char* effect_table =
      "CREATE TABLE effect (number BIGINT AUTO_INCREMENT PRIMARY KEY, id VARBINARY(1024) NOT NULL)";
  static constexpr const char* kinds_table =
      "CREATE TABLE kinds (a BIGINT, b DOUBLE, c TEXT, d BLOB, e TEXT)";

  static LiveServer& server() {
    static LiveServer made("mariadb");
    return made;
  }
  static void administer(const std::string& statement, const std::string& url = server().url()) {
    auto admin = MysqlConnection::open(MysqlAddress::parse(url).value()).value();
    if (const auto done = admin->ask(statement); !done) throw std::runtime_error(done.error().text);
  }
  static std::string make_place() {
    static int places = 0;
    std::string place = fmt::format("place_{}", ++places);
    administer("CREATE DATABASE " + place);
    return place;
  }
  static std::string in(const std::string& place, const std::string& url = server().url()) {
    return url.substr(0, url.rfind('/') + 1) + place;
  }
  static Result<std::unique_ptr<Store>> open(const std::string& url,
                                             ServerStoreOptions options = {}) {
    return MysqlStore::open(url, std::move(options));
  }
};

}  // namespace once::testing
