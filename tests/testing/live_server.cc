// SPDX-License-Identifier: Apache-2.0
#include "testing/live_server.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace once::testing {
namespace {

constexpr int missing_code = 77;

}  // namespace

LiveServer::LiveServer(const std::string& kind, const LiveServerOptions& options) : kind_(kind) {
  ::chmod(scratch_.directory().c_str(), 0755);  // the server has another user
  std::string arguments = "start " + kind_;
  for (const std::string& setting : options.settings) arguments += " --set " + setting;
  // Defaults that a whole program is run with: NAME=VALUE, separated by semicolons.
  if (const char* const defaults = std::getenv("ONCE_SERVER_DEFAULTS")) {
    std::istringstream all(defaults);
    for (std::string setting; std::getline(all, setting, ';');)
      arguments += " --set '" + setting + "'";
  }
  if (!options.disk.empty()) arguments += " --disk " + options.disk;
  if (options.tls) arguments += " --tls";
  if (!options.locale.empty()) arguments += " --locale " + options.locale;
  if (!options.host.empty()) arguments += " --host " + options.host;
  if (options.port != 0) arguments += " --port " + std::to_string(options.port);
  const Ran ran = run(arguments);
  if (ran.code == missing_code) {
    missing_ = "not on this machine: " + ran.output;
    return;
  }
  if (ran.code != 0) throw std::runtime_error(kind_ + " does not start: " + ran.output);
  url_ = ran.output.substr(0, ran.output.find('\n'));
}

// In memory where there is enough: these tests kill processes, not machines, and a database that
// recovers syncs every file it has.
std::filesystem::path LiveServer::place() {
  constexpr std::uintmax_t enough_bytes = std::uintmax_t{4} << 30;
  const std::filesystem::path memory = "/dev/shm";
  std::error_code missing;
  const std::filesystem::space_info space = std::filesystem::space(memory, missing);
  if (!missing && space.available >= enough_bytes && ::access(memory.c_str(), W_OK) == 0)
    return memory;
  return std::filesystem::temp_directory_path();
}

LiveServer::~LiveServer() {
  if (missing_.empty()) (void)run("remove");
}

LiveServer::Ran LiveServer::run(const std::string& arguments) const {
  std::string command = ONCE_SERVER_SCRIPT " ";
  command += arguments;
  command += " --dir ";
  command += scratch_.path("server");
  command += " 2>&1";
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
  if (!server.missing().empty()) {
    std::printf("skipped: %s\n", server.missing().c_str());
    return missing_code;
  }
  if (const int failed = RUN_ALL_TESTS(); failed != 0) return failed;
  const ::testing::UnitTest& tests = *::testing::UnitTest::GetInstance();
  const bool all_skipped = tests.skipped_test_count() == tests.test_to_run_count();
  return all_skipped ? missing_code : 0;
}

void LiveServer::must(const std::string& action) const {
  if (const Ran ran = run(action); ran.code != 0) throw std::runtime_error(ran.output);
}

void LiveServer::kill() { must("kill"); }
void LiveServer::stop() { must("stop"); }
void LiveServer::start() { must("start"); }
void LiveServer::freeze() { must("freeze"); }
void LiveServer::thaw() { must("thaw"); }
void LiveServer::fill_disk() { must("fill"); }
void LiveServer::free_disk() { must("free"); }
bool LiveServer::is_running() const { return run("status").output == "running\n"; }

}  // namespace once::testing
