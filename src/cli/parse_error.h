// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace once::cli {

// What is wrong with a command line, in our own words: which command or flag there is not, and
// which one may be meant.
std::string explain(const CLI::App& app, std::span<char* const> arguments,
                    const CLI::ParseError& error);

// The command with this name below `app`; nullptr: none.
const CLI::App* find_command(const CLI::App& app, const std::string& name);
// That there is none, and which one may be meant.
std::string no_such_command(const CLI::App& app, const std::string& name);

}  // namespace once::cli
