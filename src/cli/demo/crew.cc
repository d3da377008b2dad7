// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/crew.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <once/clock.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/file.h"

namespace once::cli {
namespace {

constexpr std::int64_t dismissal_ns_max = 5'000'000'000;

// What posix_spawn does in the child before the program starts.
class SpawnPlan {
 public:
  explicit SpawnPlan(const std::string& log_path) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    constexpr int append = O_WRONLY | O_CREAT | O_APPEND;
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, log_path.c_str(), append, 0666);
    // A group of its own: Ctrl-C is for the parent, which ends its children itself.
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes_, 0);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  int spawn(pid_t& pid, std::vector<std::string>& words) const {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    return posix_spawn(&pid, "/proc/self/exe", &actions_, &attributes_, arguments.data(), environ);
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

}  // namespace

Crew::~Crew() {
  for (const Child& child : children_) ::kill(child.pid, SIGKILL);
  for (const Child& child : children_) ::waitpid(child.pid, nullptr, 0);
}

Status Crew::start(const std::string& role) {
  Child child{0, role, ++number_, false, false};
  std::vector<std::string> words{"once",
                                 "demo-role",
                                 role,
                                 "--dir",
                                 settings_.directory,
                                 "--seed",
                                 fmt::format("{}", settings_.seed),
                                 "--messages",
                                 fmt::format("{}", settings_.messages),
                                 "--duplicates",
                                 fmt::format("{}", settings_.duplicates),
                                 "--kills",
                                 fmt::format("{}", settings_.kills),
                                 "--parent",
                                 fmt::format("{}", ::getpid()),
                                 "--number",
                                 fmt::format("{}", child.number)};
  const int error = SpawnPlan(log_path(child)).spawn(child.pid, words);
  if (error != 0) return fail(error_from_errno(error, "start", "a child process"));
  children_.push_back(std::move(child));
  return {};
}

const Child* Crew::find(const std::string& role) const {
  for (const Child& child : children_)
    if (child.role == role && !child.replaced) return &child;
  return nullptr;
}

void Crew::replace(pid_t pid) {
  for (Child& child : children_)
    if (child.pid == pid) child.replaced = true;
}

void Crew::signal(pid_t pid, int number) const { ::kill(pid, number); }

void Crew::kill(pid_t pid) {
  for (Child& child : children_)
    if (child.pid == pid) child.struck = true;
  ::kill(pid, SIGKILL);
}

std::vector<Ending> Crew::reap() {
  std::vector<Ending> endings;
  std::erase_if(children_, [&](const Child& child) {
    int status = 0;
    if (::waitpid(child.pid, &status, WNOHANG) != child.pid) return false;
    Ending ending{child, false, 0};
    if (WIFSIGNALED(status)) {
      ending.killed = WTERMSIG(status) == SIGKILL;
      ending.exit_code = 128 + WTERMSIG(status);
    } else {
      ending.exit_code = WEXITSTATUS(status);
    }
    endings.push_back(std::move(ending));
    return true;
  });
  return endings;
}

std::vector<Ending> Crew::dismiss() {
  for (const Child& child : children_) {
    ::kill(child.pid, SIGCONT);
    ::kill(child.pid, SIGTERM);
  }
  std::vector<Ending> endings;
  const std::int64_t until_ns = system_clock().ticks_ns() + dismissal_ns_max;
  bool killing = false;
  while (!children_.empty()) {
    for (Ending& ending : reap()) endings.push_back(std::move(ending));
    if (!killing && system_clock().ticks_ns() > until_ns) {
      for (const Child& child : children_) ::kill(child.pid, SIGKILL);
      killing = true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return endings;
}

std::string Crew::log_path(const Child& child) const {
  return fmt::format("{}/journal/{}-{}.log", settings_.directory, child.role, child.number);
}

std::string Crew::last_words(const Child& child) const {
  const auto log = read_file(system_files(), log_path(child));
  if (!log) return "it said nothing";
  std::string last = "it said nothing";
  std::size_t at = 0;
  for (std::size_t end = 0; (end = log->find('\n', at)) != std::string::npos; at = end + 1)
    if (log->compare(at, 6, "once: ") == 0) last = log->substr(at + 6, end - at - 6);
  return last;
}

}  // namespace once::cli
