// SPDX-License-Identifier: Apache-2.0
#include "run_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "harness.h"

namespace once::bench {

Usage run_program(const std::vector<std::string>& arguments, std::optional<double> stop_after_s) {
  std::vector<char*> argv{const_cast<char*>(ONCE_BINARY)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t silent;
  ::posix_spawn_file_actions_init(&silent);
  ::posix_spawn_file_actions_addopen(&silent, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = 0;
  const Stopwatch watch;
  if (::posix_spawn(&pid, ONCE_BINARY, &silent, nullptr, argv.data(), environ) != 0)
    give_up("cannot start " ONCE_BINARY);
  ::posix_spawn_file_actions_destroy(&silent);
  if (stop_after_s) {
    std::this_thread::sleep_for(std::chrono::duration<double>(*stop_after_s));
    ::kill(pid, SIGTERM);
  }
  int status = 0;
  struct rusage used {};
  if (::wait4(pid, &status, 0, &used) != pid) give_up("cannot wait for " ONCE_BINARY);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    give_up(fmt::format(ONCE_BINARY " ended with status {}", status));
  return {watch.seconds(), static_cast<double>(used.ru_maxrss) / 1024};
}

}  // namespace once::bench
