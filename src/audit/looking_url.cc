// SPDX-License-Identifier: Apache-2.0
#include "audit/looking_url.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "base/url.h"
#include "open/adapters.h"
#include "open/shared_topic.h"

namespace once::audit {
namespace {

// That a source has and its topic has not.
constexpr std::array<std::string_view, 1> end_parameter{"end"};

// The text without these parameters; the others stay as they were written.
std::string without(const std::string& url, std::span<const std::string_view> names) {
  const std::size_t question = url.find('?');
  if (question == std::string::npos) return url;
  std::string made = url.substr(0, question);
  std::string_view rest = std::string_view(url).substr(question + 1);
  char separator = '?';
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    const std::string name = percent_decoded(pair.substr(0, pair.find('=')));
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    made += separator;
    made += pair;
    separator = '&';
  }
  return made;
}

// kafka://a,b/orders,refunds is kafka://a,b/orders and kafka://a,b/refunds.
std::vector<std::string> one_by_one(const std::string& url) {
  const std::size_t question = std::min(url.find('?'), url.size());
  const std::size_t begin = url.find_last_of(":/", question) + 1;
  std::string_view names = std::string_view(url).substr(begin, question - begin);
  std::vector<std::string> urls;
  while (true) {
    const std::string_view name = names.substr(0, names.find(','));
    urls.push_back(url.substr(0, begin) + std::string(name) + url.substr(question));
    if (name.size() == names.size()) return urls;
    names.remove_prefix(name.size() + 1);
  }
}

}  // namespace

Result<LookingUrl> looking_url(const std::string& url) {
  const Url parts = ONCE_TRY(parse_url(url));
  LookingUrl made;
  made.source = url;
  if (const Adapter* adapter = adapter_of_scheme(parts.scheme)) {
    const std::string* group = parts.parameter(adapter->group_parameter);
    if (group != nullptr) made.group = *group;
    made.source = without(url, adapter->reader_parameters);
  }
  made.topic = without(made.source, end_parameter);
  const auto address = topic_address_of(made.topic);
  made.topics = address && address->topics.size() > 1 ? one_by_one(made.topic)
                                                      : std::vector<std::string>{made.topic};
  return made;
}

Result<LookingUrl> looking_url_of_one(const std::string& url) {
  LookingUrl made = ONCE_TRY(looking_url(url));
  if (made.topics.size() == 1) return made;
  return fail(Remedy::stop, "url",
              fmt::format("\"{}\" names several topics; name one", shown_url(url)));
}

}  // namespace once::audit
