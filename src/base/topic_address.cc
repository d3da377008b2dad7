// SPDX-License-Identifier: Apache-2.0
#include "base/topic_address.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/url.h"

namespace once {
namespace {

constexpr std::uint16_t kafka_port = 9092;

// All topics of a URL, in a form that is the same for each way to write them.
struct TopicAddress {
  std::string scheme;
  std::vector<Endpoint> brokers;    // none of the embedded log
  std::vector<std::string> topics;  // of the embedded log with its directory
};

// "orders,refunds"; the name of a topic has no comma.
std::vector<std::string> names_in(std::string_view list) {
  std::vector<std::string> names;
  while (true) {
    names.emplace_back(list.substr(0, list.find(',')));
    if (names.back().size() == list.size()) return names;
    list.remove_prefix(names.back().size() + 1);
  }
}

std::vector<Endpoint> brokers_of(const Url& url) {
  std::vector<Endpoint> brokers = endpoints_of(url, kafka_port);
  for (Endpoint& broker : brokers)
    std::transform(broker.host.begin(), broker.host.end(), broker.host.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
  return brokers;
}

std::optional<TopicAddress> address_of(std::string_view text) {
  const auto url = parse_url(text);
  if (!url) return std::nullopt;
  TopicAddress address{.scheme = url->scheme, .brokers = {}, .topics = {}};
  if (url->scheme == "kafka") {
    address.brokers = brokers_of(*url);
    address.topics = names_in(url->path);
  } else if (url->scheme == "file") {
    const auto slash = url->path.find_last_of('/');
    const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
    for (const std::string& name : names_in(std::string_view(url->path).substr(begin)))
      address.topics.push_back(absolute_path(url->path.substr(0, begin) + name));
  } else {
    return std::nullopt;
  }
  return address;
}

bool share_a_broker(const TopicAddress& one, const TopicAddress& other) {
  return std::any_of(one.brokers.begin(), one.brokers.end(), [&](const Endpoint& broker) {
    return std::find(other.brokers.begin(), other.brokers.end(), broker) != other.brokers.end();
  });
}

}  // namespace

std::optional<SharedTopic> shared_topic(std::string_view one, std::string_view other) {
  const auto first = address_of(one);
  const auto second = address_of(other);
  if (!first || !second || first->scheme != second->scheme) return std::nullopt;
  // The same directory can have two paths, as where one volume is mounted twice.
  const auto is_same = [&](const std::string& topic, const std::string& another) {
    std::error_code error;
    return topic == another || (first->scheme == "file" &&
                                std::filesystem::equivalent(topic, another, error) && !error);
  };
  const auto shared = std::find_first_of(first->topics.begin(), first->topics.end(),
                                         second->topics.begin(), second->topics.end(), is_same);
  if (shared == first->topics.end()) return std::nullopt;
  return SharedTopic{*shared, first->brokers.empty() || share_a_broker(*first, *second)};
}

std::string absolute_path(std::string_view path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(std::filesystem::path(path), error);
  const auto real = std::filesystem::weakly_canonical(absolute, error);
  return (error ? absolute.lexically_normal() : real).string();
}

std::string file_url(std::string_view path) {
  std::string url = "file:";
  for (const char c : absolute_path(path)) {
    if (c == '%' || c == '?')
      url += c == '%' ? "%25" : "%3F";
    else
      url += c;
  }
  return url;
}

std::string absolute_url(std::string_view text) {
  const auto url = parse_url(text);
  if (!url || url->scheme != "file" || url->path.empty()) return std::string(text);
  return file_url(url->path) + std::string(text.substr(std::min(text.find('?'), text.size())));
}

}  // namespace once
