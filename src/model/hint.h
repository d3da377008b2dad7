// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace once {

// The commands that an error tells a person to run. Each stands in backticks, `once position ls`,
// so that everybody sees where it begins and ends, and can be pasted into a shell as it is.

// The command with these words behind `once`, each quoted for the shell where it has to be.
[[nodiscard]] std::string hint(std::initializer_list<std::string_view> words);

// What the place that writes an error may not know; empty: not known here either.
struct HintPlace {
  std::string_view scope = {};
  std::string_view store = {};  // a URL
};
// The text, where each command that looks into a store names these, too. One that says them already
// stays as it is, so that a text can be completed step by step, by whoever passes it on.
[[nodiscard]] std::string with_complete_hints(std::string_view text, const HintPlace& place);

}  // namespace once
