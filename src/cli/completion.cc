// SPDX-License-Identifier: Apache-2.0
// Each script is a table of the command line: what can follow which command. Where a value is free
// text, the shell offers file names, since most of them are files or addresses of files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "cli/command_text.h"

namespace once::cli {
namespace {

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at))
    text.replace(at, what.size(), by), at += by.size();
  return text;
}

// The first line, which is a sentence.
std::string summary(const std::string& about) { return about.substr(0, about.find('\n')); }

// In single quotes; `quote` is how the shell writes one inside them.
std::string quoted(const std::string& text, std::string_view quote) {
  return "'" + replaced(summary(text), "'", quote) + "'";
}

std::vector<std::string> flag_names(const CommandText& command) {
  std::vector<std::string> names;
  for (const FlagText& flag : command.flags)
    names.insert(names.end(), flag.names.begin(), flag.names.end());
  return names;
}

// The words that can stand where no flag is: commands, and the values of a positional.
std::vector<std::string> words_after(const CommandText& command) {
  std::vector<std::string> words;
  for (const CommandText& below : command.commands) words.push_back(below.word);
  for (const FlagText& positional : command.positionals)
    words.insert(words.end(), positional.words.begin(), positional.words.end());
  return words;
}

}  // namespace

std::string bash_completion(const CommandText& program) {
  std::string script =
      "# bash completion of once; made by `once completion bash`.\n"
      "_once() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  local path=once word words=\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case \"$path $word\" in\n";
  const std::vector<const CommandText*> commands = all_of(program);
  for (const CommandText* command : commands)
    if (command != &program) script += fmt::format("      '{0}') path='{0}' ;;\n", command->name);
  script +=
      "    esac\n"
      "  done\n"
      "  COMPREPLY=()\n"
      "  case \"$path $previous\" in\n";
  for (const CommandText* command : commands)
    for (const FlagText& flag : command->flags) {
      if (flag.value.empty()) continue;
      const std::vector<std::string>& names = flag.names;
      std::string patterns;
      for (const std::string& name : names)
        patterns += fmt::format("{}'{} {}'", patterns.empty() ? "" : "|", command->name, name);
      const std::string answer = flag.words.empty()
                                     ? "COMPREPLY=($(compgen -f -- \"$current\"))"
                                     : fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$current\"))",
                                                   fmt::join(flag.words, " "));
      script += fmt::format("    {}) {}; return ;;\n", patterns, answer);
    }
  script +=
      "  esac\n"
      "  case $path in\n";
  for (const CommandText* command : commands) {
    std::vector<std::string> words = words_after(*command);
    const std::vector<std::string> flags = flag_names(*command);
    words.insert(words.end(), flags.begin(), flags.end());
    script += fmt::format("    '{}') words='{}' ;;\n", command->name, fmt::join(words, " "));
  }
  script +=
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "  [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- \"$current\"))\n"
      "}\n"
      "complete -o filenames -F _once once\n";
  return script;
}

std::string zsh_completion(const CommandText& program) {
  constexpr std::string_view quote = "'\\''";
  const auto function_of = [](const CommandText& command) {
    return "_" + replaced(command.name, " ", "_");
  };
  // Brackets and colons separate the parts of an argument of _arguments.
  const auto part = [](const std::string& text) {
    return replaced(replaced(replaced(summary(text), "[", "("), "]", ")"), ":", "\\:");
  };
  std::string script = "#compdef once\n# zsh completion of once; made by `once completion zsh`.\n";
  for (const CommandText* command : all_of(program)) {
    script += fmt::format("\n{}() {{\n", function_of(*command));
    if (!command->commands.empty()) script += "  local line state\n";
    script += command->commands.empty() ? "  _arguments" : "  _arguments -C";
    for (const FlagText& flag : command->flags) {
      const std::string value = flag.words.empty() ? fmt::format(":{}:_files", part(flag.value))
                                                   : fmt::format(":{}:({})", part(flag.value),
                                                                 fmt::join(flag.words, " "));
      for (const std::string& name : flag.names)
        script += fmt::format(" \\\n    {}", quoted(fmt::format("{}[{}]{}", name, part(flag.about),
                                                                flag.value.empty() ? "" : value),
                                                    quote));
    }
    if (command->commands.empty()) {
      const std::vector<std::string> words = words_after(*command);
      script += words.empty()
                    ? " \\\n    '*:argument:_files'\n}\n"
                    : fmt::format(" \\\n    '*:argument:({})'\n}}\n", fmt::join(words, " "));
      continue;
    }
    script += " \\\n    '1: :->command' '*::argument:->argument'\n  case $state in\n    command)\n";
    script += "      local -a commands=(\n";
    for (const CommandText& below : command->commands)
      script += fmt::format("        {}\n",
                            quoted(fmt::format("{}:{}", below.word, summary(below.about)), quote));
    script +=
        "      )\n      _describe command commands ;;\n    argument)\n      case $line[1] in\n";
    for (const CommandText& below : command->commands)
      script += fmt::format("        {}) {} ;;\n", below.word, function_of(below));
    script += "      esac ;;\n  esac\n}\n";
  }
  script += "\ncompdef _once once\n";
  return script;
}

std::string fish_completion(const CommandText& program) {
  constexpr std::string_view quote = "\\'";
  std::string script =
      "# fish completion of once; made by `once completion fish`.\n"
      "# Whether the words so far name this command and none below it.\n"
      "function __once_at\n"
      "  set -l words (commandline -opc)\n"
      "  set -e words[1]\n"
      "  set -l path once\n"
      "  for word in $words\n"
      "    switch \"$path $word\"\n"
      "      case ";
  std::vector<std::string> names;
  for (const CommandText* command : all_of(program))
    if (command != &program) names.push_back("'" + command->name + "'");
  script += fmt::format("{}\n", fmt::join(names, " "));
  script +=
      "        set path \"$path $word\"\n"
      "    end\n"
      "  end\n"
      "  test \"$path\" = \"$argv[1]\"\n"
      "end\n";
  for (const CommandText* command : all_of(program)) {
    const std::string at = fmt::format("complete -c once -n '__once_at \"{}\"'", command->name);
    for (const CommandText& below : command->commands)
      script += fmt::format("{} -f -a {} -d {}\n", at, below.word, quoted(below.about, quote));
    for (const FlagText& positional : command->positionals)
      if (!positional.words.empty())
        script += fmt::format("{} -f -a '{}'\n", at, fmt::join(positional.words, " "));
    for (const FlagText& flag : command->flags) {
      script += at;
      for (const std::string& name : flag.names)
        script += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (!flag.value.empty()) script += flag.words.empty() ? " -r" : " -x";
      if (!flag.words.empty()) script += fmt::format(" -a '{}'", fmt::join(flag.words, " "));
      script += fmt::format(" -d {}\n", quoted(flag.about, quote));
    }
  }
  return script;
}

}  // namespace once::cli
