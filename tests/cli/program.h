// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace once::testing {

using Json = nlohmann::ordered_json;

// What a run of the binary left behind.
struct Answer {
  int exit_code = -1;  // 128 + N when it died by signal N
  std::string out;
  std::string err;

  Json json() const { return Json::parse(out, nullptr, false); }
  std::vector<std::string> lines() const;
  // The error of the last line of stderr, written for machines.
  Json error() const;
};

// The binary `once` as a child process whose input we hold. Destroying it kills it.
class Program {
 public:
  // What it may have of a resource (setrlimit).
  struct Limit {
    int resource;
    rlim_t value;
  };
  explicit Program(std::vector<std::string> arguments, const std::string& out_path = "",
                   const std::vector<Limit>& limits = {});
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  pid_t pid() const { return pid_; }
  void feed(const std::string& input);
  void close_input();
  // What it has written to stdout so far, waiting until that ends with `end`.
  std::string read_until(const std::string& end);
  Answer wait();

 private:
  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  int err_ = -1;
  Answer run_;
};

// Runs it to its end.
Answer run_once(std::vector<std::string> arguments, const std::string& input = "",
                const std::string& out_path = "");

}  // namespace once::testing
