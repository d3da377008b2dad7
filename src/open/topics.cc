// SPDX-License-Identifier: Apache-2.0
#include "open/topics.h"

#include <array>

#include "base/file.h"
#include "base/url.h"
#include "open/log_address.h"
#ifdef ONCE_WITH_KAFKA
#include "wire/kafka/topics.h"
#endif

#include <fmt/format.h>

namespace once {
namespace {

constexpr std::array schemes = std::to_array<std::string_view>({
    "file",
#ifdef ONCE_WITH_KAFKA
    "kafka",
#endif
});

Result<Url> topic_url(std::string_view text) {
  Url url = ONCE_TRY(parse_url(text));
  ONCE_TRY(require_scheme(url, schemes, "topic"));
  if (url.scheme == "file") ONCE_TRY(require_parameters(url, {}));
  return url;
}

// What was in the topic's directory and is not ours was left alone: say so.
Status check_emptied(const LogAddress& address) {
  const std::string path = address.directory + "/" + address.topic;
  const auto left = system_files().list(path);
  if (!left || left->empty()) return {};
  return fail(Remedy::stop, "foreign",
              fmt::format("{} holds files that are not a topic's, {} for one; they were left alone",
                          path, left->front()));
}

}  // namespace

Status create_topic_at(std::string_view text, const TopicOptions& options) {
  const Url url = ONCE_TRY(topic_url(text));
#ifdef ONCE_WITH_KAFKA
  if (url.scheme == "kafka") return kafka::create_topic(text, options);
#endif
  const LogAddress address = ONCE_TRY(log_address_of(url));
  return create_topic(address.directory, address.topic, options);
}

Status delete_topic_at(std::string_view text) {
  const Url url = ONCE_TRY(topic_url(text));
#ifdef ONCE_WITH_KAFKA
  if (url.scheme == "kafka") return kafka::delete_topic(text);
#endif
  const LogAddress address = ONCE_TRY(log_address_of(url));
  ONCE_TRY(delete_topic(address.directory, address.topic));
  return check_emptied(address);
}

Result<TopicInfo> describe_topic_at(std::string_view text) {
  const Url url = ONCE_TRY(topic_url(text));
#ifdef ONCE_WITH_KAFKA
  if (url.scheme == "kafka") return kafka::describe_topic(text);
#endif
  const LogAddress address = ONCE_TRY(log_address_of(url));
  return describe_topic(address.directory, address.topic);
}

Result<std::vector<TopicInfo>> list_topics_at(std::string_view text) {
  const Url url = ONCE_TRY(topic_url(text));
  std::vector<TopicInfo> topics;
#ifdef ONCE_WITH_KAFKA
  if (url.scheme == "kafka") {
    for (const std::string& name : ONCE_TRY(kafka::list_topics(text)))
      topics.push_back(ONCE_TRY(kafka::describe_topic(fmt::format("{}/{}", text, name))));
    return topics;
  }
#endif
  const std::string directory = url.path.empty() ? "." : url.path;
  for (const std::string& name : ONCE_TRY(list_topics(directory)))
    topics.push_back(ONCE_TRY(describe_topic(directory, name)));
  return topics;
}

}  // namespace once
