// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstdint>
#include <string_view>

namespace once {

// Where an error came from: the same state means another thing for a commit.
enum class PostgresStage : std::uint8_t { open, statement, commit };

// The one place that says what a state of PostgreSQL (five characters; empty: the connection is
// gone) means for us.
Error error_from_postgres(std::string_view state, PostgresStage stage, std::string_view where,
                          std::string_view what, std::string_view native);

}  // namespace once
