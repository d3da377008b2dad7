// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "testing/random.h"

namespace once::testing {

class SimFiles;

// A disk that keeps only what POSIX promises. Until a file is synced, a power cut keeps any part
// of what was written to it: nothing, a prefix, a torn last write, or any subset of its sectors.
// Until a directory is synced, names that were made, renamed or removed in it may be as before;
// syncing the file itself does not save its name. Seeded: the same calls lose the same bytes.
//
// A machine has one disk and some processes, each with its own view (SimFiles). Not thread-safe.
class SimDisk {
 public:
  static constexpr std::size_t sector_bytes = 512;

  explicit SimDisk(std::uint64_t seed);
  SimDisk(const SimDisk&) = delete;
  SimDisk& operator=(const SimDisk&) = delete;
  ~SimDisk();

  // All processes are dead, unsynced bytes and names are lost in part. Afterwards the disk can be
  // used through new views.
  void power_cut();

  // Flips one bit of a file, in memory and on disk. False if the file is not that long.
  bool flip_bit(const std::string& path, std::int64_t bit);

  // From now on at most this many bytes in all files; -1: no limit.
  void set_space_bytes_max(std::int64_t bytes) { space_bytes_max_ = bytes; }
  std::int64_t used_bytes() const;

  // The next sync of a file fails, the dirty data is dropped, and the sync after it succeeds: what
  // Linux does (fsyncgate).
  void fail_next_sync(bool fails = true) { fail_next_sync_ = fails; }
  bool sync_will_fail() const { return fail_next_sync_; }

  // Changes to files and directories so far: writes, syncs, names.
  std::uint64_t operations() const { return operations_; }

  // The content of a file as a power cut that loses everything unsynced would leave it.
  std::optional<std::string> durable(const std::string& path) const;
  std::vector<std::string> paths() const;  // of all files, as they are seen now

 private:
  friend class SimFiles;
  friend class SimFile;

  struct Change {
    std::int64_t offset = 0;  // of a write; the new size of a resize
    std::string bytes;
    bool resize = false;
  };
  struct Inode {
    bool directory = false;
    std::string current;
    std::string durable;
    std::vector<Change> unsynced;
    const SimFiles* locked_by = nullptr;
  };
  // A name that came (inode) or went (no inode); a rename is one of each, told apart by `from`.
  struct NameChange {
    std::string path;
    std::string from;
    std::shared_ptr<Inode> inode;
  };
  using Names = std::map<std::string, std::shared_ptr<Inode>>;

  static void apply(const NameChange& change, Names& names);
  static void apply(const Change& change, std::string& content);
  void change_name(NameChange change);
  void cut_names();
  void cut_file(Inode& inode);
  void keep_sectors(const Change& change, std::uint32_t per_thousand, std::string& content);
  Status make_directories(const std::string& path);
  bool has_children(const std::string& path) const;

  Random random_;
  Names names_;
  Names durable_names_;
  std::map<std::string, std::vector<NameChange>> unsynced_names_;  // by directory
  std::uint64_t operations_ = 0;
  std::uint64_t generation_ = 0;  // grows with each power cut
  std::int64_t space_bytes_max_ = -1;
  bool fail_next_sync_ = false;
};

// The view that one process has of a disk. Its death takes effect at once: no call of it changes
// anything any more, also not from destructors.
class SimFiles final : public Files {
 public:
  explicit SimFiles(SimDisk& disk);
  SimFiles(const SimFiles&) = delete;
  SimFiles& operator=(const SimFiles&) = delete;
  ~SimFiles() override;

  // The process ends; what it wrote stays in the machine. Its locks are free.
  void kill();
  // The process throws SimulatedDeath at its n-th change from now (1: the next), which is done in
  // part or not at all. 0: never.
  void die_at(std::uint64_t change) { changes_left_ = change; }
  bool alive() const;

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override;
  Result<std::vector<DirectoryEntry>> entries(const std::string& directory) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  Status sync_directory(const std::string& directory) override;

 private:
  friend class SimFile;

  Status begin_read(const std::string& path) const;
  Status begin_change(const std::string& path);  // throws SimulatedDeath when it is time
  bool dies_now();
  [[noreturn]] void die();

  SimDisk& disk_;
  std::uint64_t generation_;
  bool killed_ = false;
  std::uint64_t changes_left_ = 0;
};

}  // namespace once::testing
