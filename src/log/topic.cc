// SPDX-License-Identifier: Apache-2.0
#include "log/topic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/crc32c.h"
#include "base/local_path.h"
#include "base/url.h"
#include "log/layout.h"
#include "log/limits.h"
#include "model/hint.h"
#include "model/random.h"

namespace once::log {
namespace {

constexpr int topic_version = 1;
constexpr std::size_t id_digits = 32;
using Kind = DirectoryEntry::Kind;

std::string topic_path(const std::string& directory, const std::string& topic) {
  return topic_directory(directory, topic) + "/topic";
}
// Its presence says that the topic is being deleted, so that a half-deleted one is no topic and
// what is left of it may go.
std::string mark_path(const std::string& directory, const std::string& topic) {
  return topic_directory(directory, topic) + "/deleted";
}

Status check_name(const std::string& topic) {
  const bool fits = !topic.empty() && topic.size() <= topic_name_bytes_max && topic[0] != '.' &&
                    std::all_of(topic.begin(), topic.end(), [](unsigned char c) {
                      return c < 128 && (std::isalnum(c) || c == '.' || c == '_' || c == '-');
                    });
  if (fits) return {};
  return fail(
      Remedy::stop, "name",
      fmt::format("a topic's name has 1 to {} letters, digits, '.', '_' or '-' and does not "
                  "begin with '.'; \"{}\" is none",
                  topic_name_bytes_max, topic));
}

Status check_options(const TopicOptions& options) {
  if (options.partitions < 1 || options.partitions > partitions_max)
    return fail(
        Remedy::stop, "config",
        fmt::format("a topic has 1 to {} partitions, not {}", partitions_max, options.partitions));
  if (options.segment_bytes_max < segment_bytes_least ||
      options.segment_bytes_max > segment_bytes_most)
    return fail(Remedy::stop, "config",
                fmt::format("segment_bytes_max must be between {} and {}, not {}",
                            segment_bytes_least, segment_bytes_most, options.segment_bytes_max));
  if (options.retention_ms < -1 || options.retention_bytes < -1)
    return fail(Remedy::stop, "config", "a retention is -1 (for ever) or not negative");
  return {};
}

// What to do about a topic's file, which is lost or damaged.
std::string way_out(const std::string& path) {
  return fmt::format("Restore it from a copy, or see what {} can save",
                     hint({"topic", "repair", "file:" + parent_directory(path)}));
}

constexpr std::pair<GapPolicy, std::string_view> gap_names[] = {
    {GapPolicy::refuse, "refuse"}, {GapPolicy::hold, "hold"}, {GapPolicy::accept, "accept"}};

// One line of JSON for people, one line of checksum: a flipped digit of the retention would
// otherwise delete data.
std::string encode(const TopicFile& file) {
  const TopicOptions& options = file.options;
  nlohmann::ordered_json json;
  json["version"] = topic_version;
  if (!file.id.empty()) json["id"] = file.id;
  json["partitions"] = options.partitions;
  json["segment_bytes_max"] = options.segment_bytes_max;
  json["retention_ms"] = options.retention_ms;
  json["retention_bytes"] = options.retention_bytes;
  for (const auto& [policy, name] : gap_names)
    if (policy == options.gaps) json["gaps"] = name;
  if (file.is_written) json["written"] = true;
  const std::string line = json.dump() + "\n";
  return fmt::format("{}crc32c {:08x}\n", line, crc32c(line));
}

// Files of older versions have no id and do not say whether they were written.
bool decode_identity(const nlohmann::json& json, TopicFile& file) {
  if (const auto id = json.find("id"); id != json.end()) {
    if (!id->is_string()) return false;
    file.id = id->get<std::string>();
    const bool is_id = file.id.size() == id_digits &&
                       file.id.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!is_id) return false;
  }
  const auto written = json.find("written");
  if (written != json.end() && !written->is_boolean()) return false;
  file.is_written = written != json.end() && written->get<bool>();
  return true;
}

Result<TopicFile> decode(const std::string& path, const std::string& content) {
  const auto corrupt = [&] {
    return fail(Remedy::stop, "corrupt",
                fmt::format("{} is damaged; the partitions beside it were not touched. {}", path,
                            way_out(path)));
  };
  const std::size_t end = content.find('\n');
  if (end == std::string::npos) return corrupt();
  const std::string line = content.substr(0, end + 1);
  if (content != fmt::format("{}crc32c {:08x}\n", line, crc32c(line))) return corrupt();
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("version") || !json["version"].is_number_integer())
    return corrupt();
  if (json["version"] != topic_version)
    return fail(Remedy::stop, "version",
                fmt::format("{} has version {}, this program knows version {}", path,
                            json["version"].dump(), topic_version));
  const auto number = [&](const char* name) -> std::int64_t {
    const auto found = json.find(name);
    return found != json.end() && found->is_number_integer() ? found->get<std::int64_t>() : -2;
  };
  TopicFile file;
  TopicOptions& options = file.options;
  const std::int64_t partitions = number("partitions");
  options.partitions =
      partitions > 0 && partitions <= partitions_max ? static_cast<std::uint32_t>(partitions) : 0;
  options.segment_bytes_max = number("segment_bytes_max");
  options.retention_ms = number("retention_ms");
  options.retention_bytes = number("retention_bytes");
  const auto gaps = json.find("gaps");
  bool known = false;
  for (const auto& [policy, name] : gap_names) {
    if (gaps == json.end() || *gaps != name) continue;
    options.gaps = policy;
    known = true;
  }
  if (!known || !check_options(options) || !decode_identity(json, file)) return corrupt();
  return file;
}

