// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "cli/flags.h"

namespace once::cli {

// What is wrong with a command line, in our own words: which command or flag there is not, and
// which one may be meant.
std::string explain(const CommandText& program, std::span<char* const> arguments,
                    const ParseFailure& failure);

// The command with this word below `command`; nullptr: none.
const CommandText* find_command(const CommandText& command, const std::string& word);
// That there is none, and which one may be meant.
std::string no_such_command(const CommandText& command, const std::string& word);

}  // namespace once::cli
