// SPDX-License-Identifier: Apache-2.0
#include "testing/live_server.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace once::testing {
namespace {

constexpr int missing_code = 77;

}  // namespace

LiveServer::LiveServer(const std::string& kind, const std::vector<std::string>& settings)
    : kind_(kind) {
  ::chmod(scratch_.directory().c_str(), 0755);  // the server has another user
  std::string arguments = "start " + kind_;
  for (const std::string& setting : settings) arguments += " --set " + setting;
  const Ran ran = run(arguments);
  if (ran.code == missing_code) {
    missing_ = kind_ + " is not on this machine";
    return;
  }
  if (ran.code != 0) throw std::runtime_error(kind_ + " does not start: " + ran.output);
  url_ = ran.output.substr(0, ran.output.find('\n'));
}

LiveServer::~LiveServer() {
  if (missing_.empty()) (void)run("kill");
}

LiveServer::Ran LiveServer::run(const std::string& arguments) const {
  const std::string command = std::string(ONCE_SERVER_SCRIPT) + " " + arguments + " --dir " +
                              scratch_.path("server") + " 2>&1";
  FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("popen failed");
  Ran ran;
  std::array<char, 4096> buffer;
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe))
    ran.output.append(buffer.data(), count);
  const int status = ::pclose(pipe);
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}

std::uint16_t LiveServer::port() const {
  const std::size_t at = url_.rfind(':');
  return static_cast<std::uint16_t>(std::strtoul(url_.c_str() + at + 1, nullptr, 10));
}

std::string LiveServer::url_at(std::uint16_t other) const {
  const std::size_t at = url_.rfind(':');
  std::size_t end = at + 1;
  while (end < url_.size() && url_[end] >= '0' && url_[end] <= '9') ++end;
  return url_.substr(0, at + 1) + std::to_string(other) + url_.substr(end);
}

int run_all_on(const LiveServer& server) {
  if (server.missing().empty()) return RUN_ALL_TESTS();
  std::printf("skipped: %s\n", server.missing().c_str());
  return missing_code;
}

void LiveServer::kill() {
  if (const Ran ran = run("kill"); ran.code != 0) throw std::runtime_error(ran.output);
}
void LiveServer::stop() {
  if (const Ran ran = run("stop"); ran.code != 0) throw std::runtime_error(ran.output);
}
void LiveServer::start() {
  if (const Ran ran = run("start"); ran.code != 0) throw std::runtime_error(ran.output);
}

}  // namespace once::testing