std::string draw_id(const Random& random) {
  std::array<std::uint64_t, 2> halves;
  for (std::uint64_t& half : halves) half = random ? random() : random_number();
  return fmt::format("{:016x}{:016x}", halves[0], halves[1]);
}

// Without the right to look it is not known, and that is an error.
Result<bool> exists(Files& files, const std::string& path) {
  const auto file = files.open(path, OpenMode::read);
  if (!file && file.error().tag != "missing") return fail(file.error());
  return file.has_value();
}

Result<std::vector<DirectoryEntry>> entries_if_there(Files& files, const std::string& directory) {
  auto entries = files.entries(directory);
  if (!entries && entries.error().tag == "missing") return std::vector<DirectoryEntry>{};
  return entries;
}

// One that has lost its file is a topic, too.
Result<bool> is_topic(Files& files, const std::string& directory, const std::string& name) {
  const auto file = read_topic(files, directory, name);
  if (file || file.error().tag == "corrupt" || file.error().tag == "version") return true;
  if (file.error().tag == "missing") return false;
  return fail(file.error());
}

// The names of partitions are the numbers below `count`, as we write them.
bool is_partition_name(const std::string& name, std::uint32_t count) {
  std::uint32_t number = 0;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data(), end, number);
  return error == std::errc() && stop == end && number < count && name == std::to_string(number);
}

// What a topic has made, to be deleted in this order. Looks at everything and touches nothing.
class Belongings {
 public:
  Belongings(Files& files, std::string home, std::uint32_t partition_count)
      : files_(files), home_(std::move(home)), partition_count_(partition_count) {}

  // "foreign" when there is something that the topic did not make, or a link in place of it.
  Status collect() {
    paths_.clear();
    for (const DirectoryEntry& entry : ONCE_TRY(entries_if_there(files_, parent_directory(home_))))
      if (home_ == parent_directory(home_) + "/" + entry.name && entry.kind != Kind::directory)
        return foreign(home_);
    for (const DirectoryEntry& entry : ONCE_TRY(entries_if_there(files_, home_))) {
      const std::string path = home_ + "/" + entry.name;
      const bool is_own_file = entry.name == "topic" || entry.name == "topic.new" ||
                               entry.name == "lock" || entry.name == "deleted";
      if (is_own_file && entry.kind == Kind::file) continue;
      if (entry.kind != Kind::directory || !is_partition_name(entry.name, partition_count_))
        return foreign(path);
      ONCE_TRY(collect_partition(path));
    }
    return {};
  }

  Status remove() {
    for (const std::string& path : paths_) ONCE_TRY(files_.remove(path));
    return {};
  }

 private:
  Status collect_partition(const std::string& directory) {
    for (const DirectoryEntry& entry : ONCE_TRY(files_.entries(directory))) {
      const std::string path = directory + "/" + entry.name;
      if (entry.kind != Kind::file || !is_partition_file(entry.name)) return foreign(path);
      paths_.push_back(path);
    }
    paths_.push_back(directory);
    return {};
  }

  tl::unexpected<Error> foreign(const std::string& path) const {
    return fail(Remedy::stop, "foreign",
                fmt::format("{} was not made by the topic, so nothing of {} was deleted; move it "
                            "away first",
                            path, home_));
  }

