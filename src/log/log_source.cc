// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "log/layout.h"
#include "log/reader.h"
#include "log/superblock.h"
#include "log/topic.h"
#include "model/gone.h"

namespace once::log {
namespace {

constexpr std::size_t read_bytes = 1 << 20;
constexpr std::int64_t nap_ms_max = 5;
// A reader that finds nothing looks this often whether the topic was replaced.
constexpr std::int64_t look_interval_ns = 1'000'000'000;

// One partition as a reader sees it, also while another process writes it, and before it exists.
class PartitionView {
 public:
  PartitionView(Files& files, const std::string& directory, const std::string& topic,
                std::uint32_t index)
      : files_(files),
        log_directory_(directory),
        topic_(topic),
        directory_(partition_directory(directory, topic, index)),
        name_(fmt::format("{}/{}", topic, index)) {}

  const std::string& name() const { return name_; }
  std::int64_t next_offset() const { return next_offset_; }

  // How far the log is durable now.
  Result<End> durable() {
    if (!reader_) ONCE_TRY(open());
    if (!reader_) return End{};
    if (!watermark_) {
      auto watermark = Watermark::open_to_read(files_, directory_, log_id_);
      if (watermark) watermark_ = std::move(*watermark);
    }
    const auto told = watermark_ ? watermark_->read() : std::nullopt;
    if (told && told->end.address > durable_.address) durable_ = told->end;
    return durable_;
  }

  // Whether the files that are read are still those of the partition.
  Result<bool> is_in_place() { return watermark_ ? watermark_->is_in_place() : true; }

  // The next deliveries, at most `count_max`; an empty batch when there are none.
  Result<Batch> next(std::size_t count_max) {
    Batch batch;
    const End end = ONCE_TRY(durable());
    if (handed_ == held_.deliveries.size()) {
      held_ = {};
      handed_ = 0;
      if (next_offset_ < 0) next_offset_ = reader_ ? ONCE_TRY(reader_->first_offset()) : 0;
      if (next_offset_ >= end.offset) return batch;
      held_ = ONCE_TRY(reader_->read(next_offset_, read_bytes, end));
    }
    const std::size_t count = std::min(count_max, held_.deliveries.size() - handed_);
    const auto begin = held_.deliveries.begin() + static_cast<std::ptrdiff_t>(handed_);
    batch.deliveries.assign(begin, begin + static_cast<std::ptrdiff_t>(count));
    handed_ += count;
    for (Delivery& delivery : batch.deliveries) {
      delivery.partition = name_;
      if (delivery.offset < again_until_) delivery.attempt = attempt_;
    }
    next_offset_ = batch.deliveries.back().offset + 1;
    if (next_offset_ >= again_until_) attempt_ = 1;
    batch.partition = name_;
    batch.end_offset = next_offset_;
    batch.available_offset = end.offset;
    batch.memory = held_.memory;
    return batch;
  }

  Status seek(std::int64_t offset) {
    const End end = ONCE_TRY(durable());
    if (offset >= 0) {
      const std::int64_t first = reader_ ? ONCE_TRY(reader_->first_offset()) : 0;
      if (offset < first) return fail(forgotten_error(name_, offset, first));
      if (offset > end.offset && offset > ONCE_TRY(frames_end()))
        return fail(ends_before_error(name_, end.offset, offset));
    }
    go_to(offset);
    again_until_ = 0;
    attempt_ = 1;
    return {};
  }

  void release(std::int64_t offset) {
    if (offset < 0 || (next_offset_ >= 0 && offset >= next_offset_)) return;
    again_until_ = std::max(again_until_, next_offset_);
    ++attempt_;
    go_to(offset);
  }

 private:
  // Without a reader afterwards: the partition was never written.
  Status open() {
    const auto layout = read_layout(files_, directory_);
    if (!layout && layout.error().tag == "missing") return check_never_written();
    if (!layout) return fail(layout.error());
    const bool has_writer = ONCE_TRY(is_locked(files_, log_directory_, topic_));
    durable_ = ONCE_TRY(find_readable_end(files_, directory_, *layout, has_writer)).durable;
    log_id_ = layout->superblock.log_id;
    reader_ = std::make_unique<Reader>(files_, directory_, log_id_);
    return {};
  }

