// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace once::testing {
namespace {

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  return ends;
}

// Appends what is there; false at the end.
bool read_some(int descriptor, std::string& into) {
  std::array<char, 65536> buffer;
  const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
  if (got > 0) into.append(buffer.data(), static_cast<std::size_t>(got));
  return got > 0;
}

}  // namespace

std::vector<std::string> Answer::lines() const {
  std::vector<std::string> lines;
  std::istringstream stream(out);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

Json Answer::error() const {
  const auto end = err.find_last_not_of('\n');
  if (end == std::string::npos) return {};
  const auto newline = err.find_last_of('\n', end);
  const std::string last = err.substr(newline == std::string::npos ? 0 : newline + 1);
  const Json json = Json::parse(last, nullptr, false);
  return json.is_object() && json.contains("error") ? json["error"] : Json();
}

Program::Program(std::vector<std::string> arguments, const std::string& out_path,
                 const std::vector<Limit>& limits) {
  ::signal(SIGPIPE, SIG_IGN);
  const auto in = make_pipe();
  const auto out = make_pipe();
  const auto err = make_pipe();
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork");
  if (pid_ == 0) {
    ::signal(SIGPIPE, SIG_DFL);
    const int to = out_path.empty() ? out[1] : ::open(out_path.c_str(), O_WRONLY);
    ::dup2(in[0], STDIN_FILENO);
    ::dup2(to, STDOUT_FILENO);
    ::dup2(err[1], STDERR_FILENO);
    std::string name = "once";
    std::vector<char*> words{name.data()};
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    for (const Limit& limit : limits) {
      const rlimit both{limit.value, limit.value};
      ::setrlimit(static_cast<__rlimit_resource>(limit.resource), &both);
    }
    ::execv(ONCE_BINARY, words.data());
    ::_exit(127);
  }
  ::close(in[0]);
  ::close(out[1]);
  ::close(err[1]);
  in_ = in[1];
  out_ = out[0];
  err_ = err[0];
}

Program::~Program() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  close_input();
  ::close(out_);
  ::close(err_);
}

void Program::feed(const std::string& input) {
  std::size_t done = 0;
  while (done < input.size()) {
    const ssize_t wrote = ::write(in_, input.data() + done, input.size() - done);
    if (wrote <= 0) return;  // it does not listen any more; its exit code will tell
    done += static_cast<std::size_t>(wrote);
  }
}

void Program::close_input() {
  if (in_ >= 0) ::close(std::exchange(in_, -1));
}

std::string Program::read_until(const std::string& end) {
  while (!run_.out.ends_with(end))
    if (!read_some(out_, run_.out)) break;
  return run_.out;
}

Answer Program::wait() {
  close_input();
  std::array<pollfd, 2> both{pollfd{out_, POLLIN, 0}, pollfd{err_, POLLIN, 0}};
  while (both[0].fd >= 0 || both[1].fd >= 0) {
    ::poll(both.data(), both.size(), -1);
    if (both[0].revents != 0 && !read_some(out_, run_.out)) both[0].fd = -1;
    if (both[1].revents != 0 && !read_some(err_, run_.err)) both[1].fd = -1;
  }
  int status = 0;
  ::waitpid(std::exchange(pid_, -1), &status, 0);
  run_.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return run_;
}

Answer run_once(std::vector<std::string> arguments, const std::string& input,
                const std::string& out_path) {
  Program program(std::move(arguments), out_path);
  program.feed(input);
  return program.wait();
}

}  // namespace once::testing
