// SPDX-License-Identifier: Apache-2.0
#include "log/address.h"

#include <fmt/format.h>

namespace once {
namespace {

tl::unexpected<Error> fail_url(std::string text) {
  return fail(Remedy::stop, "url", std::move(text));
}

}  // namespace

Result<LogAddress> log_address_of(const Url& url) {
  std::string_view path = url.path;
  const bool trailing = path.ends_with('/');
  while (path.ends_with('/')) path.remove_suffix(1);
  const auto slash = path.find_last_of('/');
  const std::string_view topic = slash == std::string_view::npos ? path : path.substr(slash + 1);
  if (topic.empty() || topic == "." || topic == "..")
    return fail_url(fmt::format("\"file:{}\" names no topic; write file:DIR/TOPIC", url.path));
  if (trailing)
    return fail_url(
        fmt::format("\"file:{}\" ends with a slash, so it names no topic; write "
                    "file:{} for the topic \"{}\"",
                    url.path, path, topic));
  std::string directory = ".";
  if (slash == 0) directory = "/";
  if (slash != std::string_view::npos && slash > 0) directory = path.substr(0, slash);
  return LogAddress{std::move(directory), std::string(topic)};
}

}  // namespace once
