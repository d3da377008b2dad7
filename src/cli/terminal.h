// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace once::cli {

// Text from messages, files and servers must not steer a terminal: no control characters (C0, DEL
// and C1), nothing that turns the direction of writing, nothing that takes no room and so hides, no
// bytes that are not UTF-8. Everything that people read goes through one of these two, in Output.

// Text for one line of a terminal: what may steer it is shown as \xNN or \u{NNNN}.
std::string printable(std::string_view text);

// A dumped JSON text that says the same with none of these characters: they become \uNNNN. The text
// is valid UTF-8, and they can only stand inside of strings.
std::string printable_json(std::string json);

}  // namespace once::cli
