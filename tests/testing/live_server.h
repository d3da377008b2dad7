// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "testing/scratch.h"

namespace once::testing {

struct LiveServerOptions {
  std::vector<std::string> settings = {};  // NAME=VALUE
  std::string disk = {};                   // the size of a file system of its own
  bool tls = false;                        // with certificates, in `path("tls")`
  std::string host = {};                   // a loopback address; empty: 127.0.0.1
  std::uint16_t port = 0;                  // 0: any
  std::string locale = {};                 // under which the server runs
};

// A real server of this test program, made by tools/server.py in a directory of its own. Where the
// machine does not have it, `missing` says why, and the program reports itself as skipped.
class LiveServer {
 public:
  explicit LiveServer(const std::string& kind, const LiveServerOptions& options = {});
  LiveServer(const LiveServer&) = delete;
  LiveServer& operator=(const LiveServer&) = delete;
  ~LiveServer();

  const std::string& kind() const { return kind_; }
  const std::string& missing() const { return missing_; }
  const std::string& url() const { return url_; }
  // The same through another port: that of a proxy.
  std::string url_at(std::uint16_t port) const;
  std::uint16_t port() const;
  // Of a file in its directory.
  std::string path(const std::string& name) const { return scratch_.path("server/" + name); }

  void kill();
  void start();
  void stop();
  // Connections stay open and nothing answers, until it is thawed.
  void freeze();
  void thaw();
  // Some servers end themselves, when their disk is full.
  bool is_running() const;
  void fill_disk();
  void free_disk();

 private:
  struct Ran {
    int code = 0;
    std::string output;
  };
  static std::filesystem::path place();
  Ran run(const std::string& arguments) const;
  void must(const std::string& action) const;

  const std::string kind_;
  Scratch scratch_{place()};
  std::string url_;
  std::string missing_;
};

// What a program of live tests does after InitGoogleTest: 77 where the machine has no such server,
// or does not permit any of what was asked for.
int run_all_on(const LiveServer& server);

}  // namespace once::testing
