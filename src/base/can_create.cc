// SPDX-License-Identifier: Apache-2.0
#include "base/can_create.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"

namespace once {
namespace {

// The nearest directory above it that exists. An empty path is the working directory.
std::string directory_above(const std::string& path) {
  struct stat found {};
  std::string directory = parent_directory(path);
  while (!directory.empty() && directory != "/" && directory != "." &&
         ::stat(directory.c_str(), &found) != 0 && errno == ENOENT)
    directory = parent_directory(directory);
  return directory.empty() ? "." : directory;
}

// A file without a name; where the file system has none, one that is removed at once. Rights alone
// do not tell: root has all of them, on a read-only file system, too.
int try_to_create(const std::string& directory) {
  constexpr mode_t owner_only = 0600;
  int handle = ::open(directory.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, owner_only);
  if (handle < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    const std::string name = fmt::format("{}/.once-check-{}", directory, ::getpid());
    handle = ::open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, owner_only);
    if (handle >= 0) ::unlink(name.c_str());
  }
  if (handle < 0) return errno;
  ::close(handle);
  return 0;
}

}  // namespace

Status check_can_create(const std::string& path) {
  const int number = try_to_create(directory_above(path));
  if (number == 0) return {};
  return fail(error_from_errno(number, "create", path));
}

}  // namespace once