  Files& files_;
  const std::string home_;
  const std::uint32_t partition_count_;
  std::vector<std::string> paths_;
};

// How many partitions a topic has whose file carries the mark of deletion.
std::uint32_t partitions_at(Files& files, const std::string& path) {
  const auto content = read_file(files, path);
  const auto file = content ? decode(path, *content) : fail(content.error());
  return file ? file->options.partitions : partitions_max;
}

// Removes the partitions of a topic that carries the mark of deletion, then the mark.
Status finish_deletion(Files& files, const std::string& directory, const std::string& topic,
                       Belongings& belongings) {
  const std::string home = topic_directory(directory, topic);
  ONCE_TRY(belongings.remove());
  ONCE_TRY(files.remove(home + "/topic.new"));
  ONCE_TRY(files.sync_directory(home));
  ONCE_TRY(files.remove(mark_path(directory, topic)));
  return files.sync_directory(home);
}

Status compare(const std::string& topic, const TopicOptions& present, const TopicOptions& wanted) {
  if (present == wanted) return {};
  return fail(Remedy::stop, "exists",
              fmt::format("topic {} exists with other options; delete it first, or ask for what it "
                          "has",
                          topic));
}

// Every segment but the last ends where the next begins. What a writer deletes meanwhile is
// skipped.
Status check_chain(Files& files, const std::string& directory, const Layout& layout) {
  const std::uint64_t log_id = layout.superblock.log_id;
  std::optional<std::int64_t> end_offset;
  for (const std::int64_t segment : layout.segments) {
    const std::string path = segment_path(directory, segment);
    auto file = files.open(path, OpenMode::read);
    if (!file && file.error().tag == "missing") {
      end_offset.reset();
      continue;
    }
    if (!file) return fail(file.error());
    if (end_offset && *end_offset != segment)
      return corrupt_file(path, 0,
                          fmt::format("it does not continue the segment before it, whose "
                                      "sound frames end at message {}",
                                      *end_offset));
    if (segment == layout.segments.back()) break;
    const Found first = ONCE_TRY(read_first_frame(**file, log_id, segment));
    if (first.flaw != Flaw::none)
      return corrupt_file(path, 0, fmt::format("the first frame is {}", name_of(first.flaw)));
    const std::int64_t bytes = ONCE_TRY((*file)->size());
    auto index = load_index(files, directory, log_id, segment, bytes);
    if (!index) index = ONCE_TRY(make_index(**file, log_id, segment));
    if (index->bytes != bytes) return corrupt_file(path, index->bytes, "no sound frame is here");
    end_offset = index->end_offset;
  }
  return {};
}

Result<PartitionInfo> describe_partition(Files& files, const std::string& directory,
                                         const TopicFile& topic, bool has_writer) {
  PartitionInfo info;
  const auto layout = read_layout(files, directory);
  if (!layout && layout.error().tag == "missing") {
    if (topic.is_written) return fail(lost_partition(directory));
    return info;
  }
  if (!layout) return fail(layout.error());
  ONCE_TRY(check_chain(files, directory, *layout));
  const ReadableEnd end = ONCE_TRY(find_readable_end(files, directory, *layout, has_writer));
  if (!has_writer && end.frames.address < end.durable.address)
    return fail(Remedy::stop, "corrupt",
                fmt::format("{} has sound frames up to message {}, but messages up to {} were "
                            "durable; restore it from a copy, or see what {} can save",
                            directory, end.frames.offset, end.durable.offset,
                            hint({"topic", "repair", "file:" + parent_directory(directory)})));
  info.first_offset = layout->superblock.first_offset;
  info.end_offset = end.durable.offset;
  info.segments = static_cast<std::uint32_t>(layout->segments.size());
  info.producers = end.producers;
  for (const std::int64_t segment : layout->segments) {
    auto file = files.open(segment_path(directory, segment), OpenMode::read);
    if (!file) continue;  // retention was faster
    const Found first = ONCE_TRY(read_first_frame(**file, layout->superblock.log_id, segment));
    if (first.flaw != Flaw::none) continue;
    const std::uint64_t begin = std::min(end.durable.address, first.header.address);
    info.bytes = static_cast<std::int64_t>(end.durable.address - begin);
    break;
  }
  return info;
}

}  // namespace

std::string topic_directory(const std::string& directory, const std::string& topic) {
  return directory + "/" + topic;
}

