// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/log.h>
#include <once/result.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "log/segment.h"
#include "log/superblock.h"

namespace once::log {

// What can be kept of a partition that recovery refuses: the sound segments behind the last damage,
// or, when that is in the last segment, what is sound in front of it. All else is set aside under
// another name; nothing is deleted.
//
// Nobody may write the partition meanwhile. After a crash in `apply` the partition is damaged as
// before, and a salvage can be made again.
class Salvage {
 public:
  Salvage(Files& files, std::string directory, std::int64_t now_ms)
      : files_(files), directory_(std::move(directory)), now_ms_(now_ms) {}

  // Reads all of it and changes nothing. "version" when it is not ours.
  [[nodiscard]] Status look();

  const PartitionRepair& plan() const { return plan_; }
  // The numbers of lost messages are given to others, so the topic needs another identity.
  bool gives_numbers_again() const { return gives_numbers_again_; }

  [[nodiscard]] Status apply();

 private:
  struct Examined {
    std::int64_t base_offset = 0;
    bool begins = false;        // its first frame is sound
    bool is_whole = false;      // so are all others
    std::int64_t position = 0;  // in the file, where the sound frames end
    End begin;
    End end;  // of its sound frames
  };

  Status find_log();
  Status ask_segments();
  Status examine_all();
  Result<Examined> examine(std::int64_t base_offset, bool is_last);
  Status note_largest(File& file);
  void choose();
  void make_plan();
  void note_damage(const std::string& path, std::int64_t position, std::string_view what);
  Status start_again();
  Status keep_chosen();
  Status cut_tail(const Examined& tail);
  Status write_superblock(const Superblock& superblock);
  Status set_aside(const std::string& name);
  bool keeps_nothing() const { return run_begin_ == examined_.size(); }

  Files& files_;
  const std::string directory_;
  const std::int64_t now_ms_;
  std::vector<std::string> names_;  // of the files
  std::optional<Superblock> superblock_;
  std::uint64_t log_id_ = 0;  // 0: not known
  End durable_;               // as it was told
  std::int64_t largest_ = 0;  // no message behind this number is known of
  std::vector<Examined> examined_;
  std::size_t run_begin_ = 0;  // the first segment that is kept
  bool is_cut_ = false;        // the last one is not kept whole, or messages behind it are gone
  bool gives_numbers_again_ = false;
  PartitionRepair plan_;
};

}  // namespace once::log
