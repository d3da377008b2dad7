// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "log/layout.h"
#include "log/recovery.h"
#include "log/salvage.h"
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
    if (repair_.lost_count > 0) repair_.lost.push_back({superblock_.first_offset, first_offset});
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

// Whether all of it can be read; "corrupt" when not.
Status check_sound(Files& files, const std::string& directory, const TopicFile& topic) {
  const auto verified = verify_partition(files, directory);
  if (verified) return {};
  if (verified.error().tag != "missing") return fail(verified.error());
  return topic.is_written ? fail(lost_partition(directory)) : Status{};
}

class TopicRepairer {
 public:
  TopicRepairer(Files& files, const std::string& directory, const std::string& topic, bool apply,
                std::int64_t now_ms)
      : files_(files), directory_(directory), topic_(topic), apply_(apply), now_ms_(now_ms) {}

  Result<TopicRepair> run() {
    TopicFile file = ONCE_TRY(read_or_count());
    std::vector<std::pair<std::uint32_t, Salvage>> salvages;
    for (std::uint32_t i = 0; i < file.options.partitions; ++i) {
      const std::string path = partition_directory(directory_, topic_, i);
      if (ONCE_TRY(repair_in_place(path, i, file))) continue;
      Salvage& salvage = salvages.emplace_back(i, Salvage(files_, path, now_ms_)).second;
      ONCE_TRY(salvage.look());
      repair_.renews_identity |= salvage.gives_numbers_again();
    }
    if (apply_ && repair_.renews_identity)  // first: whoever reads meanwhile must notice
      ONCE_TRY(renew_identity(files_, directory_, topic_, file));
    for (auto& [number, salvage] : salvages) {
      if (apply_) {
        ONCE_TRY(salvage.apply());
        ONCE_TRY(check_sound(files_, partition_directory(directory_, topic_, number), file));
      }
      add(number, salvage.plan());
    }
    return std::move(repair_);
  }

 private:
  Result<TopicFile> read_or_count() {
    auto file = read_topic(files_, directory_, topic_);
    if (file || file.error().tag != "corrupt") return file;
    TopicFile counted;
    counted.options.partitions = ONCE_TRY(count_partitions(files_, directory_, topic_));
    if (counted.options.partitions == 0) return file;
    counted.is_written = true;
    repair_.resets_options = repair_.renews_identity = true;
    return counted;
  }

  // Whether nothing is left to do.
  Result<bool> repair_in_place(const std::string& path, std::uint32_t number,
                               const TopicFile& file) {
    auto repair = PartitionRepairer(files_, path, apply_, now_ms_).run();
    if (!repair && repair.error().tag != "corrupt") return fail(repair.error());
    if (repair && *repair) add(number, **repair);
    if (repair && *repair && !apply_) return true;
    const Status sound = repair ? check_sound(files_, path, file) : fail(repair.error());
    if (!sound && sound.error().tag != "corrupt") return fail(sound.error());
    return sound.has_value();
  }

  void add(std::uint32_t number, PartitionRepair repair) {
    repair.partition = number;
    repair_.partitions.push_back(std::move(repair));
  }

  Files& files_;
  const std::string& directory_;
  const std::string& topic_;
  const bool apply_;
  const std::int64_t now_ms_;
  TopicRepair repair_;
};

}  // namespace

Result<TopicRepair> repair_topic(Files& files, const std::string& directory,
                                 const std::string& topic, bool apply, Clock& clock) {
  const auto file = read_topic(files, directory, topic);  // before the lock makes its directory
  if (!file && file.error().tag != "corrupt") return fail(file.error());
  auto lock = ONCE_TRY(files.open(lock_path(directory, topic), OpenMode::lock));
  return TopicRepairer(files, directory, topic, apply, clock.now_ms()).run();
}

}  // namespace once::log

namespace once {

Result<TopicRepair> repair_topic(const std::string& directory, const std::string& topic, bool apply,
                                 Clock& clock) {
  return log::repair_topic(system_files(), directory, topic, apply, clock);
}

}  // namespace once
