// SPDX-License-Identifier: Apache-2.0
#include "log/adapter.h"

#include <fmt/format.h>
#include <once/log.h>
#include <sys/stat.h>

#include <array>
#include <functional>

#include "base/local_path.h"
#include "base/url.h"
#include "log/address.h"
#include "model/start_at.h"

namespace once {
namespace {

constexpr std::array<std::string_view, 1> schemes{"file"};
constexpr std::array<std::string_view, 1> source_parameters{"end"};

Result<LogAddress> address_of(std::string_view text) {
  const Url url = ONCE_TRY(parse_url(text));
  ONCE_TRY(require_parameters(url, {}));
  return log_address_of(url);
}

Result<std::unique_ptr<Source>> open_file_source(std::string_view text) {
  const Url url = ONCE_TRY(parse_url(text));
  ONCE_TRY(require_parameters(url, source_parameters));
  const LogAddress address = ONCE_TRY(log_address_of(url));
  LogSourceOptions options;
  if (const std::string* end = url.parameter("end")) {
    if (*end != "stop" && *end != "wait")
      return fail(
          Remedy::stop, "url",
          fmt::format("\"{}\": end is \"{}\", but must be stop or wait", shown_url(text), *end));
    options.stop_at_end = *end == "stop";
  }
  return open_log_source(address.directory, address.topic, options);
}

Result<std::unique_ptr<Sink>> open_file_sink(std::string_view text) {
  const LogAddress address = ONCE_TRY(address_of(text));
  return open_log_sink(address.directory, address.topic);
}

Result<SinkTraits> file_sink_traits(std::string_view text) {
  const LogAddress address = ONCE_TRY(address_of(text));
  return log_sink_traits(address.directory, address.topic);
}

TopicReport report_of(const TopicInfo& info) {
  TopicReport report{.name = info.name,
                     .embedded = true,
                     .segment_bytes_max = info.options.segment_bytes_max,
                     .retention_ms = info.options.retention_ms,
                     .retention_bytes = info.options.retention_bytes,
                     .gaps = info.options.gaps};
  for (const PartitionInfo& partition : info.partitions)
    report.partitions.push_back({partition.first_offset, partition.end_offset, partition.bytes,
                                 partition.segments, partition.producers, partition.damage});
  return report;
}

// The log has no index by time: it is read, up to the first message that is late enough.
Result<std::vector<std::int64_t>> find_time(const LogAddress& address, std::int64_t time_ms) {
  const TopicInfo info = ONCE_TRY(describe_topic(address.directory, address.topic));
  std::vector<std::int64_t> offsets;
  for (const PartitionInfo& partition : info.partitions) offsets.push_back(partition.end_offset);
  std::map<std::string, std::size_t, std::less<>> open;
  LogSourceOptions options;
  options.stop_at_end = true;
  const auto source = ONCE_TRY(open_log_source(address.directory, address.topic, options));
  for (std::size_t i = 0; i < offsets.size(); ++i)
    open.emplace(fmt::format("{}/{}", address.topic, i), i);
  while (!open.empty()) {
    constexpr std::size_t count_max = 1000;
    constexpr std::int64_t wait_ms = 1000;
    const Batch batch = ONCE_TRY(source->poll(count_max, wait_ms));
    if (batch.event == Batch::Event::end) break;
    if (batch.event == Batch::Event::assigned) ONCE_TRY(start_at(*source, batch.partition, -1));
    const auto at = open.find(batch.partition);
    if (batch.event != Batch::Event::messages || at == open.end()) continue;
    for (const Delivery& delivery : batch.deliveries) {
      if (delivery.timestamp_ms < time_ms) continue;
      offsets[at->second] = delivery.offset;
      open.erase(at);
      break;
    }
  }
  return offsets;
}

class LogTopics final : public Topics {
 public:
  Status create(std::string_view url, const TopicRequest& request) const override {
    const LogAddress address = ONCE_TRY(address_of(url));
    TopicOptions options;
    options.partitions = request.partitions;
    options.segment_bytes_max = request.segment_bytes_max.value_or(options.segment_bytes_max);
    options.retention_ms = request.retention_ms.value_or(options.retention_ms);
    options.retention_bytes = request.retention_bytes.value_or(options.retention_bytes);
    options.gaps = request.gaps.value_or(options.gaps);
    return create_topic(address.directory, address.topic, options);
  }

  Status remove(std::string_view url) const override {
    const LogAddress address = ONCE_TRY(address_of(url));
    return delete_topic(address.directory, address.topic);
  }

  Result<TopicReport> describe(std::string_view url) const override {
    const LogAddress address = ONCE_TRY(address_of(url));
    return report_of(ONCE_TRY(describe_topic(address.directory, address.topic)));
  }

  Result<TopicReport> inspect(std::string_view url) const override {
    const LogAddress address = ONCE_TRY(address_of(url));
    return report_of(ONCE_TRY(inspect_topic(address.directory, address.topic)));
  }

  Result<std::vector<TopicReport>> list(std::string_view broker_url) const override {
    const Url url = ONCE_TRY(parse_url(broker_url));
    ONCE_TRY(require_parameters(url, {}));
    const std::string directory = url.path.empty() ? "." : url.path;
    std::vector<TopicReport> topics;
    for (const std::string& name : ONCE_TRY(list_topics(directory))) {
      const auto info = inspect_topic(directory, name);
      if (info)
        topics.push_back(report_of(*info));
      else if (info.error().tag == "corrupt")
        topics.push_back({.name = name, .embedded = true, .damage = info.error().text});
      else
        return fail(info.error());
    }
    return topics;
  }

  Result<std::vector<std::int64_t>> offsets_at_time(std::string_view url,
                                                    std::int64_t time_ms) const override {
    return find_time(ONCE_TRY(address_of(url)), time_ms);
  }

  Result<TopicRepair> repair(std::string_view url, bool apply) const override {
    const LogAddress address = ONCE_TRY(address_of(url));
    return repair_topic(address.directory, address.topic, apply);
  }
};

// The same directory can have two paths, as where one volume is mounted twice.
std::string inode_of(const std::string& path) {
  struct stat found = {};
  if (::stat(path.c_str(), &found) != 0) return {};
  return fmt::format("{}:{}", found.st_dev, found.st_ino);
}

std::optional<TopicAddress> topic_address(const Url& url) {
  const auto slash = url.path.find_last_of('/');
  const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
  TopicAddress address;
  for (const std::string& name : topic_names(std::string_view(url.path).substr(begin))) {
    std::string path = absolute_path(url.path.substr(0, begin) + name);
    std::string inode = inode_of(path);
    address.topics.push_back({std::move(path), std::move(inode)});
  }
  return address;
}

}  // namespace

const Adapter& log_adapter() {
  static const LogTopics topics;
  static const Adapter adapter{.schemes = schemes,
                               .source = open_file_source,
                               .sink = open_file_sink,
                               .sink_traits = file_sink_traits,
                               .has_one_writer = true,
                               .topics = &topics,
                               .topic_address = topic_address};
  return adapter;
}

}  // namespace once
