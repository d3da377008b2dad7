// SPDX-License-Identifier: Apache-2.0
#include "base/local_path.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/url.h"

namespace once {

std::string absolute_path(std::string_view path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(std::filesystem::path(path), error);
  const auto real = std::filesystem::weakly_canonical(absolute, error);
  return (error ? absolute.lexically_normal() : real).string();
}

std::string local_url(std::string_view scheme, std::string_view path) {
  std::string url(scheme);
  url += ':';
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
  if (!url || !is_local_scheme(url->scheme) || url->path.empty()) return std::string(text);
  return local_url(url->scheme, url->path) +
         std::string(text.substr(std::min(text.find('?'), text.size())));
}

}  // namespace once
