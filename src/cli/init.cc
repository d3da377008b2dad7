// SPDX-License-Identifier: Apache-2.0
// once init: a story of examples/run as a directory that can be played with.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <once/clock.h>
#include <once/open.h>
#include <once/producer.h>
#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "audit/looking_url.h"
#include "base/url.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/stories.h"
#include "config/plan.h"
#include "open/topics.h"

namespace once::cli {
namespace {

struct InitFlags {
  std::string story;
  std::string directory;  // empty: named as the story
};

std::string_view stem_of(const StoryFile& file) {
  return file.name.substr(0, file.name.find_last_of('.'));
}

std::string_view text_of(std::string_view name) {
  for (const StoryFile& file : story_files())
    if (file.name == name) return file.text;
  return {};
}

// A story is a pipeline with messages of its own.
std::vector<std::string_view> story_names() {
  std::vector<std::string_view> names;
  for (const StoryFile& file : story_files())
    if (file.name.ends_with(".jsonl")) names.push_back(stem_of(file));
  return names;
}

// The first sentence of the comment that the file begins with.
std::string about(std::string_view toml) {
  std::string text;
  while (toml.starts_with("# ")) {
    const std::string_view line = toml.substr(0, toml.find('\n'));
    text += (text.empty() ? "" : " ") + std::string(line.substr(2));
    toml.remove_prefix(std::min(line.size() + 1, toml.size()));
  }
  std::size_t end = text.size();
  for (const std::string_view mark : {". ", ": ", "; ", " ("}) end = std::min(end, text.find(mark));
  text.resize(end);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

int list_stories(Output& output) {
  Json json = Json::array();
  Table table({"story", "about"});
  for (const std::string_view name : story_names()) {
    const std::string text = about(text_of(fmt::format("{}.toml", name)));
    json.push_back({{"story", name}, {"about", text}});
    table.row({std::string(name), text});
  }
  if (output.json())
    output.write_json(json);
  else
    output.write_table(table);
  return exit_ok;
}

// Those of the story, and of the pipelines that its description names.
std::vector<StoryFile> files_of(const std::string& story) {
  const std::string_view description = text_of(story + ".toml");
  std::vector<StoryFile> found;
  for (const StoryFile& file : story_files())
    if (stem_of(file) == story ||
        description.find(fmt::format("{}.toml", stem_of(file))) != std::string_view::npos)
      found.push_back(file);
  return found;
}

tl::unexpected<Error> fail_files(const std::string& path, const std::string& why) {
  return fail(Remedy::stop, "io", fmt::format("{}: {}", path, why));
}

// Nothing that is there is written over.
Status make_directory(const std::string& path) {
  std::error_code error;
  const bool is_there = std::filesystem::exists(path, error);
  if (is_there && !std::filesystem::is_empty(path, error))
    return fail(Remedy::stop, "exists",
                fmt::format("{} is there and not empty: nothing was written. Name another "
                            "directory with --dir",
                            path));
  std::filesystem::create_directories(path + "/data", error);
  if (error) return fail_files(path, error.message());
  return {};
}

Status write_file(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) return fail_files(path, "cannot be written");
  return {};
}

Status make_tables(const std::string& path, std::string_view statements) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open(path.c_str(), &opened);
  const std::unique_ptr<sqlite3, int (*)(sqlite3*)> database(opened, sqlite3_close);
  if (code != SQLITE_OK ||
      sqlite3_exec(opened, std::string(statements).c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    return fail_files(path, sqlite3_errmsg(opened));
  return {};
}

// One message for each line.
Result<std::size_t> send(const std::string& url, std::string_view lines) {
  std::vector<Message> messages;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    messages.push_back({.body = std::string(line), .timestamp_ms = system_clock().now_ms()});
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
  }
  const auto sink = ONCE_TRY(open_sink(url));
  const auto producer = ONCE_TRY(Producer::open(*sink, {}));
  ONCE_TRY(producer->send(messages));
  return messages.size();
}

bool is_local(std::string_view url, std::string_view scheme) { return url.starts_with(scheme); }

// What one description needs: tables and topics, as far as they are files. Tells what it made.
Status prepare(const Plan& plan, std::string_view stem, std::vector<std::string>& made) {
  std::set<std::string> topics;
  for (const std::string& url : ONCE_TRY(audit::looking_url(plan.source_url)).topics)
    topics.insert(url);
  for (const EmitTarget& destination : plan.destinations()) topics.insert(destination.to);
  for (const std::string& url : topics) {
    if (!is_local(url, "file:")) continue;
    ONCE_TRY(create_topic_at(url, {}));
    made.push_back(fmt::format("the topic {}", url));
  }
  const std::string_view tables = text_of(fmt::format("{}.sql", stem));
  if (is_local(plan.store_url, "sqlite:") && !tables.empty()) {
    ONCE_TRY(make_tables(ONCE_TRY(parse_url(plan.store_url)).path, tables));
    made.push_back(fmt::format("the tables in {}", plan.store_url));
  }
  const std::string_view lines = text_of(fmt::format("{}.jsonl", stem));
  if (is_local(plan.source_url, "file:") && !lines.empty()) {
    const std::size_t count = ONCE_TRY(send(plan.source_url, lines));
    made.push_back(fmt::format("{} messages in {}", count, plan.source_url));
  }
  return {};
}

Result<int> init(const InitFlags& flags, Output& output) {
  output.secrets.learn_shape(flags.story);
  if (flags.story.empty()) return list_stories(output);
  const std::vector<std::string_view> known = story_names();
  if (std::find(known.begin(), known.end(), flags.story) == known.end())
    return fail_usage(
        fmt::format("there is no story \"{}\"; known: {}", flags.story, fmt::join(known, ", ")));
  const std::string directory = flags.directory.empty() ? flags.story : flags.directory;
  ONCE_TRY(make_directory(directory));
  std::vector<std::string> made;
  for (const StoryFile& file : files_of(flags.story)) {
    const std::string path = fmt::format("{}/{}", directory, file.name);
    ONCE_TRY(write_file(path, file.text));
    made.push_back(path);
  }
  const auto here = [&](const std::string& name) -> std::optional<std::string> {
    if (name == "DIR") return directory + "/data";
    return std::nullopt;
  };
  for (const StoryFile& file : files_of(flags.story)) {
    if (!file.name.ends_with(".toml")) continue;
    for (const Plan& plan : ONCE_TRY(parse_plans(file.text, std::string(file.name), here)))
      ONCE_TRY(prepare(plan, stem_of(file), made));
  }
  if (output.json()) {
    output.write_json({{"story", flags.story}, {"directory", directory}, {"made", made}});
    return exit_ok;
  }
  for (const std::string& one : made) output.write_line(one);
  output.talk(fmt::format("next: cd {}; once run {}.toml --check; once run {}.toml", directory,
                          flags.story, flags.story));
  return exit_ok;
}

// For shells, which offer them; the command itself says what is wrong with another.
Check known_stories() {
  Check check{.apply = [](std::string&) { return std::string(); }};
  for (const std::string_view name : story_names()) check.words.emplace_back(name);
  return check;
}

}  // namespace

void add_init(const Command& app, Context& context) {
  const auto flags = std::make_shared<InitFlags>();
  const Command command = app.add_command("init", "Make a directory with an example to start from");
  command.add_option("STORY", flags->story, "Which one; without it, those there are")
      .check(known_stories())
      .value_text(" ");
  command
      .add_option("--dir", flags->directory,
                  "A new or empty directory; without it, named as the story")
      .value_text("DIR");
  add_output(command, context);
  command.footer(
      "Examples:\n  once init                   the stories\n"
      "  once init points            points/points.toml with tables, a topic and messages\n"
      "Nothing that is there is written over.");
  command.callback([&context, flags] {
    context.action = [&context, flags] { return init(*flags, context.output); };
  });
}

}  // namespace once::cli
