// SPDX-License-Identifier: Apache-2.0
#include "cli/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

#include "cli/moment.h"

namespace once::cli {
namespace {

// How the name of a check begins that accepts words, which follow: the library keeps no other place
// for them.
constexpr std::string_view words_mark = "one of ";

// The words of an option that accepts one of some words; otherwise none.
std::vector<std::string> words_of(CLI::Option& option) {
  std::vector<std::string> words;
  try {
    const std::string& name = option.get_validator(0)->get_name();
    if (!name.starts_with(words_mark)) return words;
    std::istringstream rest(name.substr(words_mark.size()));
    for (std::string word; rest >> word;) words.push_back(word);
  } catch (const CLI::OptionNotFound&) {
    // It accepts anything.
  }
  return words;
}

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

// The library writes "Could not convert: NAME = VALUE".
ParseFailure not_converted(const std::string& text) {
  ParseFailure failure{ParseFailure::Kind::other, {}, {}, text};
  const std::size_t colon = text.find(": ");
  const std::size_t equals = text.find(" = ");
  if (colon == std::string::npos || equals == std::string::npos) return failure;
  failure.kind = ParseFailure::Kind::not_a_number;
  failure.flag = text.substr(colon + 2, equals - colon - 2);
  failure.value = text.substr(equals + 3);
  return failure;
}

ParseFailure failure_of(const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr)
    return not_converted(error.what());
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)
    return {ParseFailure::Kind::too_many_words, {}, {}, error.what()};
  return {ParseFailure::Kind::other, {}, {}, error.what()};
}

}  // namespace

Flag Flag::required() const {
  option_->required();
  return *this;
}

Flag Flag::single() const {
  option_->expected(1);
  return *this;
}

Flag Flag::repeated() const {
  option_->allow_extra_args(false);
  return *this;
}

Flag Flag::check(const Check& check) const {
  CLI::Validator validator(check.apply, "");
  if (!check.words.empty()) {
    std::string name(words_mark);
    for (const std::string& word : check.words) name += word + " ";
    name.pop_back();
    validator.name(name);
  }
  option_->transform(validator);
  return *this;
}

Flag Flag::value_text(const std::string& text) const {
  option_->option_text(text);
  return *this;
}

Command Command::add_command(const std::string& name, const std::string& about) const {
  app_->require_subcommand(1);
  return Command(*app_->add_subcommand(name, about));
}

Command Command::add_hidden_command(const std::string& name, const std::string& about) const {
  return Command(*app_->add_subcommand(name, about)->group(""));
}

Flag Command::add_flag(const std::string& names, bool& value, const std::string& about) const {
  return Flag(*app_->add_flag(names, value, about));
}

Flag Command::add_option(const std::string& names, std::string& value,
                         const std::string& about) const {
  return Flag(*app_->add_option(names, value, about));
}

Flag Command::add_option(const std::string& names, std::optional<std::string>& value,
                         const std::string& about) const {
  return Flag(*app_->add_option(names, value, about));
}

Flag Command::add_option(const std::string& names, std::vector<std::string>& value,
                         const std::string& about) const {
  return Flag(*app_->add_option(names, value, about));
}

Flag Command::add_option(const std::string& names, double& value, const std::string& about) const {
  return Flag(*app_->add_option(names, value, about));
}

Flag Command::add_option(const std::string& names, std::vector<std::int64_t>& value,
                         const std::string& about) const {
  return Flag(*app_->add_option(names, value, about));
}

Flag Command::add_number(const std::string& names, const std::function<void(std::int64_t)>& set,
                         const std::string& about) const {
  return Flag(*app_->add_option_function<std::int64_t>(names, set, about));
}

void Command::footer(const std::string& text) const { app_->footer(text); }

void Command::callback(const std::function<void()>& called) const { app_->callback(called); }

std::string Command::help_of(const std::vector<std::string>& words) const {
  CLI::App* shown = app_;
  std::string path;  // before its name
  for (const std::string& word : words) {
    path += (path.empty() ? "" : " ") + shown->get_name();
    shown = shown->get_subcommand(word);
  }
  app_->clear();  // it would show the help of the command that was parsed
  return shown->help(path);
}

CommandText Command::text() const { return text_of(*app_, ""); }

Parser::Parser(const std::string& description, const std::string& name)
    : app_(std::make_unique<CLI::App>(description, name)) {
  app_->get_formatter()->column_width(34);
}

Parser::~Parser() = default;

Command Parser::root() { return Command(*app_); }

void Parser::version(const std::string& text) {
  app_->set_version_flag("-V,--version", text, "Print the version and exit");
}

// The library reports by exception; help and version are reported that way too.
Parsed Parser::parse(const std::vector<std::string>& words) {
  std::vector<std::string> reversed(words.rbegin(), words.rend());  // as the library wants them
  Parsed parsed;
  try {
    app_->parse(reversed);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::Success)) {
      parsed.failure = failure_of(error);
      return parsed;
    }
    std::ostringstream shown;
    app_->exit(error, shown, shown);
    parsed.shown = shown.str();
  }
  return parsed;
}

}  // namespace once::cli
