// SPDX-License-Identifier: Apache-2.0
#include "cli/parse_error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>
#include <vector>

#include "base/url.h"

namespace once::cli {
namespace {

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!command->get_group().empty()) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::string guess(std::string_view word, const std::vector<std::string>& known) {
  const std::vector<std::string_view> views(known.begin(), known.end());
  const std::string_view found = nearest(word, views);
  return found.empty() ? "" : fmt::format("; did you mean \"{}\"?", found);
}

// The command that the line names, and the words behind it.
struct Chosen {
  const CLI::App* app;
  std::string name;
  std::span<char* const> rest;
};

Chosen chosen_by(const CLI::App& app, std::span<char* const> arguments) {
  Chosen chosen{&app, "once", arguments};
  while (!chosen.rest.empty()) {
    const CLI::App* next = find_command(*chosen.app, chosen.rest.front());
    if (next == nullptr) break;
    chosen = {next, chosen.name + " " + next->get_name(), chosen.rest.subspan(1)};
  }
  return chosen;
}

// "-x" is what another program may call a flag that begins with the same letter here.
std::optional<std::string> unknown_short_flag(const Chosen& chosen, std::string_view argument) {
  const char letter = argument[1];
  std::vector<std::string> alike;
  for (const CLI::Option* option : chosen.app->get_options()) {
    for (const std::string& name : option->get_snames())
      if (name.front() == letter) return std::nullopt;
    for (const std::string& name : option->get_lnames())
      if (std::tolower(name.front()) == std::tolower(letter)) alike.push_back("--" + name);
  }
  return fmt::format("{} has no flag \"-{}\"{}{}{}", chosen.name, letter,
                     alike.empty() ? "" : "; did you mean ", fmt::join(alike, " or "),
                     alike.empty() ? "" : "?");
}

// A number, or a time before now: the value of a flag.
bool is_value(std::string_view argument) {
  return argument.size() < 2 || argument[0] != '-' || (argument[1] >= '0' && argument[1] <= '9');
}

std::optional<std::string> unknown_flag(const Chosen& chosen) {
  const std::vector<std::string> known = flags_of(*chosen.app);
  for (const std::string_view argument : chosen.rest) {
    if (argument == "--") break;
    if (is_value(argument)) continue;
    if (!argument.starts_with("--")) {
      if (auto unknown = unknown_short_flag(chosen, argument)) return unknown;
      continue;
    }
    const std::string name(argument.substr(0, argument.find('=')));
    if (std::find(known.begin(), known.end(), name) == known.end())
      return fmt::format("{} has no flag \"{}\"{}", chosen.name, name, guess(name, known));
  }
  return std::nullopt;
}

// CLI11 writes "Could not convert: NAME = VALUE".
std::string not_converted(std::string_view text) {
  const std::size_t colon = text.find(": ");
  const std::size_t equals = text.find(" = ");
  if (colon == std::string_view::npos || equals == std::string_view::npos) return std::string(text);
  return fmt::format("{} must be a number, not \"{}\"", text.substr(colon + 2, equals - colon - 2),
                     text.substr(equals + 3));
}

std::string text_of(const Chosen& chosen, const CLI::ParseError& error) {
  const bool has_commands = !commands_of(*chosen.app).empty();
  const std::string next = chosen.rest.empty() ? "" : chosen.rest.front();
  if (has_commands && !next.empty() && !next.starts_with('-'))
    return no_such_command(*chosen.app, next);
  if (auto flag = unknown_flag(chosen)) return *flag;
  if (has_commands)
    return fmt::format("{} needs a command: {}", chosen.name,
                       fmt::join(commands_of(*chosen.app), ", "));
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr)
    return not_converted(error.what());
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)
    return fmt::format("{} takes fewer words than were given", chosen.name);
  return error.what();
}

}  // namespace

const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    if (command->get_name() == name) return command;
  return nullptr;
}

std::string no_such_command(const CLI::App& app, const std::string& name) {
  const std::vector<std::string> known = commands_of(app);
  return fmt::format("there is no command \"{}\"{}; known: {}", name, guess(name, known),
                     fmt::join(known, ", "));
}

std::string explain(const CLI::App& app, std::span<char* const> arguments,
                    const CLI::ParseError& error) {
  const Chosen chosen = chosen_by(app, arguments);
  return fmt::format("{}; see {} --help", text_of(chosen, error), chosen.name);
}

}  // namespace once::cli
