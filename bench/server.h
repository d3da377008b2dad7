// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/store.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness.h"
#include "peer.h"

namespace once::bench {

// A kind of server that this build can talk to.
struct ServerKind {
  std::string name;   // as tools/server.py calls it
  std::string title;  // as people do
  std::function<Result<std::unique_ptr<Store>>(std::string_view url)> open_store;
  std::function<std::unique_ptr<Peer>(const std::string& url)> connect;
};

std::vector<ServerKind> server_kinds();

// The accounts of all messages, and the table of ids that the recipes by hand have.
void make_accounts(const ServerKind& kind, Peer& peer);

// A server of this benchmark, made by tools/server.py in the measured directory; gone at the end.
class Server {
 public:
  // `settings` are NAME=VALUE. Nothing where this machine does not have it; that is said.
  static std::unique_ptr<Server> start(const Settings& settings, const std::string& name,
                                       const std::vector<std::string>& server_settings = {});
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  const std::string& url() const { return url_; }

 private:
  explicit Server(const Settings& settings);

  Workspace workspace_;
  std::string url_;
};

}  // namespace once::bench
