// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace once::testing {

// A directory of its own for one test, in memory where there is such: no power fails here, and each
// schedule has a database of its own, which would cost syncs.
class MemoryScratch {
 public:
  MemoryScratch() {
    const bool in_memory = ::access("/dev/shm", W_OK) == 0;
    const std::filesystem::path base =
        in_memory ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path();
    std::string name = (base / "once-kit-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
  }
  MemoryScratch(const MemoryScratch&) = delete;
  MemoryScratch& operator=(const MemoryScratch&) = delete;
  ~MemoryScratch() {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  std::string path(const std::string& name) const { return directory_ + "/" + name; }

 private:
  std::string directory_;
};

}  // namespace once::testing
