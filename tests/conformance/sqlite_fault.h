// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sqlite3.h>

#include <atomic>
#include <cstddef>
#include <cstring>

namespace once::testing {

// A file system for SQLite that fails when it is told to; otherwise it is the ordinary one. The
// faults are of the whole process.
struct SqliteFault {
  enum class Kind { none, wal_write, wal_full, wal_sync };
  static inline std::atomic<Kind> next{Kind::none};  // fails once, at the next chance
  static inline std::atomic<int> fired{0};

  static bool fires(Kind kind) {
    Kind expected = kind;
    if (!next.compare_exchange_strong(expected, Kind::none)) return false;
    ++fired;
    return true;
  }

  // From now on connections of this process go through here.
  static void install() {
    static sqlite3_vfs vfs;
    if (vfs.zName != nullptr) return;
    real() = sqlite3_vfs_find(nullptr);
    vfs = *real();
    vfs.zName = "once-fault";
    vfs.pNext = nullptr;
    vfs.szOsFile = static_cast<int>(sizeof(FaultFile)) + real()->szOsFile;
    vfs.xOpen = open;
    sqlite3_vfs_register(&vfs, 1);
  }

 private:
  struct FaultFile {
    sqlite3_file base;
    bool is_wal;
  };

  static sqlite3_vfs*& real() {
    static sqlite3_vfs* found = nullptr;
    return found;
  }
  static sqlite3_file* below(sqlite3_file* file) {
    return reinterpret_cast<sqlite3_file*>(reinterpret_cast<char*>(file) + sizeof(FaultFile));
  }
  static bool is_wal(sqlite3_file* file) { return reinterpret_cast<FaultFile*>(file)->is_wal; }

  static int open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out) {
    const int code = real()->xOpen(real(), name, below(file), flags, out);
    file->pMethods = below(file)->pMethods == nullptr ? nullptr : methods();
    reinterpret_cast<FaultFile*>(file)->is_wal = (flags & SQLITE_OPEN_WAL) != 0;
    return code;
  }

  static int write(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 at) {
    if (is_wal(file) && fires(Kind::wal_write)) return SQLITE_IOERR_WRITE;
    if (is_wal(file) && fires(Kind::wal_full)) return SQLITE_FULL;
    return below(file)->pMethods->xWrite(below(file), bytes, count, at);
  }
  static int sync(sqlite3_file* file, int flags) {
    if (is_wal(file) && fires(Kind::wal_sync)) return SQLITE_IOERR_FSYNC;
    return below(file)->pMethods->xSync(below(file), flags);
  }

  // Hands a method on to the real file.
  template <auto Method, class... Arguments>
  static auto forward(sqlite3_file* file, Arguments... arguments) {
    return (below(file)->pMethods->*Method)(below(file), arguments...);
  }

  static const sqlite3_io_methods* methods() {
    using Methods = sqlite3_io_methods;
    static const Methods table = [] {
      Methods made{};
      made.iVersion = 2;
      made.xClose = forward<&Methods::xClose>;
      made.xRead = forward<&Methods::xRead, void*, int, sqlite3_int64>;
      made.xWrite = write;
      made.xTruncate = forward<&Methods::xTruncate, sqlite3_int64>;
      made.xSync = sync;
      made.xFileSize = forward<&Methods::xFileSize, sqlite3_int64*>;
      made.xLock = forward<&Methods::xLock, int>;
      made.xUnlock = forward<&Methods::xUnlock, int>;
      made.xCheckReservedLock = forward<&Methods::xCheckReservedLock, int*>;
      made.xFileControl = forward<&Methods::xFileControl, int, void*>;
      made.xSectorSize = forward<&Methods::xSectorSize>;
      made.xDeviceCharacteristics = forward<&Methods::xDeviceCharacteristics>;
      made.xShmMap = forward<&Methods::xShmMap, int, int, int, void volatile**>;
      made.xShmLock = forward<&Methods::xShmLock, int, int, int>;
      made.xShmBarrier = forward<&Methods::xShmBarrier>;
      made.xShmUnmap = forward<&Methods::xShmUnmap, int>;
      return made;
    }();
    return &table;
  }
};

}  // namespace once::testing
