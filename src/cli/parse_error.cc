// SPDX-License-Identifier: Apache-2.0
#include "cli/parse_error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>
#include <vector>

#include "base/url.h"

namespace once::cli {
namespace {

std::vector<std::string> commands_of(const CommandText& command) {
  std::vector<std::string> words;
  for (const CommandText& below : command.commands) words.push_back(below.word);
  return words;
}

// The flags with two dashes.
std::vector<std::string> flags_of(const CommandText& command) {
  std::vector<std::string> names;
  for (const FlagText& flag : command.flags)
    for (const std::string& name : flag.names)
      if (name.starts_with("--")) names.push_back(name);
  return names;
}

std::string guess(std::string_view word, const std::vector<std::string>& known) {
  const std::vector<std::string_view> views(known.begin(), known.end());
  const std::string_view found = nearest(word, views);
  return found.empty() ? "" : fmt::format("; did you mean \"{}\"?", found);
}

// The command that the line names, and the words behind it.
struct Chosen {
  const CommandText* command;
  std::span<char* const> rest;
};

Chosen chosen_by(const CommandText& program, std::span<char* const> arguments) {
  Chosen chosen{&program, arguments};
  while (!chosen.rest.empty()) {
    const CommandText* next = find_command(*chosen.command, chosen.rest.front());
    if (next == nullptr) break;
    chosen = {next, chosen.rest.subspan(1)};
  }
  return chosen;
}

// "-x" is what another program may call a flag that begins with the same letter here.
std::optional<std::string> unknown_short_flag(const Chosen& chosen, std::string_view argument) {
  const char letter = argument[1];
  std::vector<std::string> alike;
  for (const FlagText& flag : chosen.command->flags) {
    for (const std::string& name : flag.names) {
      if (!name.starts_with("--") && name[1] == letter) return std::nullopt;
      if (name.starts_with("--") && std::tolower(name[2]) == std::tolower(letter))
        alike.push_back(name);
    }
  }
  return fmt::format("{} has no flag \"-{}\"{}{}{}", chosen.command->name, letter,
                     alike.empty() ? "" : "; did you mean ", fmt::join(alike, " or "),
                     alike.empty() ? "" : "?");
}

// A number, or a time before now: the value of a flag.
bool is_value(std::string_view argument) {
  return argument.size() < 2 || argument[0] != '-' || (argument[1] >= '0' && argument[1] <= '9');
}

std::optional<std::string> unknown_flag(const Chosen& chosen) {
  const std::vector<std::string> known = flags_of(*chosen.command);
  for (const std::string_view argument : chosen.rest) {
    if (argument == "--") break;
    if (is_value(argument)) continue;
    if (!argument.starts_with("--")) {
      if (auto unknown = unknown_short_flag(chosen, argument)) return unknown;
      continue;
    }
    const std::string name(argument.substr(0, argument.find('=')));
    if (std::find(known.begin(), known.end(), name) == known.end())
      return fmt::format("{} has no flag \"{}\"{}", chosen.command->name, name, guess(name, known));
  }
  return std::nullopt;
}

std::string text_of(const Chosen& chosen, const ParseFailure& failure) {
  const CommandText& command = *chosen.command;
  const std::string next = chosen.rest.empty() ? "" : chosen.rest.front();
  if (!command.commands.empty() && !next.empty() && !next.starts_with('-'))
    return no_such_command(command, next);
  if (auto flag = unknown_flag(chosen)) return *flag;
  if (!command.commands.empty())
    return fmt::format("{} needs a command: {}", command.name,
                       fmt::join(commands_of(command), ", "));
  switch (failure.kind) {
    case ParseFailure::Kind::not_a_number:
      return fmt::format("{} must be a number, not \"{}\"", failure.flag, failure.value);
    case ParseFailure::Kind::too_many_words:
      return fmt::format("{} takes fewer words than were given", command.name);
    case ParseFailure::Kind::other: break;
  }
  return failure.text;
}

}  // namespace

const CommandText* find_command(const CommandText& command, const std::string& word) {
  for (const CommandText& below : command.commands)
    if (below.word == word) return &below;
  return nullptr;
}

std::string no_such_command(const CommandText& command, const std::string& word) {
  const std::vector<std::string> known = commands_of(command);
  return fmt::format("there is no command \"{}\"{}; known: {}", word, guess(word, known),
                     fmt::join(known, ", "));
}

std::string explain(const CommandText& program, std::span<char* const> arguments,
                    const ParseFailure& failure) {
  const Chosen chosen = chosen_by(program, arguments);
  return fmt::format("{}; see {} --help", text_of(chosen, failure), chosen.command->name);
}

}  // namespace once::cli
