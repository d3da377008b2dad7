// SPDX-License-Identifier: Apache-2.0
#include "server.h"

#include <fmt/format.h>
#include <once/open.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <iostream>

#ifdef ONCE_WITH_POSTGRES
#include "raw_postgres.h"
#endif
#ifdef ONCE_WITH_MYSQL
#include "raw_mysql.h"
#endif

namespace once::bench {
namespace {

constexpr int missing_code = 77;

struct Ran {
  int code = 0;
  std::string output;
};

Ran run_script(const std::string& arguments) {
  const std::string command = std::string(ONCE_SERVER_SCRIPT) + " " + arguments;
  FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) give_up("cannot run " + command);
  Ran ran;
  std::array<char, 4096> buffer;
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe))
    ran.output.append(buffer.data(), count);
  const int status = ::pclose(pipe);
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}

}  // namespace

std::vector<ServerKind> server_kinds() {
  std::vector<ServerKind> kinds;
#ifdef ONCE_WITH_POSTGRES
  kinds.push_back({.name = "postgresql",
                   .title = "PostgreSQL",
                   .open_store = open_postgresql_store,
                   .connect = [](const std::string& url) -> std::unique_ptr<Peer> {
                     return std::make_unique<RawPostgres>(url);
                   }});
#endif
#ifdef ONCE_WITH_MYSQL
  kinds.push_back({.name = "mariadb",
                   .title = "MariaDB",
                   .open_store = open_mysql_store,
                   .connect = [](const std::string& url) -> std::unique_ptr<Peer> {
                     return std::make_unique<RawMysql>(url);
                   }});
#endif
  return kinds;
}

void make_accounts(const ServerKind& kind, Peer& peer) {
  const bool is_postgres = kind.name == "postgresql";
  peer.run("CREATE TABLE account (number INTEGER PRIMARY KEY, balance BIGINT NOT NULL)");
  peer.run(is_postgres ? "INSERT INTO account SELECT i, 0 FROM generate_series(0, 9999) AS i"
                       : "INSERT INTO account SELECT seq, 0 FROM seq_0_to_9999");
  peer.run(fmt::format("CREATE TABLE processed (id {} NOT NULL PRIMARY KEY)",
                       is_postgres ? "UUID" : "BINARY(17)"));
}

Server::Server(const Settings& settings) : workspace_(settings) {}

std::unique_ptr<Server> Server::start(const Settings& settings, const std::string& name,
                                      const std::vector<std::string>& server_settings) {
  std::unique_ptr<Server> server(new Server(settings));
  ::chmod(server->workspace_.directory().c_str(), 0755);  // the server has another user
  std::string arguments = "start " + name + " --dir " + server->workspace_.path("server");
  for (const std::string& setting : server_settings) arguments += " --set " + setting;
  const Ran ran = run_script(arguments);
  if (ran.code == missing_code) {
    std::cout << "skipped: " << name << " is not on this machine\n";
    return nullptr;
  }
  if (ran.code != 0) give_up(name + " does not start");
  server->url_ = ran.output.substr(0, ran.output.find('\n'));
  return server;
}

Server::~Server() {
  if (!url_.empty()) run_script("kill --dir " + workspace_.path("server"));
}

}  // namespace once::bench
