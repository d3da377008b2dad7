// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace once {

// A file that is read and written at offsets. One thread may write while others read.
class File {
 public:
  virtual ~File() = default;
  // Fills the buffer from `offset`; answers fewer bytes only at the end of the file.
  [[nodiscard]] virtual Result<std::size_t> read_at(std::int64_t offset, std::span<char> into) = 0;
  // Writes all parts one after another. After an error any prefix may have been written.
  [[nodiscard]] virtual Status write_at(std::int64_t offset,
                                        std::span<const std::string_view> parts) = 0;
  // Makes everything written so far survive a power cut. After an error nobody knows what is on
  // disk, and a second call proves nothing: the file must not be written any more.
  [[nodiscard]] virtual Status sync() = 0;
  [[nodiscard]] virtual Result<std::int64_t> size() = 0;
  // Cuts the file or extends it with zeros; an extension also reserves the space on disk.
  [[nodiscard]] virtual Status resize(std::int64_t bytes) = 0;
  // Whether its path still leads to it: neither it nor a directory above it was removed, renamed or
  // replaced. Without a directory that others change, always so.
  [[nodiscard]] virtual Result<bool> is_in_place() { return true; }
  // For calls that send or map it without reading it here; -1: it has none. Closed with the file.
  virtual int descriptor() const { return -1; }
};

// What is made is for its owner alone: files 0600, directories 0700, less what the umask takes
// away. Only `read` and `ask_lock` follow a symbolic link; the others answer "link".
enum class OpenMode : std::uint8_t {
  read,      // must exist
  write,     // must exist
  create,    // must not exist; missing directories are made
  lock,      // made when missing, and ours until it is closed; "busy" while another process has it
  ask_lock,  // must exist; "busy" while another process has it as its lock. Locks nothing itself
};

// A name in a directory and what it stands for; a symbolic link is `other`, whatever it points to.
struct DirectoryEntry {
  enum class Kind : std::uint8_t { file, directory, other };
  std::string name;
  Kind kind = Kind::file;

  bool operator==(const DirectoryEntry&) const = default;
};

// The file system; the only way to it, so that a simulator can lose, tear and corrupt.
class Files {
 public:
  virtual ~Files() = default;
  // What is not a regular file (a directory, a FIFO, a device) has the tag "foreign"; opening it
  // does not wait for anybody.
  [[nodiscard]] virtual Result<std::unique_ptr<File>> open(const std::string& path,
                                                           OpenMode mode) = 0;
  // What is in a directory, sorted by name. A directory that does not exist has the tag "missing".
  [[nodiscard]] virtual Result<std::vector<DirectoryEntry>> entries(
      const std::string& directory) = 0;
  // Replaces `to`. Durable after sync_directory.
  [[nodiscard]] virtual Status rename(const std::string& from, const std::string& to) = 0;
  // A file or an empty directory. Removing what is not there is no error.
  [[nodiscard]] virtual Status remove(const std::string& path) = 0;
  // Makes names that were created, renamed or removed in this directory survive a power cut.
  [[nodiscard]] virtual Status sync_directory(const std::string& directory) = 0;

  // Only the names of `entries`.
  [[nodiscard]] Result<std::vector<std::string>> list(const std::string& directory);
};

Files& system_files();

constexpr std::int64_t small_file_bytes_max = 64 << 20;

// The whole of a small file; one that is larger than `bytes_max` is refused before it is read.
[[nodiscard]] Result<std::string> read_file(Files& files, const std::string& path,
                                            std::int64_t bytes_max = small_file_bytes_max);

// Replaces a file so that after a crash there is the old content or the new, never a part:
// write `path.new`, sync it, rename it, sync the directory.
[[nodiscard]] Status replace_file(Files& files, const std::string& path, std::string_view content);

// What an errno of a file system call means for us.
Error error_from_errno(int number, std::string_view what, const std::string& path);

std::string parent_directory(const std::string& path);

}  // namespace once
