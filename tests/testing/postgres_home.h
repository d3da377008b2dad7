// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "store/postgres/postgres.h"
#include "testing/live_server.h"

namespace once::testing {

// Where the stores of a test program live: a PostgreSQL of its own, and in it a place (a schema)
// for each test that asks for one. Other homes (mysql_home.h) have the same members.
struct PostgresHome {
  static constexpr const char* name = "postgres";
  // Only a commit is written so: what else has these letters is in small ones.
  static constexpr const char* commit_mark = "COMMIT";
  static constexpr const char* effect_table =
      "CREATE TABLE effect (number BIGSERIAL PRIMARY KEY, id BYTEA NOT NULL)";
  static constexpr const char* kinds_table =
      "CREATE TABLE kinds (a BIGINT, b DOUBLE PRECISION, c TEXT, d BYTEA, e TEXT)";

  static LiveServer& server() {
    static LiveServer made("postgresql");
    return made;
  }
  // As the administrator, who may do everything.
  static void administer(const std::string& statements, const std::string& url = server().url()) {
    auto admin = PgConnection::open(url, "admin").value();
    if (const Status done = admin->script(statements); !done)
      throw std::runtime_error(done.error().text);
  }
  static std::string make_place() {
    static int places = 0;
    std::string place = fmt::format("place_{}", ++places);
    administer("CREATE SCHEMA " + place);
    return place;
  }
  // The URL of a place on the server of this URL.
  static std::string in(const std::string& place, const std::string& url = server().url()) {
    return url + "?options=-csearch_path%3D" + place;
  }
  static Result<std::unique_ptr<Store>> open(const std::string& url,
                                             ServerStoreOptions options = {}) {
    return PostgresStore::open(url, std::move(options));
  }
};

}  // namespace once::testing
