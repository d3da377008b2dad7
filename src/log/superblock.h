// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/file.h"

namespace once::log {

// A place in the log: the address of a byte and the offset of the next message there.
struct End {
  std::uint64_t address = 0;
  std::int64_t offset = 0;

  bool operator==(const End&) const = default;
};

// What a partition knows about itself outside its segments. Kept twice in the file `superblock`,
// each copy with its own checksum; one good copy is enough. `durable` is brought up to date only
// now and then (open, roll, close): the frames themselves carry what happened since.
struct Superblock {
  std::uint64_t log_id = 0;
  std::uint64_t generation = 0;
  End durable;
  std::int64_t first_offset = 0;  // older messages were deleted on purpose

  bool operator==(const Superblock&) const = default;
};

// "missing" when there is none, "corrupt" when both copies are bad, "version" when it is not ours.
[[nodiscard]] Result<Superblock> read_superblock(Files& files, const std::string& directory);
[[nodiscard]] Status create_superblock(Files& files, const std::string& directory,
                                       const Superblock& superblock);
// One copy after the other, each durable before the next is touched.
[[nodiscard]] Status update_superblock(Files& files, const std::string& directory,
                                       const Superblock& superblock);

// What the watermark says.
struct Told {
  End end;                  // durable
  bool is_writing = false;  // a group was on its way behind it

  bool operator==(const Told&) const = default;
};

// The file `watermark`: where the writer tells readers in other processes how far the log is
// durable. It is written before a group is written and after its sync, and never synced itself:
// what it says was durable before, so it may be lost or old but never wrong. Two slots,
// checksummed.
class Watermark {
 public:
  static Result<std::unique_ptr<Watermark>> open_to_write(Files& files,
                                                          const std::string& directory,
                                                          std::uint64_t log_id);
  static Result<std::unique_ptr<Watermark>> open_to_read(Files& files, const std::string& directory,
                                                         std::uint64_t log_id);

  [[nodiscard]] Status publish(const Told& told);
  [[nodiscard]] Result<bool> is_in_place() { return file_->is_in_place(); }
  // Nothing when no slot is good.
  std::optional<Told> read();

 private:
  Watermark(std::unique_ptr<File> file, std::uint64_t log_id)
      : file_(std::move(file)), log_id_(log_id) {}

  std::unique_ptr<File> file_;
  std::uint64_t log_id_;
  std::uint64_t generation_ = 0;
};

}  // namespace once::log
