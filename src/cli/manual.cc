// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "cli/command_text.h"

namespace once::cli {
namespace {

// As roff text: a backslash, a dash and a leading dot mean something to it.
std::string escaped(std::string_view text) {
  std::string made;
  bool at_line_start = true;
  for (const char letter : text) {
    if (at_line_start && (letter == '.' || letter == '\'')) made += "\\&";
    if (letter == '\\')
      made += "\\e";
    else if (letter == '-')
      made += "\\-";
    else
      made += letter;
    at_line_start = letter == '\n';
  }
  return made;
}

std::string dashed(std::string name) {
  for (char& letter : name)
    if (letter == ' ') letter = '-';
  return name;
}

std::string flag_entry(const FlagText& flag) {
  std::string names;
  for (const std::string& name : flag.names)
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", escaped(name));
  // A blank stands for a value that needs no name in the help.
  if (!flag.value.empty() && flag.value != " ")
    names += fmt::format(" \\fI{}\\fR", escaped(flag.value));
  return fmt::format(".TP\n{}\n{}\n", names, escaped(flag.about));
}

void add_flags(std::string& page, const std::string& title, const std::vector<FlagText>& flags) {
  if (flags.empty()) return;
  page += fmt::format(".SH {}\n", title);
  for (const FlagText& flag : flags) page += flag_entry(flag);
}

std::string usage(const CommandText& command) {
  std::string line = fmt::format("\\fB{}\\fR", escaped(command.name));
  if (!command.flags.empty()) line += " [\\fIoptions\\fR]";
  if (!command.commands.empty()) line += " \\fIcommand\\fR";
  for (const FlagText& positional : command.positionals) {
    const std::string name = fmt::format("\\fI{}\\fR", escaped(positional.names.front()));
    line += positional.required ? " " + name : " [" + name + "]";
  }
  return line;
}

std::string one_line(const std::string& about) {
  std::string line = about.substr(0, about.find('\n'));
  if (line.ends_with('.')) line.pop_back();
  return line;
}

}  // namespace

std::string manual_page(const CommandText& command, const std::string& version) {
  const std::string title = dashed(command.name);
  std::string page = fmt::format(".TH \"{}\" 1 \"\" \"once {}\" \"Once\"\n", title, version);
  page += fmt::format(".SH NAME\n{} \\- {}\n", escaped(title), escaped(one_line(command.about)));
  page += fmt::format(".SH SYNOPSIS\n{}\n", usage(command));
  page += fmt::format(".SH DESCRIPTION\n.nf\n{}\n.fi\n", escaped(command.about));
  add_flags(page, "ARGUMENTS", command.positionals);
  add_flags(page, "OPTIONS", command.flags);
  if (!command.commands.empty()) page += ".SH COMMANDS\n";
  for (const CommandText& below : command.commands)
    page +=
        fmt::format(".TP\n\\fB{}\\fR(1)\n{}\n", escaped(dashed(below.name)), escaped(below.about));
  if (!command.footer.empty())
    page += fmt::format(".SH NOTES\n.nf\n{}\n.fi\n", escaped(command.footer));
  return page;
}

}  // namespace once::cli
