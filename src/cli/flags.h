// SPDX-License-Identifier: Apache-2.0
// How the commands and flags of the program are declared. The library that parses the command line
// costs seconds to compile, so that only flags.cc includes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "cli/command_text.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace once::cli {

// What a flag accepts, with errors in our own words.
struct Check {
  // Replaces the text by the one to be stored, and answers an error, or nothing.
  std::function<std::string(std::string&)> apply;
  std::vector<std::string> words = {};  // all that is accepted; empty: others, too
};

// A flag or a positional of a command: a handle, which may be copied.
class Flag {
 public:
  explicit Flag(CLI::Option& option) : option_(&option) {}

  Flag required() const;
  Flag single() const;    // of a list: exactly one value
  Flag repeated() const;  // of a list: one value each time that it is given
  Flag check(const Check& check) const;
  // What stands for its value in the help; a blank where the name of a positional says it.
  Flag value_text(const std::string& text) const;

 private:
  CLI::Option* option_;
};

// A command, or the whole program: a handle, which may be copied.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app) {}

  // A command with commands below it needs one of them.
  Command add_command(const std::string& name, const std::string& about) const;
  Command add_hidden_command(const std::string& name, const std::string& about) const;

  Flag add_flag(const std::string& names, bool& value, const std::string& about) const;
  Flag add_option(const std::string& names, std::string& value, const std::string& about) const;
  Flag add_option(const std::string& names, std::optional<std::string>& value,
                  const std::string& about) const;
  Flag add_option(const std::string& names, std::vector<std::string>& value,
                  const std::string& about) const;
  Flag add_option(const std::string& names, double& value, const std::string& about) const;
  Flag add_option(const std::string& names, std::vector<std::int64_t>& value,
                  const std::string& about) const;

  template <class Integer>
  requires std::is_integral_v<Integer> Flag add_option(const std::string& names, Integer& value,
                                                       const std::string& about)
  const {
    return add_number(
        names, [&value](std::int64_t given) { value = static_cast<Integer>(given); }, about);
  }
  template <class Integer>
  requires(std::is_integral_v<Integer> || std::is_enum_v<Integer>) Flag
      add_option(const std::string& names, std::optional<Integer>& value, const std::string& about)
  const {
    return add_number(
        names, [&value](std::int64_t given) { value = static_cast<Integer>(given); }, about);
  }
  // With `one_of` as its check.
  template <class Enum>
  requires std::is_enum_v<Enum> Flag add_option(const std::string& names, Enum& value,
                                                const std::string& about)
  const {
    return add_number(
        names, [&value](std::int64_t given) { value = static_cast<Enum>(given); }, about);
  }

  void footer(const std::string& text) const;
  // Called when the command line names this command.
  void callback(const std::function<void()>& called) const;

  // The help of the command that these words below it name, whatever was parsed before.
  [[nodiscard]] std::string help_of(const std::vector<std::string>& words) const;
  [[nodiscard]] CommandText text() const;

 private:
  Flag add_number(const std::string& names, const std::function<void(std::int64_t)>& set,
                  const std::string& about) const;

  CLI::App* app_;
};

struct ParseFailure {
  enum class Kind : std::uint8_t { not_a_number, too_many_words, other };
  Kind kind = Kind::other;
  std::string flag = {};   // with `not_a_number`
  std::string value = {};  // with `not_a_number`
  std::string text = {};   // what the library says
};

// What reading a command line came to.
struct Parsed {
  std::optional<std::string> shown = std::nullopt;  // it only asks for this: help, or the version
  std::optional<ParseFailure> failure = std::nullopt;
};

class Parser {
 public:
  Parser(const std::string& description, const std::string& name);
  ~Parser();
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  [[nodiscard]] Command root();
  void version(const std::string& text);
  [[nodiscard]] Parsed parse(const std::vector<std::string>& words);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace once::cli
