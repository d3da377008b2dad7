// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "log/layout.h"
#include "log/recovery.h"
#include "log/segment.h"
#include "log/topic.h"
#include "log/verify.h"

namespace once::log {
namespace {

// Whole files that are missing in front, and zeros behind: both leave a log that is sound from some
// message on. Nothing is deleted.
class PartitionRepairer {
 public:
  PartitionRepairer(Files& files, std::string directory, bool apply, std::int64_t now_ms)
      : files_(files), directory_(std::move(directory)), apply_(apply), now_ms_(now_ms) {}

  // Nothing when there is nothing to repair.
  Result<std::optional<PartitionRepair>> run() {
    auto superblock = read_superblock(files_, directory_);
    if (!superblock && superblock.error().tag == "missing")
      return std::optional<PartitionRepair>();  // never written, or nothing is left to repair
    if (!superblock) return fail(superblock.error());
    superblock_ = *superblock;
    end_ = superblock_.durable;
    if (auto file = Watermark::open_to_read(files_, directory_, superblock_.log_id))
      if (const auto told = (*file)->read(); told && told->end.address > end_.address)
        end_ = told->end;
    segments_ = ONCE_TRY(list_segments(files_, directory_));
    std::erase_if(segments_, [&](std::int64_t base) { return base < superblock_.first_offset; });
    if (end_.address == 0 && segments_.empty()) return std::optional<PartitionRepair>();  // new
    if (segments_.empty())
      ONCE_TRY(start_again());
    else if (segments_.front() != superblock_.first_offset)
      ONCE_TRY(begin_at(segments_.front()));
    ONCE_TRY(cut_zeros());
    if (!is_needed_) return std::optional<PartitionRepair>();
    ONCE_TRY(find_end());
    return std::optional(repair_);
  }

 private:
  // The numbers of the messages go on where they ended, so that no position is wrong.
  Status start_again() {
    repair_.forgets_producers = true;
    if (apply_) {
      ProducerTable table;
      table.set_horizon(now_ms_);
      (void)ONCE_TRY(create_segment(files_, directory_, superblock_.log_id, end_, table, 0));
    }
    return begin_at(end_.offset);
  }

  Status begin_at(std::int64_t first_offset) {
    is_needed_ = true;
    repair_.lost_count = first_offset - superblock_.first_offset;
    superblock_.first_offset = first_offset;
    ++superblock_.generation;
    return apply_ ? update_superblock(files_, directory_, superblock_) : Status{};
  }

  Status cut_zeros() {
    for (std::size_t i = 0; i + 1 < segments_.size(); ++i) {
      auto file = ONCE_TRY(open(segments_[i]));
      auto next = ONCE_TRY(open(segments_[i + 1]));
      const Found here = ONCE_TRY(read_first_frame(*file, superblock_.log_id, segments_[i]));
      const Found there = ONCE_TRY(read_first_frame(*next, superblock_.log_id, segments_[i + 1]));
      if (here.flaw != Flaw::none || there.flaw != Flaw::none) continue;
      const auto wanted = static_cast<std::int64_t>(there.header.address - here.header.address);
      const std::int64_t bytes = ONCE_TRY(file->size());
      if (wanted <= 0 || bytes <= wanted || !ONCE_TRY(is_zero_from(*file, wanted))) continue;
      is_needed_ = true;
      repair_.cut_bytes += bytes - wanted;
      if (!apply_) continue;
      ONCE_TRY(file->resize(wanted));
      ONCE_TRY(file->sync());
    }
    return {};
  }

  Status find_end() {
    repair_.first_offset = superblock_.first_offset;
    repair_.end_offset = end_.offset;
    if (segments_.empty()) return {};
    const Layout layout{superblock_, std::nullopt, segments_, {}};
    const ReadableEnd end = ONCE_TRY(find_readable_end(files_, directory_, layout, false));
    repair_.end_offset = std::max(end_.offset, end.durable.offset);
    return {};
  }

  Result<std::unique_ptr<File>> open(std::int64_t segment) {
    return files_.open(segment_path(directory_, segment),
                       apply_ ? OpenMode::write : OpenMode::read);
  }

  Files& files_;
  const std::string directory_;
  const bool apply_;
  const std::int64_t now_ms_;
  Superblock superblock_;
  End end_;
  std::vector<std::int64_t> segments_;
  bool is_needed_ = false;
  PartitionRepair repair_;
};

// What cannot be repaired must not be called sound.
Status check_sound(Files& files, const std::string& directory, const TopicFile& topic) {
  const auto verified = verify_partition(files, directory);
  if (verified) return {};
  Error error = verified.error();
  if (error.tag == "missing") {
    if (!topic.is_written) return {};
    error = lost_partition(directory);
  }
  if (error.tag == "corrupt")
    error.text +=
        ". `once topic repair` does not repair this. Restore the file from a copy; or copy what "
        "can still be read to another topic (once consume --json | once produce --json), move this "
        "directory away and use the other";
  return fail(std::move(error));
}

}  // namespace

Result<std::vector<PartitionRepair>> repair_topic(Files& files, const std::string& directory,
                                                  const std::string& topic, bool apply,
                                                  Clock& clock) {
  (void)ONCE_TRY(read_topic(files, directory, topic));  // before the lock makes its directory
  auto lock = ONCE_TRY(files.open(lock_path(directory, topic), OpenMode::lock));
  const TopicFile file = ONCE_TRY(read_topic(files, directory, topic));
  std::vector<PartitionRepair> repairs;
  for (std::uint32_t i = 0; i < file.options.partitions; ++i) {
    PartitionRepairer repairer(files, partition_directory(directory, topic, i), apply,
                               clock.now_ms());
    auto repair = ONCE_TRY(repairer.run());
    if (!repair) {
      ONCE_TRY(check_sound(files, partition_directory(directory, topic, i), file));
      continue;
    }
    repair->partition = i;
    repairs.push_back(*repair);
  }
  return repairs;
}

}  // namespace once::log

namespace once {

Result<std::vector<PartitionRepair>> repair_topic(const std::string& directory,
                                                  const std::string& topic, bool apply,
                                                  Clock& clock) {
  return log::repair_topic(system_files(), directory, topic, apply, clock);
}

}  // namespace once
