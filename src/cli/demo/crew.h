// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/demo/load.h"

namespace once::cli {

// A child process with a role.
struct Child {
  pid_t pid = 0;
  std::string role;
  std::int64_t number = 0;  // counts all children; its files are DIR/journal/ROLE-NUMBER.*
  bool replaced = false;    // it lives, but another has its role now
  bool struck = false;      // it was sent SIGKILL
};

// How a child ended, as the kernel told it.
struct Ending {
  Child child;
  bool killed = false;  // by SIGKILL
  int exit_code = 0;    // if it was not killed
};

// The demo's child processes: this binary again, each in a role. Their talk goes to
// DIR/journal/ROLE-NUMBER.log. They die with us; destroying the crew kills who is left. Used by
// one thread.
class Crew {
 public:
  // `number` is that of the last child before; it is counted on.
  Crew(const DemoSettings& settings, std::int64_t& number) : settings_(settings), number_(number) {}
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew();

  [[nodiscard]] Status start(const std::string& role);
  // The living child in this role, or nullptr.
  const Child* find(const std::string& role) const;
  // It keeps running, but `find` no longer knows it.
  void replace(pid_t pid);
  void signal(pid_t pid, int number) const;
  void kill(pid_t pid);

  // Those who ended since the last call.
  std::vector<Ending> reap();
  // Asks all to end, waits for them, and kills who does not.
  std::vector<Ending> dismiss();

  // The last error that this child told: "error[tag]: text".
  std::string last_words(const Child& child) const;

 private:
  std::string log_path(const Child& child) const;

  const DemoSettings settings_;
  std::int64_t& number_;
  std::vector<Child> children_;
};

}  // namespace once::cli
