// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/sql.h>

#include <span>
#include <string>
#include <string_view>

#include "model/sql_text.h"

namespace once {

inline constexpr SqlSyntax mysql_syntax{
    .backticks = true, .backslashes = true, .hash_comments = true};

// A statement with its values in it, so that many can be sent in one packet. Texts and bytes are
// written in hexadecimal: whatever they hold, they cannot end what they stand in. A statement that
// is several, or whose quotes or comments are not closed, is refused: it would run into the next.
[[nodiscard]] Result<std::string> render(std::string_view statement, std::span<const Value> values);

}  // namespace once
