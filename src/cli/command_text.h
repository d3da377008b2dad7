// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace once::cli {

// A flag or a positional, as --help shows it.
struct FlagText {
  std::vector<std::string> names;  // with their dashes, short ones first; of a positional its name
  std::string value;               // what stands for the value; empty: the flag takes none
  std::vector<std::string> words;  // the values that are accepted; empty: others, too
  std::string about;
  bool required = false;
};

// A command with its subcommands: what manual pages and shell completions are written from.
struct CommandText {
  std::string name;  // of the whole command line: "once park replay"
  std::string word;  // the last word of it
  std::string about;
  std::string footer;
  std::vector<FlagText> flags;
  std::vector<FlagText> positionals;
  std::vector<CommandText> commands;
};

// A command and all below it, in the order of the help.
[[nodiscard]] std::vector<const CommandText*> all_of(const CommandText& command);

// Completion scripts of the program for a shell.
[[nodiscard]] std::string bash_completion(const CommandText& program);
[[nodiscard]] std::string zsh_completion(const CommandText& program);
[[nodiscard]] std::string fish_completion(const CommandText& program);

// A manual page of section 1, in man(7). That of the program lists its commands.
[[nodiscard]] std::string manual_page(const CommandText& command, const std::string& version);

}  // namespace once::cli
