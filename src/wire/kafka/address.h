// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace once::kafka {

enum class Role : std::uint8_t { source, sink, cluster };

// A topic of a Kafka cluster and how to reach it:
//
//   kafka://[USER:PASSWORD@]HOST:PORT[,HOST:PORT...]/TOPIC[,TOPIC...][?NAME=VALUE&...]
//
// Only a source has several topics.
// A name with a dot is a property of librdkafka; `properties=FILE` reads many of them, one
// NAME=VALUE a line. Of ours there are, for a source, `group`, `member`, `start` and `end`. A
// cluster is named without a topic.
struct Address {
  std::string hosts;
  std::string topic;                // as it is written; of a source several, with commas
  std::vector<std::string> topics;  // one by one
  std::string group;                // empty: all partitions are ours, without a group
  std::string member;            // of the group, known by this name after a restart; empty: dynamic
  bool start_committed = false;  // where the store has no position, start where the group was
  bool stop_at_end = false;
  bool only_looks = false;  // reads all partitions, and is no member of the group
  std::vector<std::pair<std::string, std::string>> properties;  // in order; later ones win

  static Result<Address> parse(std::string_view url, Role role);
  // What a file with properties says; `name` is for the error, which shows no value.
  Status add_properties(std::string_view text, const std::string& name);
  bool is_member() const { return !group.empty() && !only_looks; }
  // For people; holds no secret.
  std::string where() const;
};

}  // namespace once::kafka
