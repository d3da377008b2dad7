// SPDX-License-Identifier: Apache-2.0
#include "audit/looking_url.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "base/url.h"

namespace once::audit {
namespace {

// The text without these parameters; the others stay as they were written.
std::string without(const std::string& url, std::initializer_list<std::string_view> names) {
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

}  // namespace

Result<LookingUrl> looking_url(const std::string& url) {
  const Url parts = ONCE_TRY(parse_url(url));
  if (parts.scheme != "kafka") return LookingUrl{url, without(url, {"end"}), {}};
  const std::string* group = parts.parameter("group");
  return LookingUrl{without(url, {"group", "member", "start"}),
                    without(url, {"group", "member", "start", "end"}),
                    group == nullptr ? std::string() : *group};
}

}  // namespace once::audit
