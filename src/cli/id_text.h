// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/flags.h"

namespace once::cli {

// An id as tables and sentences show it and the command line takes it. One that cannot be copied
// from a terminal is "base64:" and its bytes in base64: it is not UTF-8, has characters that a
// terminal does not show, or begins with "base64:" itself. So every id has one text, and every text
// at most one id.
[[nodiscard]] std::string text_of_id(std::string_view id);
// Unset: "base64:" with something behind it that is not base64.
[[nodiscard]] std::optional<std::string> id_of_text(std::string_view text);

// For every flag and argument that is an id.
Check id_text();

// How a list of ids goes on: flags for a shell.
[[nodiscard]] std::string next_page_text(std::string_view scope, std::string_view id);

}  // namespace once::cli
