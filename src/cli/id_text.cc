// SPDX-License-Identifier: Apache-2.0
#include "cli/id_text.h"

#include <fmt/format.h>

#include "base/base64.h"
#include "cli/terminal.h"

namespace once::cli {
namespace {

constexpr std::string_view base64_prefix = "base64:";

std::string quoted_for_shell(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) c == '\'' ? quoted.append("'\\''") : quoted.append(1, c);
  return quoted + "'";
}

}  // namespace

std::string text_of_id(std::string_view id) {
  const bool is_copyable = !id.starts_with(base64_prefix) && printable(id) == id;
  return is_copyable ? std::string(id) : fmt::format("{}{}", base64_prefix, encode_base64(id));
}

std::optional<std::string> id_of_text(std::string_view text) {
  if (!text.starts_with(base64_prefix)) return std::string(text);
  return decode_base64(text.substr(base64_prefix.size()));
}

Check id_text() {
  return Check{[](std::string& input) {
    auto id = id_of_text(input);
    if (!id)
      return fmt::format(
          "\"{}\" is not base64 behind \"base64:\"; an id that itself begins so is written {}",
          input, text_of_id(input));
    input = std::move(*id);
    return std::string();
  }};
}

std::string next_page_text(std::string_view scope, std::string_view id) {
  return fmt::format("there are more; go on with --scope {} --from {}", quoted_for_shell(scope),
                     quoted_for_shell(text_of_id(id)));
}

}  // namespace once::cli