  // A position may be ahead of what a reader is told after a crash, but not of all good frames.
  Result<std::int64_t> frames_end() {
    if (!reader_) return 0;
    const Layout layout = ONCE_TRY(read_layout(files_, directory_));
    return ONCE_TRY(find_readable_end(files_, directory_, layout, true)).frames.offset;
  }

  Status check_never_written() {
    const TopicFile topic = ONCE_TRY(read_topic(files_, log_directory_, topic_));
    // It may have been made since we looked, by a first writer.
    if (!topic.is_written || read_layout(files_, directory_)) return {};
    return fail(lost_partition(directory_));
  }

  void go_to(std::int64_t offset) {
    next_offset_ = offset;
    held_ = {};
    handed_ = 0;
  }

  Files& files_;
  const std::string log_directory_;
  const std::string topic_;
  const std::string directory_;
  const std::string name_;
  std::uint64_t log_id_ = 0;
  std::unique_ptr<Reader> reader_;
  std::unique_ptr<Watermark> watermark_;
  End durable_;
  std::int64_t next_offset_ = -1;
  ReadResult held_;  // read, of which `handed_` were delivered
  std::size_t handed_ = 0;
  std::int64_t again_until_ = 0;  // below this, deliveries are repetitions
  std::uint32_t attempt_ = 1;
};

// A topic as it was when it was opened.
struct OpenedTopic {
  std::string identity;
  // Reads the topic file again, to see whether it is still the same topic.
  std::function<Result<std::string>()> identify;
};

// The reading end of topics: all their partitions in turn. Used by one thread.
class LogSource final : public Source, public SourceReplay {
 public:
  LogSource(std::string name, LogSourceOptions options, std::vector<OpenedTopic> topics,
            std::vector<PartitionView> partitions, Clock& clock)
      : name_(std::move(name)),
        options_(options),
        topics_(std::move(topics)),
        partitions_(std::move(partitions)),
        clock_(clock),
        look_after_ns_(clock.ticks_ns() + look_interval_ns) {}

  SourceTraits traits() const override {
    SourceTraits traits{.name = name_, .ordered = true, .replayable = true};
    // Several topics have no identity in common; their positions are known by the last message.
    if (topics_.size() == 1) traits.identity = topics_.front().identity;
    for (const PartitionView& partition : partitions_)
      traits.partitions.push_back(partition.name());
    return traits;
  }

  SourceReplay* replay() override { return this; }
  Result<std::vector<PartitionEnd>> ends() override {
    std::vector<PartitionEnd> ends;
    for (PartitionView& partition : partitions_) {
      const End end = ONCE_TRY(partition.durable());
      ends.push_back({partition.name(), end.offset});
    }
    return ends;
  }

  Result<Batch> poll(std::size_t count_max, std::int64_t wait_ms) override {
    if (announced_ < partitions_.size()) {
      Batch batch;
      batch.event = Batch::Event::assigned;
      batch.partition = partitions_[announced_++].name();
      return batch;
    }
    // Naps are counted, not measured: a clock that stands still must not keep us here.
    for (std::int64_t waited_ms = 0, nap_ms = 1;; nap_ms = std::min(nap_ms * 2, nap_ms_max)) {
      Batch batch = ONCE_TRY(poll_once(count_max));
      if (batch.event != Batch::Event::messages || !batch.deliveries.empty()) return batch;
      if (waited_ms >= wait_ms || count_max == 0) return batch;
      nap_ms = std::min(nap_ms, wait_ms - waited_ms);
      std::this_thread::sleep_for(std::chrono::milliseconds(nap_ms));
      waited_ms += nap_ms;
    }
  }

  // The position is kept by the reader's store, not here.
  Status ack(std::span<const Delivery>) override { return {}; }

  Status release(std::span<const Delivery> undone, std::int64_t) override {
    for (PartitionView& partition : partitions_) {
      std::int64_t smallest = -1;
      for (const Delivery& delivery : undone)
        if (delivery.partition == partition.name() && (smallest < 0 || delivery.offset < smallest))
          smallest = delivery.offset;
      partition.release(smallest);
    }
    return {};
  }

