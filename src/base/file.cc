// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/mutant.h"

namespace once {
namespace {

tl::unexpected<Error> fail_errno(std::string_view what, const std::string& path) {
  return fail(error_from_errno(errno, what, path));
}

class PosixFile final : public File {
 public:
  PosixFile(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  ~PosixFile() override { ::close(descriptor_); }

  int descriptor() const override { return descriptor_; }

  Result<std::size_t> read_at(std::int64_t offset, std::span<char> into) override {
    std::size_t done = 0;
    while (done < into.size()) {
      const ssize_t got = ::pread(descriptor_, into.data() + done, into.size() - done,
                                  offset + static_cast<std::int64_t>(done));
      if (got == 0) break;
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return fail_errno("read", path_);
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

  Status write_at(std::int64_t offset, std::span<const std::string_view> parts) override {
    std::array<iovec, 64> vectors;
    while (!parts.empty()) {
      const std::size_t count = std::min(parts.size(), vectors.size());
      for (std::size_t i = 0; i < count; ++i)
        vectors[i] = {const_cast<char*>(parts[i].data()), parts[i].size()};
      ONCE_TRY(write_vectors(offset, std::span(vectors).first(count)));
      for (const std::string_view part : parts.first(count))
        offset += static_cast<std::int64_t>(part.size());
      parts = parts.subspan(count);
    }
    return {};
  }

  Status sync() override {
    if (::fdatasync(descriptor_) != 0) return fail_errno("sync", path_);
    return {};
  }

  Result<std::int64_t> size() override {
    struct stat status;
    if (::fstat(descriptor_, &status) != 0) return fail_errno("stat", path_);
    return status.st_size;
  }

  Result<bool> is_in_place() override {
    struct stat opened;
    struct stat named;
    if (::fstat(descriptor_, &opened) != 0) return fail_errno("stat", path_);
    if (::stat(path_.c_str(), &named) == 0)
      return opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return fail_errno("stat", path_);
  }

  Status resize(std::int64_t bytes) override {
    const std::int64_t old = ONCE_TRY(size());
    if (bytes > old) {
      const int number = ::posix_fallocate(descriptor_, old, bytes - old);
      if (number != 0) return fail(error_from_errno(number, "extend", path_));
      return {};
    }
    if (::ftruncate(descriptor_, bytes) != 0) return fail_errno("cut", path_);
    return {};
  }

 private:
  // pwritev may write less than it was given; go on from there.
  Status write_vectors(std::int64_t offset, std::span<iovec> vectors) {
    while (!vectors.empty()) {
      const ssize_t wrote =
          ::pwritev(descriptor_, vectors.data(), static_cast<int>(vectors.size()), offset);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) return fail_errno("write", path_);
      offset += wrote;
      auto left = static_cast<std::size_t>(wrote);
      while (!vectors.empty() && left >= vectors.front().iov_len) {
        left -= vectors.front().iov_len;
        vectors = vectors.subspan(1);
      }
      if (vectors.empty()) break;
      vectors.front().iov_base = static_cast<char*>(vectors.front().iov_base) + left;
      vectors.front().iov_len -= left;
    }
    return {};
  }

  int descriptor_;
  std::string path_;
};

Status make_directories(const std::string& path) {
  if (path.empty() || path == "/" || path == ".") return {};
  struct stat status;
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return {};
    return fail(error_from_errno(ENOTDIR, "make directory", path));
  }
  ONCE_TRY(make_directories(parent_directory(path)));
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return fail_errno("make directory", path);
  return {};
}

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

Status check_regular(int descriptor, const std::string& path) {
  struct stat status;
  if (::fstat(descriptor, &status) != 0) return fail_errno("stat", path);
  if (S_ISREG(status.st_mode)) return {};
  return fail(Remedy::stop, "foreign",
              fmt::format("{} is {}, and a regular file is needed", path, kind_of(status.st_mode)));
}

int flags_of(OpenMode mode) {
  switch (mode) {
    case OpenMode::read: return O_RDONLY;
    case OpenMode::write: return O_RDWR | O_NOFOLLOW;
    case OpenMode::create: return O_RDWR | O_CREAT | O_EXCL;
    case OpenMode::lock: return O_RDWR | O_CREAT | O_NOFOLLOW;
    case OpenMode::ask_lock: return O_RDONLY;
  }
  return O_RDONLY;
}

struct flock whole_file(short type) {
  struct flock range = {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  return range;
}

tl::unexpected<Error> busy(const std::string& path) {
  return fail(Remedy::stop, "busy",
              fmt::format("{} is held by another process; stop that process first", path));
}

// Two locks: flock decides who may write, also against older versions of this program. A lock of
// the open file description beside it can be asked for without taking it, which flock cannot.
Status take_lock(int descriptor, const std::string& path) {
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0)
    return errno == EWOULDBLOCK ? Status(busy(path)) : Status(fail_errno("lock", path));
  struct flock range = whole_file(F_WRLCK);
  // Some network file systems make both the same lock, and ours is in our own way: harmless.
  (void)::fcntl(descriptor, F_OFD_SETLK, &range);
  return {};
}

Status ask_lock(int descriptor, const std::string& path) {
  struct flock range = whole_file(F_RDLCK);
  if (::fcntl(descriptor, F_OFD_GETLK, &range) != 0) return fail_errno("ask for the lock of", path);
  if (range.l_type != F_UNLCK) return busy(path);
  return {};
}

DirectoryEntry::Kind kind_of(int directory, const dirent& entry) {
  if (entry.d_type == DT_REG) return DirectoryEntry::Kind::file;
  if (entry.d_type == DT_DIR) return DirectoryEntry::Kind::directory;
  struct stat status;
  if (entry.d_type != DT_UNKNOWN ||
      ::fstatat(directory, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
    return DirectoryEntry::Kind::other;
  if (S_ISREG(status.st_mode)) return DirectoryEntry::Kind::file;
  return S_ISDIR(status.st_mode) ? DirectoryEntry::Kind::directory : DirectoryEntry::Kind::other;
}

class PosixFiles final : public Files {
 public:
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override {
    if (mode == OpenMode::create || mode == OpenMode::lock)
      ONCE_TRY(make_directories(parent_directory(path)));
    const int descriptor = ::open(path.c_str(), flags_of(mode) | O_NONBLOCK | O_CLOEXEC, 0600);
    if (descriptor < 0) return fail_errno("open", path);
    std::unique_ptr<File> file = std::make_unique<PosixFile>(descriptor, path);
    ONCE_TRY(check_regular(descriptor, path));
    if (mode == OpenMode::lock) ONCE_TRY(take_lock(descriptor, path));
    if (mode == OpenMode::ask_lock) ONCE_TRY(ask_lock(descriptor, path));
    return file;
  }

  Result<std::vector<DirectoryEntry>> entries(const std::string& directory) override {
    DIR* stream = ::opendir(directory.c_str());
    if (stream == nullptr) return fail_errno("list", directory);
    std::vector<DirectoryEntry> found;
    while (const dirent* entry = ::readdir(stream)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..")
        found.push_back({std::string(name), kind_of(::dirfd(stream), *entry)});
    }
    ::closedir(stream);
    std::sort(found.begin(), found.end(),
              [](const DirectoryEntry& a, const DirectoryEntry& b) { return a.name < b.name; });
    return found;
  }

  Status rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) return fail_errno("rename", from);
    return {};
  }

  Status remove(const std::string& path) override {
    if (::remove(path.c_str()) != 0 && errno != ENOENT) return fail_errno("remove", path);
    return {};
  }

  Status sync_directory(const std::string& directory) override {
    const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return fail_errno("open", directory);
    const int answer = ::fsync(descriptor);
    const int number = errno;
    ::close(descriptor);
    if (answer != 0) return fail(error_from_errno(number, "sync", directory));
    return {};
  }
};

}  // namespace

Result<std::vector<std::string>> Files::list(const std::string& directory) {
  std::vector<std::string> names;
  for (DirectoryEntry& entry : ONCE_TRY(entries(directory))) names.push_back(std::move(entry.name));
  return names;
}

Files& system_files() {
  static PosixFiles files;  // stateless, so it may be shared
  return files;
}

Result<std::string> read_file(Files& files, const std::string& path, std::int64_t bytes_max) {
  auto file = ONCE_TRY(files.open(path, OpenMode::read));
  const std::int64_t bytes = ONCE_TRY(file->size());
  if (bytes > bytes_max)
    return fail(Remedy::stop, "foreign",
                fmt::format("{} has {} bytes, but at most {} are read; is this the right file?",
                            path, bytes, bytes_max));
  std::string content(static_cast<std::size_t>(bytes), '\0');
  content.resize(ONCE_TRY(file->read_at(0, content)));
  return content;
}

Status replace_file(Files& files, const std::string& path, std::string_view content) {
  const std::string draft = path + ".new";
  ONCE_TRY(files.remove(draft));
  auto file = ONCE_TRY(files.open(draft, OpenMode::create));
  ONCE_TRY(file->write_at(0, std::span(&content, 1)));
  if (!mutant(Mutant::rename_before_sync)) ONCE_TRY(file->sync());
  ONCE_TRY(files.rename(draft, path));
  return files.sync_directory(parent_directory(path));
}

Error error_from_errno(int number, std::string_view what, const std::string& path) {
  const auto text = [&](std::string_view advice) {
    return fmt::format("cannot {} {}: {}{}{}", what, path, std::strerror(number),
                       advice.empty() ? "" : "; ", advice);
  };
  switch (number) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:  // also the limit of the process (ulimit -f)
      return {Remedy::retry, "full", text("free some space, then try again"), std::nullopt};
    case ENOTDIR:
    case ENOENT: return {Remedy::stop, "missing", text("check the path"), std::nullopt};
    case EEXIST: return {Remedy::stop, "exists", text(""), std::nullopt};
    case EACCES:
    case EPERM:
    case EROFS:
      return {Remedy::stop, "denied", text("check owner, rights and mount"), std::nullopt};
    case ELOOP:
      return {Remedy::stop, "link",
              text("it is a symbolic link, and those are not followed; put the file itself there"),
              std::nullopt};
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return {Remedy::retry, "exhausted", text("raise the limit or close something"), std::nullopt};
    case EIO: return {Remedy::recheck, "io", text("the disk may be failing"), std::nullopt};
    default: return {Remedy::stop, "io", text(""), std::nullopt};
  }
}

std::string parent_directory(const std::string& path) {
  const auto slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  if (slash == 0) return "/";
  return path.substr(0, slash);
}

}  // namespace once