std::string partition_directory(const std::string& directory, const std::string& topic,
                                std::uint32_t partition) {
  return fmt::format("{}/{}/{}", directory, topic, partition);
}

std::string lock_path(const std::string& directory, const std::string& topic) {
  return topic_directory(directory, topic) + "/lock";
}

namespace {

// The topic of the directory whose name is most like this one; empty: none is.
std::string topic_like(Files& files, const std::string& directory, const std::string& topic) {
  const auto entries = files.entries(directory);
  if (!entries) return {};
  std::vector<std::string_view> names;
  for (const DirectoryEntry& entry : *entries) {
    if (entry.kind == Kind::file || !check_name(entry.name)) continue;
    const auto is_there = exists(files, topic_path(directory, entry.name));
    if (is_there && *is_there) names.push_back(entry.name);
  }
  return std::string(nearest(topic, names));
}

tl::unexpected<Error> no_topic(Files& files, const std::string& directory,
                               const std::string& topic) {
  const std::string guess = topic_like(files, directory, topic);
  return fail(Remedy::stop, "missing",
              fmt::format("there is no topic {} in {}{}; make it first, with {}", topic,
                          absolute_path(directory),
                          guess.empty() ? "" : fmt::format(", did you mean \"{}\"?", guess),
                          hint({"topic", "create", local_url("file", directory + "/" + topic)})));
}

}  // namespace

Result<TopicFile> read_topic(Files& files, const std::string& directory, const std::string& topic) {
  ONCE_TRY(check_name(topic));
  const std::string path = topic_path(directory, topic);
  const auto content = read_file(files, path);
  if (!content && content.error().tag == "missing") {
    const bool is_deleted = ONCE_TRY(exists(files, mark_path(directory, topic)));
    if (!is_deleted && ONCE_TRY(count_partitions(files, directory, topic)) > 0)
      return fail(Remedy::stop, "corrupt",
                  fmt::format("{} is missing, but there are partitions beside it. {}", path,
                              way_out(path)));
    return no_topic(files, directory, topic);
  }
  if (!content) return fail(content.error());
  return decode(path, *content);
}

Result<std::uint32_t> count_partitions(Files& files, const std::string& directory,
                                       const std::string& topic) {
  std::uint32_t count = 0;
  const std::string home = topic_directory(directory, topic);
  for (const DirectoryEntry& entry : ONCE_TRY(entries_if_there(files, home)))
    if (entry.kind == Kind::directory && is_partition_name(entry.name, partitions_max))
      count = std::max(count, static_cast<std::uint32_t>(std::stoul(entry.name)) + 1);
  return count;
}

Status renew_identity(Files& files, const std::string& directory, const std::string& topic,
                      TopicFile& file) {
  file.id = draw_id({});
  return replace_file(files, topic_path(directory, topic), encode(file));
}

Status mark_written(Files& files, const std::string& directory, const std::string& topic,
                    TopicFile file, const Random& random) {
  if (file.is_written && !file.id.empty()) return {};
  file.is_written = true;
  if (file.id.empty()) file.id = draw_id(random);
  return replace_file(files, topic_path(directory, topic), encode(file));
}

Result<bool> is_locked(Files& files, const std::string& directory, const std::string& topic) {
  const auto lock = files.open(lock_path(directory, topic), OpenMode::ask_lock);
  if (lock || lock.error().tag == "missing") return false;
  if (lock.error().tag == "busy") return true;
  return fail(lock.error());
}

Status create_topic(Files& files, const std::string& directory, const std::string& topic,
                    const TopicOptions& options, const Random& random) {
  ONCE_TRY(check_name(topic));
  ONCE_TRY(check_options(options));
  auto present = read_topic(files, directory, topic);
  if (present) return compare(topic, present->options, options);
  if (present.error().tag != "missing") return fail(present.error());

  const std::string home = topic_directory(directory, topic);
  if (const auto inside = list_topics(files, home); inside && !inside->empty())
    return fail(
        Remedy::stop, "foreign",
        fmt::format("{} is a directory of topics, such as {}, and cannot be a topic itself; "
                    "name one in it: {}",
                    absolute_path(home), inside->front(), local_url("file", home + "/NAME")));
  auto lock = files.open(lock_path(directory, topic), OpenMode::lock);
  present = read_topic(files, directory, topic);  // another may have been faster
  if (present) return compare(topic, present->options, options);
  if (!lock) return fail(lock.error());
  if (const std::string mark = mark_path(directory, topic); ONCE_TRY(exists(files, mark))) {
    Belongings belongings(files, home, partitions_at(files, mark));
    ONCE_TRY(belongings.collect());
    ONCE_TRY(finish_deletion(files, directory, topic, belongings));
  }
  const TopicFile file{.options = options, .id = draw_id(random)};
  ONCE_TRY(replace_file(files, topic_path(directory, topic), encode(file)));
  // The name of the topic's directory, and that of the directory around it.
  ONCE_TRY(files.sync_directory(directory));
  return files.sync_directory(parent_directory(directory));
}

