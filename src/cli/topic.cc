// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <once/log.h>

#include <CLI/CLI.hpp>
#include <array>
#include <map>
#include <memory>
#include <string>

#include "base/url.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "open/topics.h"

namespace once::cli {
namespace {

using namespace std::string_view_literals;

struct TopicFlags {
  std::string url;
  TopicOptions options;
};

constexpr std::string_view name_of(GapPolicy gaps) {
  switch (gaps) {
    case GapPolicy::refuse: return "refuse";
    case GapPolicy::hold: return "hold";
    case GapPolicy::accept: return "accept";
  }
  return "?";
}

std::int64_t messages_in(const TopicInfo& info) {
  std::int64_t count = 0;
  for (const PartitionInfo& partition : info.partitions)
    count += partition.end_offset - partition.first_offset;
  return count;
}

std::int64_t bytes_in(const TopicInfo& info) {
  std::int64_t bytes = 0;
  for (const PartitionInfo& partition : info.partitions) bytes += partition.bytes;
  return bytes;
}

// What a broker does not tell is negative.
std::string told(std::int64_t number) { return number < 0 ? "-" : grouped(number); }

Json json_of(const TopicInfo& info) {
  Json json = {{"topic", info.name},
               {"messages", messages_in(info)},
               {"bytes", bytes_in(info)},
               {"segment_bytes", info.options.segment_bytes_max},
               {"retention_ms", info.options.retention_ms},
               {"retention_bytes", info.options.retention_bytes},
               {"gaps", name_of(info.options.gaps)},
               {"partitions", Json::array()}};
  for (const PartitionInfo& partition : info.partitions)
    json["partitions"].push_back({{"partition", partition.partition},
                                  {"first_offset", partition.first_offset},
                                  {"end_offset", partition.end_offset},
                                  {"bytes", partition.bytes},
                                  {"segments", partition.segments},
                                  {"producers", partition.producers}});
  return json;
}

std::string retention_text(const TopicOptions& options) {
  std::string text;
  if (options.retention_ms >= 0) text = fmt::format("{} ms", grouped(options.retention_ms));
  if (options.retention_bytes >= 0)
    text += fmt::format("{}{} bytes per partition", text.empty() ? "" : " and ",
                        grouped(options.retention_bytes));
  return text.empty() ? "for ever" : text;
}

void show(Output& output, const TopicInfo& info) {
  if (output.json()) return output.write_json(json_of(info));
  output.write(fmt::format("topic {}: segments of {} bytes, messages kept {}, gaps: {}\n",
                           printable(info.name), grouped(info.options.segment_bytes_max),
                           retention_text(info.options), name_of(info.options.gaps)));
  Table table({"partition", "first", "end", "messages", "bytes", "segments", "producers"});
  for (const PartitionInfo& partition : info.partitions)
    table.row({fmt::format("{}", partition.partition), grouped(partition.first_offset),
               grouped(partition.end_offset),
               grouped(partition.end_offset - partition.first_offset), told(partition.bytes),
               fmt::format("{}", partition.segments), fmt::format("{}", partition.producers)});
  output.write_table(table);
}

Result<int> create(const TopicFlags& flags, Output& output) {
  ONCE_TRY(create_topic_at(flags.url, flags.options));
  show(output, ONCE_TRY(describe_topic_at(flags.url)));
  return exit_ok;
}

Result<int> list(const TopicFlags& flags, Output& output) {
  Table table({"topic", "partitions", "messages", "bytes"});
  Json json = Json::array();
  for (const TopicInfo& info : ONCE_TRY(list_topics_at(flags.url))) {
    json.push_back(json_of(info));
    table.row({printable(info.name), fmt::format("{}", info.partitions.size()),
               grouped(messages_in(info)), told(bytes_in(info))});
  }
  if (output.format == Format::jsonl)
    for (const Json& topic : json) output.write_json(topic);
  else if (output.json())
    output.write_json(json);
  else if (json.empty())
    output.talk(fmt::format("{} holds no topics", shown_url(flags.url)));
  else
    output.write_table(table);
  return exit_ok;
}

Result<int> describe(const TopicFlags& flags, Output& output) {
  show(output, ONCE_TRY(describe_topic_at(flags.url)));
  return exit_ok;
}

Result<int> remove(const TopicFlags& flags, Output& output) {
  ONCE_TRY(delete_topic_at(flags.url));
  if (output.json())
    output.write_json(Json{{"topic", flags.url}, {"deleted", true}});
  else
    output.write(fmt::format("topic {} is gone\n", shown_url(flags.url)));
  return exit_ok;
}

void add_settings(CLI::App& command, TopicOptions& options) {
  static const std::map<std::string, GapPolicy> policies{
      {"refuse", GapPolicy::refuse}, {"hold", GapPolicy::hold}, {"accept", GapPolicy::accept}};
  command.add_option("--partitions", options.partitions, "How many partitions (1)")
      ->check(CLI::Range(1, 1024).description(""))
      ->option_text("N");
  command
      .add_option("--segment-bytes", options.segment_bytes_max,
                  "A segment file is closed at this size, 4096 or more (67108864)")
      ->check(CLI::Range(std::int64_t{4096}, std::int64_t{1} << 40).description(""))
      ->option_text("BYTES");
  command
      .add_option("--retention-ms", options.retention_ms,
                  "Messages older than this may go; -1 keeps them (-1)")
      ->check(CLI::Range(std::int64_t{-1}, INT64_MAX).description(""))
      ->option_text("MS");
  command
      .add_option("--retention-bytes", options.retention_bytes,
                  "A partition larger than this loses its oldest segments; -1 keeps them (-1)")
      ->check(CLI::Range(std::int64_t{-1}, INT64_MAX).description(""))
      ->option_text("BYTES");
  command
      .add_option("--gaps", options.gaps,
                  "A message that overtook an earlier one of its producer: refuse it, hold it "
                  "until that one comes, or accept it out of order (refuse)")
      ->transform(CLI::CheckedTransformer(policies).description(""))
      ->option_text("refuse|hold|accept");
}

using Verb = Result<int> (*)(const TopicFlags&, Output&);

CLI::App& add_verb(CLI::App& topic, Context& context, const std::shared_ptr<TopicFlags>& flags,
                   const std::string& name, const std::string& about, Verb verb) {
  CLI::App& command = *topic.add_subcommand(name, about);
  command
      .add_option("URL", flags->url,
                  name == "ls" ? "Where: file:DIR or kafka://HOST:PORT"
                               : "The topic: file:DIR/TOPIC or kafka://HOST:PORT/TOPIC")
      ->required()
      ->option_text(" ");
  add_output(command, context);
  command.callback([&context, flags, verb] {
    context.action = [&context, flags, verb] { return verb(*flags, context.output); };
  });
  return command;
}

}  // namespace

void add_topic(CLI::App& app, Context& context) {
  CLI::App& topic = *app.add_subcommand("topic", "Create, list, show and delete topics");
  topic.require_subcommand(1);
  const auto flags = std::make_shared<TopicFlags>();
  CLI::App& creation =
      add_verb(topic, context, flags, "create",
               "Create a topic; asked twice with the same settings, it happens once", create);
  add_settings(creation, flags->options);
  creation.footer(
      "Example:\n  once topic create file:data/orders --partitions 4 --gaps hold\n"
      "The directory is made when it is missing.");
  add_verb(topic, context, flags, "ls", "List the topics in a directory", list)
      .footer("Example:\n  once topic ls file:data -o json");
  add_verb(topic, context, flags, "show", "Show settings and partitions of a topic", describe)
      .footer("Example:\n  once topic show file:data/orders");
  add_verb(topic, context, flags, "delete", "Delete a topic with all its messages, for good",
           remove)
      .footer("Example:\n  once topic delete file:data/orders\nDeleting what is gone is no error.");
}

}  // namespace once::cli
