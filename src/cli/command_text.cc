// SPDX-License-Identifier: Apache-2.0
#include "cli/command_text.h"

#include <CLI/CLI.hpp>

#include "cli/checks.h"

namespace once::cli {
namespace {

FlagText text_of(CLI::Option& option) {
  FlagText flag;
  if (option.get_positional()) {
    flag.names.push_back(option.get_name(true, false));
  } else {
    for (const std::string& name : option.get_snames()) flag.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) flag.names.push_back("--" + name);
  }
  if (option.get_type_size() != 0) flag.value = option.get_option_text();
  flag.words = words_of(option);
  flag.about = option.get_description();
  flag.required = option.get_required();
  return flag;
}

CommandText text_of(CLI::App& app, const std::string& above) {
  CommandText command;
  command.word = app.get_name();
  command.name = above.empty() ? command.word : above + " " + command.word;
  command.about = app.get_description();
  command.footer = app.get_footer();
  for (CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    (option->get_positional() ? command.positionals : command.flags).push_back(text_of(*option));
  }
  for (CLI::App* below : app.get_subcommands([](CLI::App*) { return true; }))
    if (!below->get_group().empty()) command.commands.push_back(text_of(*below, command.name));
  return command;
}

void add_all_of(const CommandText& command, std::vector<const CommandText*>& found) {
  found.push_back(&command);
  for (const CommandText& below : command.commands) add_all_of(below, found);
}

}  // namespace

CommandText text_of(CLI::App& app) { return text_of(app, ""); }

std::vector<const CommandText*> all_of(const CommandText& command) {
  std::vector<const CommandText*> found;
  add_all_of(command, found);
  return found;
}

}  // namespace once::cli
