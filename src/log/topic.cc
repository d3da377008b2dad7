// SPDX-License-Identifier: Apache-2.0
#include "log/topic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/crc32c.h"
#include "log/limits.h"
#include "log/reader.h"
#include "log/recovery.h"
#include "log/segment.h"
#include "log/superblock.h"

namespace once::log {
namespace {

constexpr int topic_version = 1;

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

constexpr std::pair<GapPolicy, std::string_view> gap_names[] = {
    {GapPolicy::refuse, "refuse"}, {GapPolicy::hold, "hold"}, {GapPolicy::accept, "accept"}};

// One line of JSON for people, one line of checksum: a flipped digit of the retention would
// otherwise delete data.
std::string encode(const TopicOptions& options) {
  nlohmann::ordered_json json;
  json["version"] = topic_version;
  json["partitions"] = options.partitions;
  json["segment_bytes_max"] = options.segment_bytes_max;
  json["retention_ms"] = options.retention_ms;
  json["retention_bytes"] = options.retention_bytes;
  for (const auto& [policy, name] : gap_names)
    if (policy == options.gaps) json["gaps"] = name;
  const std::string line = json.dump() + "\n";
  return fmt::format("{}crc32c {:08x}\n", line, crc32c(line));
}

Result<TopicOptions> decode(const std::string& path, const std::string& content) {
  const auto corrupt = [&] {
    return fail(
        Remedy::stop, "corrupt",
        fmt::format("{} is damaged; restore it, the partitions beside it were not touched", path));
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
  TopicOptions options;
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
  if (!known || !check_options(options)) return corrupt();
  return options;
}

bool exists(Files& files, const std::string& path) {
  return files.open(path, OpenMode::read).has_value();
}

Result<std::vector<std::string>> list_if_there(Files& files, const std::string& directory) {
  auto names = files.list(directory);
  if (!names && names.error().tag == "missing") return std::vector<std::string>{};
  return names;
}

bool is_partition_name(const std::string& name) {
  return !name.empty() && name.size() <= 4 &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c); });
}

