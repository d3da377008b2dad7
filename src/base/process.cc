// SPDX-License-Identifier: Apache-2.0
#include "base/process.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>

namespace once {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string host_name() {
  std::array<char, 65> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == 0) return "?";
  return name.data();
}

// Where process numbers mean what they mean here: this boot of this machine, this container.
std::string numbering() {
  const std::string boot = text_of("/proc/sys/kernel/random/boot_id").substr(0, 8);
  std::array<char, 64> space{};
  if (::readlink("/proc/self/ns/pid", space.data(), space.size() - 1) < 0 || boot.empty())
    return {};
  std::string digits;
  for (const char c : std::string_view(space.data()))
    if (c >= '0' && c <= '9') digits += c;
  return fmt::format("{}.{}", boot, digits);
}

struct Running {
  char state = '?';
  std::string start = {};  // in ticks since the boot; empty: it cannot be seen
};

// The fields of /proc/PID/stat behind the program's name, which may contain anything.
Running running(long pid) {
  const std::string stat = text_of(fmt::format("/proc/{}/stat", pid));
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return {};
  constexpr int start_field = 20;  // the state is the first
  Running found;
  std::size_t at = name_end + 2;
  for (int field = 1; field < start_field && at < stat.size(); ++field) {
    if (field == 1) found.state = stat[at];
    at = stat.find(' ', at);
    if (at == std::string::npos) return found;
    ++at;
  }
  found.start = stat.substr(at, stat.find(' ', at) - at);
  return found;
}

}  // namespace

std::string process_identity() {
  const std::string where = numbering();
  const long pid = ::getpid();
  if (where.empty()) return fmt::format("{}:{}", host_name(), pid);
  return fmt::format("{}:{} {}.{}", host_name(), pid, where, running(pid).start);
}

bool process_is_gone(std::string_view identity) {
  const std::size_t blank = identity.find(' ');
  const std::size_t colon = identity.substr(0, blank).rfind(':');
  if (blank == std::string_view::npos || colon == std::string_view::npos) return false;
  const std::string where = numbering();
  const std::string_view life = identity.substr(blank + 1);
  if (where.empty() || !life.starts_with(where + ".")) return false;
  const std::string_view start = life.substr(where.size() + 1);
  pid_t pid = 0;
  const char* const end = identity.data() + blank;
  const auto parsed = std::from_chars(identity.data() + colon + 1, end, pid);
  if (parsed.ec != std::errc() || parsed.ptr != end || pid <= 0 || start.empty()) return false;
  if (::kill(pid, 0) != 0 && errno == ESRCH) return true;
  const Running now = running(pid);
  if (now.start.empty()) return false;  // there, and not ours to look at
  return now.start != start || now.state == 'Z' || now.state == 'X';
}

}  // namespace once
