// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "testing/scratch.h"

namespace once::testing {

// A real server of this test program, made by tools/server.py in a directory of its own. Where the
// machine does not have it, `missing` says why, and the program reports itself as skipped.
class LiveServer {
 public:
  explicit LiveServer(const std::string& kind, const std::vector<std::string>& settings = {});
  LiveServer(const LiveServer&) = delete;
  LiveServer& operator=(const LiveServer&) = delete;
  ~LiveServer();

  const std::string& missing() const { return missing_; }
  const std::string& url() const { return url_; }
  // The same through another port: that of a proxy.
  std::string url_at(std::uint16_t port) const;
  std::uint16_t port() const;

  void kill();
  void start();
  void stop();

 private:
  struct Ran {
    int code = 0;
    std::string output;
  };
  Ran run(const std::string& arguments) const;

  const std::string kind_;
  Scratch scratch_;
  std::string url_;
  std::string missing_;
};

// What a program of live tests does after InitGoogleTest: 77 where the machine has no such server.
int run_all_on(const LiveServer& server);

}  // namespace once::testing