// Removes the partitions of a topic that carries the mark of deletion, then the mark.
Status finish_deletion(Files& files, const std::string& directory, const std::string& topic) {
  const std::string home = topic_directory(directory, topic);
  for (const std::string& name : ONCE_TRY(list_if_there(files, home))) {
    if (!is_partition_name(name)) continue;
    const std::string partition = home + "/" + name;
    for (const std::string& file : ONCE_TRY(list_if_there(files, partition)))
      ONCE_TRY(files.remove(partition + "/" + file));
    ONCE_TRY(files.remove(partition));
  }
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

Result<PartitionInfo> describe_partition(Files& files, const std::string& directory) {
  PartitionInfo info;
  const auto superblock = read_superblock(files, directory);
  if (!superblock && superblock.error().tag == "missing") return info;  // never written
  if (!superblock) return fail(superblock.error());
  End durable = superblock->durable;
  std::optional<End> told;
  if (auto watermark = Watermark::open_to_read(files, directory, superblock->log_id))
    told = (*watermark)->read();
  if (!told) told = ONCE_TRY(find_durable_end(files, directory, *superblock));
  if (told->address > durable.address) durable = *told;
  info.end_offset = durable.offset;
  const auto segments = ONCE_TRY(list_segments(files, directory));
  info.first_offset = segments.empty() ? superblock->first_offset : segments.front();
  info.segments = static_cast<std::uint32_t>(segments.size());
  std::optional<std::uint64_t> first_address;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    auto file = files.open(segment_path(directory, segments[i]), OpenMode::read);
    if (!file) continue;  // retention was faster
    const Found first = ONCE_TRY(read_first_frame(**file, superblock->log_id, segments[i]));
    if (first.flaw != Flaw::none) continue;
    if (!first_address) first_address = first.header.address;
    if (i + 1 < segments.size()) continue;
    // The producers are in the last segment: its first frame and what came after.
    ProducerTable table;
    FrameWalker walker(**file, 0, {superblock->log_id, first.header.address, segments[i]}, true);
    for (;;) {
      const Found found = ONCE_TRY(walker.next());
      if (found.flaw != Flaw::none) break;
      (void)apply_frame(found.header, found.body, table);
    }
    info.producers = static_cast<std::uint32_t>(table.size());
  }
  info.bytes = static_cast<std::int64_t>(
      durable.address - std::min(durable.address, first_address.value_or(durable.address)));
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

Result<TopicOptions> read_topic(Files& files, const std::string& directory,
                                const std::string& topic) {
  ONCE_TRY(check_name(topic));
  const std::string path = topic_path(directory, topic);
  const auto content = read_file(files, path);
  if (!content && content.error().tag == "missing")
    return fail(Remedy::stop, "missing",
                fmt::format("there is no topic {} in {}; create it first", topic, directory));
  if (!content) return fail(content.error());
  return decode(path, *content);
}

Status create_topic(Files& files, const std::string& directory, const std::string& topic,
                    const TopicOptions& options) {
  ONCE_TRY(check_name(topic));
  ONCE_TRY(check_options(options));
  auto present = read_topic(files, directory, topic);
  if (present) return compare(topic, *present, options);
  if (present.error().tag != "missing") return fail(present.error());

  const std::string home = topic_directory(directory, topic);
  auto lock = files.open(home + "/lock", OpenMode::lock);
  present = read_topic(files, directory, topic);  // another may have been faster
  if (present) return compare(topic, *present, options);
  if (!lock) return fail(lock.error());
  if (exists(files, mark_path(directory, topic)))
    ONCE_TRY(finish_deletion(files, directory, topic));
  for (const std::string& name : ONCE_TRY(list_if_there(files, home)))
    if (is_partition_name(name))
      return fail(Remedy::stop, "corrupt",
                  fmt::format("{} has partitions but no file `topic`; restore it, or move the "
                              "directory away",
                              home));
  ONCE_TRY(replace_file(files, topic_path(directory, topic), encode(options)));
  // The name of the topic's directory, and that of the directory around it.
  ONCE_TRY(files.sync_directory(directory));
  return files.sync_directory(parent_directory(directory));
}

Status delete_topic(Files& files, const std::string& directory, const std::string& topic) {
  ONCE_TRY(check_name(topic));
  const std::string home = topic_directory(directory, topic);
  const bool present = exists(files, topic_path(directory, topic));
  const bool begun = exists(files, mark_path(directory, topic));
  if (!present && !begun) return {};  // asked twice, it happens once and answers the same
  auto lock = ONCE_TRY(files.open(home + "/lock", OpenMode::lock));
  if (present) {
    ONCE_TRY(files.rename(topic_path(directory, topic), mark_path(directory, topic)));
    ONCE_TRY(files.sync_directory(home));
  }
  ONCE_TRY(finish_deletion(files, directory, topic));
  // The lock goes last. A rival that opened it meanwhile finds no topic and says so.
  ONCE_TRY(files.remove(home + "/lock"));
  lock.reset();
  if (ONCE_TRY(list_if_there(files, home)).empty()) ONCE_TRY(files.remove(home));
  return files.sync_directory(directory);
}

Result<std::vector<std::string>> list_topics(Files& files, const std::string& directory) {
  std::vector<std::string> topics;
  for (const std::string& name : ONCE_TRY(files.list(directory)))
    if (check_name(name) && exists(files, topic_path(directory, name))) topics.push_back(name);
  return topics;
}

Result<TopicInfo> describe_topic(Files& files, const std::string& directory,
                                 const std::string& topic) {
  TopicInfo info;
  info.name = topic;
  info.options = ONCE_TRY(read_topic(files, directory, topic));
  for (std::uint32_t i = 0; i < info.options.partitions; ++i) {
    info.partitions.push_back(
        ONCE_TRY(describe_partition(files, partition_directory(directory, topic, i))));
    info.partitions.back().partition = i;
  }
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
Result<TopicInfo> describe_topic(const std::string& directory, const std::string& topic) {
  return log::describe_topic(system_files(), directory, topic);
}

}  // namespace once
