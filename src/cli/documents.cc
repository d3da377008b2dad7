// SPDX-License-Identifier: Apache-2.0
// What is written about the command line from its own help: shell completions, manual pages.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "cli/checks.h"
#include "cli/command.h"
#include "cli/command_text.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/version.h"

namespace once::cli {
namespace {

enum class Shell : std::uint8_t { bash, zsh, fish };

std::string completion_of(const CommandText& program, Shell shell) {
  switch (shell) {
    case Shell::bash: return bash_completion(program);
    case Shell::zsh: return zsh_completion(program);
    case Shell::fish: return fish_completion(program);
  }
  return {};
}

Status write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (file) return {};
  return fail(Remedy::stop, "io", fmt::format("cannot write {}", path.string()));
}

Status write_manual(const CommandText& program, const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error)
    return fail(Remedy::stop, "io",
                fmt::format("cannot make {}: {}", directory.string(), error.message()));
  for (const CommandText* command : all_of(program)) {
    std::string name = command->name;
    for (char& letter : name)
      if (letter == ' ') letter = '-';
    ONCE_TRY(write_file(directory / (name + ".1"), manual_page(*command, ONCE_VERSION)));
  }
  return {};
}

}  // namespace

void add_completion(const Command& app, Context& context) {
  static const std::map<std::string, Shell> shells{
      {"bash", Shell::bash}, {"zsh", Shell::zsh}, {"fish", Shell::fish}};
  const auto shell = std::make_shared<Shell>(Shell::bash);
  const Command command = app.add_command("completion", "Print a completion script for a shell");
  command.add_option("SHELL", *shell, "bash, zsh or fish")
      .required()
      .check(one_of(shells))
      .value_text(" ");
  command.footer(
      "Examples:\n"
      "  source <(once completion bash)                                   for this session\n"
      "  once completion bash > /etc/bash_completion.d/once               for everybody\n"
      "  once completion fish > ~/.config/fish/completions/once.fish");
  command.callback([app, &context, shell] {
    context.action = [app, &context, shell]() -> Result<int> {
      context.output.write_lines(completion_of(app.text(), *shell));
      return exit_ok;
    };
  });
}

void add_manual(const Command& app, Context& context) {
  const auto directory = std::make_shared<std::string>();
  const Command command = app.add_command("manual", "Write manual pages of all commands");
  command.add_option("DIRECTORY", *directory, "Where to write them; made if it does not exist")
      .required()
      .value_text(" ");
  command.footer("Example:\n  once manual man1 && man ./man1/once-run.1");
  command.callback([app, &context, directory] {
    context.action = [app, directory]() -> Result<int> {
      ONCE_TRY(write_manual(app.text(), *directory));
      return exit_ok;
    };
  });
}

}  // namespace once::cli