  Status seek(std::string_view partition, std::int64_t offset) override {
    if (offset < -1) return fail(Remedy::stop, "config", fmt::format("offset {}", offset));
    for (PartitionView& candidate : partitions_)
      if (candidate.name() == partition) return candidate.seek(offset);
    return fail(Remedy::stop, "partition", fmt::format("{} has no {}", name_, partition));
  }

 private:
  // Each partition gets its turn; the one after the last that had something comes first.
  Result<Batch> poll_once(std::size_t count_max) {
    for (std::size_t i = 0; i < partitions_.size() && count_max > 0; ++i) {
      PartitionView& partition = partitions_[(turn_ + i) % partitions_.size()];
      Batch batch = ONCE_TRY(partition.next(count_max));
      if (batch.deliveries.empty()) continue;
      turn_ = (turn_ + i + 1) % partitions_.size();
      return batch;
    }
    ONCE_TRY(check_in_place());
    Batch batch;
    batch.drained = count_max > 0;
    if (options_.stop_at_end && count_max > 0) batch.event = Batch::Event::end;
    return batch;
  }

  // A topic that was replaced is not written where this reader looks: it would wait for ever.
  Status check_in_place() {
    if (clock_.ticks_ns() < look_after_ns_) return {};
    look_after_ns_ = clock_.ticks_ns() + look_interval_ns;
    bool same = true;
    for (const OpenedTopic& topic : topics_) {
      const auto now = topic.identify();
      if (!now && now.error().tag != "missing") return fail(now.error());
      same = same && now && (topic.identity.empty() || *now == topic.identity);
    }
    for (PartitionView& partition : partitions_) same = same && ONCE_TRY(partition.is_in_place());
    if (same) return {};
    return fail(
        Remedy::stop, "gone",
        fmt::format("{} was deleted, moved or replaced while it was read. Start again: what is "
                    "there then is compared with the position, and if it is another topic, the "
                    "error says how to go on",
                    name_));
  }

  const std::string name_;
  const LogSourceOptions options_;
  const std::vector<OpenedTopic> topics_;
  std::vector<PartitionView> partitions_;
  Clock& clock_;
  std::int64_t look_after_ns_;
  std::size_t announced_ = 0;
  std::size_t turn_ = 0;
};

// "orders,refunds"; the name of a topic has no comma.
Result<std::vector<std::string>> names_in(std::string_view list) {
  std::vector<std::string> names;
  while (true) {
    const std::string name(list.substr(0, list.find(',')));
    if (std::find(names.begin(), names.end(), name) != names.end())
      return fail(Remedy::stop, "name", fmt::format("the topic {} is named twice", name));
    names.push_back(name);
    if (name.size() == list.size()) return names;
    list.remove_prefix(name.size() + 1);
  }
}

}  // namespace

Result<std::unique_ptr<Source>> open_log_source(Files& files, const std::string& directory,
                                                const std::string& topics,
                                                const LogSourceOptions& options, Clock& clock) {
  std::vector<OpenedTopic> opened;
  std::vector<PartitionView> partitions;
  for (const std::string& topic : ONCE_TRY(names_in(topics))) {
    const TopicFile file = ONCE_TRY(read_topic(files, directory, topic));
    for (std::uint32_t i = 0; i < file.options.partitions; ++i)
      partitions.emplace_back(files, directory, topic, i);
    opened.push_back({file.id, [&files, directory, topic]() -> Result<std::string> {
                        return ONCE_TRY(read_topic(files, directory, topic)).id;
                      }});
  }
  return std::make_unique<LogSource>(fmt::format("file:{}/{}", directory, topics), options,
                                     std::move(opened), std::move(partitions), clock);
}

}  // namespace once::log

namespace once {

Result<std::unique_ptr<Source>> open_log_source(const std::string& directory,
                                                const std::string& topic,
                                                const LogSourceOptions& options, Clock& clock) {
  return log::open_log_source(system_files(), directory, topic, options, clock);
}

}  // namespace once
