// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace once {

// The tables that scripts make with CREATE TABLE, in their order, each once.
[[nodiscard]] std::vector<std::string> tables_made_by(std::span<const std::string_view> scripts);

// Their names as a list for IN.
[[nodiscard]] std::string quoted_names(std::span<const std::string> names);

// A database without our tables has something under the name of one of them.
[[nodiscard]] Error foreign_table_error(std::string_view where, std::string_view name);

}  // namespace once