Status delete_topic(Files& files, const std::string& directory, const std::string& topic) {
  ONCE_TRY(check_name(topic));
  const std::string home = topic_directory(directory, topic);
  const bool present = ONCE_TRY(exists(files, topic_path(directory, topic)));
  const bool begun = ONCE_TRY(exists(files, mark_path(directory, topic)));
  // Asked twice, it happens once and answers the same; what was never a topic is refused.
  if (!present && !begun) {
    const auto file = read_topic(files, directory, topic);
    if (!file && file.error().tag != "missing") return fail(file.error());
    return Belongings(files, home, 0).collect();
  }
  const std::string path = present ? topic_path(directory, topic) : mark_path(directory, topic);
  Belongings belongings(files, home, partitions_at(files, path));
  ONCE_TRY(belongings.collect());  // before the lock is made, if it is missing
  auto lock = ONCE_TRY(files.open(lock_path(directory, topic), OpenMode::lock));
  ONCE_TRY(belongings.collect());  // what a writer has left that was faster
  if (present) {
    ONCE_TRY(files.rename(topic_path(directory, topic), mark_path(directory, topic)));
    ONCE_TRY(files.sync_directory(home));
  }
  ONCE_TRY(finish_deletion(files, directory, topic, belongings));
  // The lock goes last. A rival that opened it meanwhile finds no topic and says so.
  ONCE_TRY(files.remove(lock_path(directory, topic)));
  lock.reset();
  if (ONCE_TRY(entries_if_there(files, home)).empty()) ONCE_TRY(files.remove(home));
  return files.sync_directory(directory);
}

Result<std::vector<std::string>> list_topics(Files& files, const std::string& directory) {
  std::vector<std::string> topics;
  for (const DirectoryEntry& entry : ONCE_TRY(files.entries(directory)))
    if (entry.kind != Kind::file && check_name(entry.name) &&
        ONCE_TRY(is_topic(files, directory, entry.name)))
      topics.push_back(entry.name);
  return topics;
}

Result<TopicInfo> inspect_topic(Files& files, const std::string& directory,
                                const std::string& topic) {
  const TopicFile file = ONCE_TRY(read_topic(files, directory, topic));
  TopicInfo info{topic, file.id, file.options, {}};
  const bool has_writer = ONCE_TRY(is_locked(files, directory, topic));
  for (std::uint32_t i = 0; i < file.options.partitions; ++i) {
    auto found =
        describe_partition(files, partition_directory(directory, topic, i), file, has_writer);
    if (!found && found.error().tag != "corrupt") return fail(found.error());
    if (!found) found = PartitionInfo{.damage = found.error().text};
    info.partitions.push_back(std::move(*found));
    info.partitions.back().partition = i;
  }
  return info;
}

Result<TopicInfo> describe_topic(Files& files, const std::string& directory,
                                 const std::string& topic) {
  TopicInfo info = ONCE_TRY(inspect_topic(files, directory, topic));
  for (const PartitionInfo& partition : info.partitions)
    if (!partition.damage.empty()) return fail(Remedy::stop, "corrupt", partition.damage);
  return info;
}

}  // namespace once::log

namespace once {

Status create_topic(const std::string& directory, const std::string& topic,
                    const TopicOptions& options) {
  return log::create_topic(system_files(), directory, topic, options);
}
Status delete_topic(const std::string& directory, const std::string& topic) {
  return log::delete_topic(system_files(), directory, topic);
}
Result<std::vector<std::string>> list_topics(const std::string& directory) {
  return log::list_topics(system_files(), directory);
}
Result<TopicInfo> inspect_topic(const std::string& directory, const std::string& topic) {
  return log::inspect_topic(system_files(), directory, topic);
}
Result<TopicInfo> describe_topic(const std::string& directory, const std::string& topic) {
  return log::describe_topic(system_files(), directory, topic);
}

}  // namespace once
