// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <once/log.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/url.h"
#include "cli/checks.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "open/topics.h"

namespace once::cli {
namespace {

using namespace std::string_view_literals;

struct TopicFlags {
  std::string url;
  TopicRequest request;
  bool accept_loss = false;
};

constexpr std::string_view name_of(GapPolicy gaps) {
  switch (gaps) {
    case GapPolicy::refuse: return "refuse";
    case GapPolicy::hold: return "hold";
    case GapPolicy::accept: return "accept";
  }
  return "?";
}

std::int64_t messages_in(const PartitionReport& partition) {
  return partition.end_offset - partition.first_offset;
}

std::int64_t messages_in(const TopicReport& topic) {
  std::int64_t count = 0;
  for (const PartitionReport& partition : topic.partitions) count += messages_in(partition);
  return count;
}

std::int64_t bytes_in(const TopicReport& topic) {
  std::int64_t bytes = 0;
  for (const PartitionReport& partition : topic.partitions) bytes += partition.bytes;
  return bytes;
}

Json json_of(const PartitionReport& partition, std::size_t number, bool embedded) {
  Json json = {{"partition", number},
               {"first_offset", partition.first_offset},
               {"end_offset", partition.end_offset}};
  if (!embedded) {
    json["messages_at_most"] = messages_in(partition);
    return json;
  }
  json["bytes"] = partition.bytes;
  json["segments"] = partition.segments;
  json["producers"] = partition.producers;
  if (!partition.damage.empty()) json["damage"] = partition.damage;
  return json;
}

Json json_of(const TopicReport& topic) {
  Json json = {{"topic", topic.name},
               {topic.embedded ? "messages" : "messages_at_most", messages_in(topic)}};
  if (topic.embedded) json["bytes"] = bytes_in(topic);
  if (topic.segment_bytes_max) json["segment_bytes"] = *topic.segment_bytes_max;
  if (topic.retention_ms) json["retention_ms"] = *topic.retention_ms;
  if (topic.retention_bytes) json["retention_bytes"] = *topic.retention_bytes;
  if (topic.gaps) json["gaps"] = name_of(*topic.gaps);
  for (const auto& [name, value] : topic.more) json["settings"][name] = value;
  if (!topic.damage.empty()) json["damage"] = topic.damage;
  json["partitions"] = Json::array();
  for (const PartitionReport& partition : topic.partitions)
    json["partitions"].push_back(json_of(partition, json["partitions"].size(), topic.embedded));
  return json;
}

std::string retention_text(std::int64_t ms, std::int64_t bytes) {
  std::string text;
  if (ms >= 0) text = fmt::format("{} ms", grouped(ms));
  if (bytes >= 0)
    text += fmt::format("{}{} bytes per partition", text.empty() ? "" : " and ", grouped(bytes));
  return text.empty() ? "for ever" : text;
}

// What is known about it, and nothing else.
std::string settings_text(const TopicReport& topic) {
  std::vector<std::string> parts;
  if (topic.segment_bytes_max)
    parts.push_back(fmt::format("segments of {} bytes", grouped(*topic.segment_bytes_max)));
  if (topic.retention_ms && topic.retention_bytes)
    parts.push_back("messages kept " + retention_text(*topic.retention_ms, *topic.retention_bytes));
  if (topic.gaps) parts.push_back(fmt::format("gaps: {}", name_of(*topic.gaps)));
  for (const auto& [name, value] : topic.more) parts.push_back(fmt::format("{}: {}", name, value));
  if (parts.empty()) parts.emplace_back("its settings are not known");
  return fmt::format("{}", fmt::join(parts, ", "));
}

bool is_damaged(const TopicReport& topic) {
  return !topic.damage.empty() ||
         std::any_of(topic.partitions.begin(), topic.partitions.end(),
                     [](const PartitionReport& partition) { return !partition.damage.empty(); });
}

Table table_of(const TopicReport& topic) {
  std::vector<std::string> names{"partition", "first", "end"};
  if (topic.embedded)
    names.insert(names.end(), {"messages", "bytes", "segments", "producers"});
  else
    names.emplace_back("messages at most");
  Table table(std::move(names));
  for (std::size_t i = 0; i < topic.partitions.size(); ++i) {
    const PartitionReport& partition = topic.partitions[i];
    if (!partition.damage.empty()) {
      std::vector<std::string> row(7);
      row[0] = fmt::format("{}", i);
      row[1] = "damaged";
      table.row(std::move(row));
      continue;
    }
    std::vector<std::string> row{fmt::format("{}", i), grouped(partition.first_offset),
                                 grouped(partition.end_offset), grouped(messages_in(partition))};
    if (topic.embedded)
      row.insert(row.end(), {grouped(partition.bytes), fmt::format("{}", partition.segments),
                             fmt::format("{}", partition.producers)});
    table.row(std::move(row));
  }
  return table;
}

void show(Output& output, const TopicReport& topic) {
  if (output.json()) return output.write_json(json_of(topic));
  output.write_line(fmt::format("topic {}: {}", topic.name, settings_text(topic)));
  output.write_table(table_of(topic));
  for (std::size_t i = 0; i < topic.partitions.size(); ++i)
    if (const std::string& damage = topic.partitions[i].damage; !damage.empty())
      output.write_line(fmt::format("partition {} is damaged: {}", i, damage));
}

// Damage is shown with what is left, and told by the exit code.
Result<int> shown(bool damaged) { return damaged ? exit_corrupt : exit_ok; }

Result<int> create(const TopicFlags& flags, Output& output) {
  ONCE_TRY(create_topic_at(flags.url, flags.request));
  show(output, ONCE_TRY(describe_topic_at(flags.url)));
  return exit_ok;
}

Result<int> list(const TopicFlags& flags, Output& output) {
  const std::vector<TopicReport> topics = ONCE_TRY(list_topics_at(flags.url));
  const bool embedded = topics.empty() || topics.front().embedded;
  Table table(embedded ? std::vector<std::string>{"topic", "partitions", "messages", "bytes"}
                       : std::vector<std::string>{"topic", "partitions", "messages at most"});
  Json json = Json::array();
  bool damaged = false;
  for (const TopicReport& topic : topics) {
    json.push_back(json_of(topic));
    damaged = damaged || is_damaged(topic);
    std::vector<std::string> row{topic.name, fmt::format("{}", topic.partitions.size()),
                                 is_damaged(topic) ? "damaged" : grouped(messages_in(topic))};
    if (embedded) row.push_back(is_damaged(topic) ? "" : grouped(bytes_in(topic)));
    table.row(std::move(row));
  }
  if (output.format == Format::jsonl)
    for (const Json& topic : json) output.write_json(topic);
  else if (output.json())
    output.write_json(json);
  else if (json.empty())
    output.talk(fmt::format("{} holds no topics", shown_url(flags.url)));
  else
    output.write_table(table);
  if (damaged) output.talk("once topic show URL says what is damaged, once topic repair URL helps");
  return shown(damaged);
}

Result<int> describe(const TopicFlags& flags, Output& output) {
  const TopicReport topic = ONCE_TRY(inspect_topic_at(flags.url));
  show(output, topic);
  return shown(is_damaged(topic));
}

Result<int> remove(const TopicFlags& flags, Output& output) {
  ONCE_TRY(delete_topic_at(flags.url));
  if (output.json())
    output.write_json(Json{{"topic", shown_url(flags.url)}, {"deleted", true}});
  else
    output.write_line(fmt::format("topic {} is gone", shown_url(flags.url)));
  return exit_ok;
}

std::string ranges_text(const std::vector<OffsetRange>& ranges) {
  std::vector<std::string> texts;
  for (const OffsetRange& range : ranges)
    texts.push_back(fmt::format("{} to {}", range.first, range.end - 1));
  return fmt::format("{}", fmt::join(texts, ", "));
}

Json json_of(const PartitionRepair& repair) {
  Json json = {{"partition", repair.partition},
               {"lost", repair.lost_count},
               {"lost_ranges", Json::array()},
               {"first_offset", repair.first_offset},
               {"end_offset", repair.end_offset},
               {"producers", repair.forgets_producers ? "forgotten" : "kept"},
               {"cut_bytes", repair.cut_bytes},
               {"damage", repair.damage},
               {"set_aside", repair.set_aside}};
  for (const OffsetRange& range : repair.lost)
    json["lost_ranges"].push_back({{"first", range.first}, {"end", range.end}});
  return json;
}

void write_repair(const TopicRepair& repair, bool applied, Output& output) {
  Table table({"partition", "lost", "messages", "first", "end", "producers"});
  for (const PartitionRepair& one : repair.partitions)
    table.row({fmt::format("{}", one.partition), grouped(one.lost_count), ranges_text(one.lost),
               grouped(one.first_offset), grouped(one.end_offset),
               one.forgets_producers ? "forgotten" : "kept"});
  if (!repair.partitions.empty()) output.write_table(table);
  for (const PartitionRepair& one : repair.partitions) {
    if (!one.damage.empty())
      output.write_line(fmt::format("partition {}: {}", one.partition, one.damage));
    for (const std::string& path : one.set_aside)
      output.write_line(fmt::format("partition {}: set aside as {}", one.partition, path));
  }
  if (repair.resets_options)
    output.write_line(
        "the file `topic` is lost: partitions are counted, all other settings are the defaults");
  if (repair.renews_identity)
    output.write_line(
        "numbers of lost messages may be given again, so it is another topic to its readers: "
        "pipelines end with error[gone], which names the command that says where they go on");
  if (!applied)
    output.talk("nothing was changed; --accept-loss repairs it, and what is lost stays lost");
}

Result<int> repair(const TopicFlags& flags, Output& output) {
  const TopicRepair repair = ONCE_TRY(repair_topic_at(flags.url, flags.accept_loss));
  if (output.json()) {
    Json json = {{"repaired", flags.accept_loss},
                 {"renews_identity", repair.renews_identity},
                 {"resets_settings", repair.resets_options},
                 {"partitions", Json::array()}};
    for (const PartitionRepair& one : repair.partitions) json["partitions"].push_back(json_of(one));
    output.write_json(json);
  } else if (!repair.is_needed()) {
    output.write_line("nothing to repair: all of it can be read");
  } else {
    write_repair(repair, flags.accept_loss, output);
  }
  return shown(repair.is_needed() && !flags.accept_loss);
}

void add_settings(const Command& command, TopicRequest& request) {
  static const std::map<std::string, GapPolicy> policies{
      {"refuse", GapPolicy::refuse}, {"hold", GapPolicy::hold}, {"accept", GapPolicy::accept}};
  command.add_option("--partitions", request.partitions, "How many partitions (1)")
      .check(whole_number(1, 1024))
      .value_text("N");
  command
      .add_option("--segment-bytes", request.segment_bytes_max,
                  "A segment file is closed at this size, 4096 or more (67108864)")
      .check(whole_number(4096, std::int64_t{1} << 40))
      .value_text("BYTES");
  command
      .add_option("--retention-ms", request.retention_ms,
                  "Messages older than this may go; -1 keeps them (-1)")
      .check(whole_number(-1, INT64_MAX))
      .value_text("MS");
  command
      .add_option("--retention-bytes", request.retention_bytes,
                  "A partition larger than this loses its oldest segments; -1 keeps them (-1)")
      .check(whole_number(-1, INT64_MAX))
      .value_text("BYTES");
  command
      .add_option("--gaps", request.gaps,
                  "A message that overtook an earlier one of its producer: refuse it, hold it "
                  "until that one comes, or accept it out of order (refuse)")
      .check(one_of(policies))
      .value_text("refuse|hold|accept");
}

using Verb = Result<int> (*)(const TopicFlags&, Output&);

Command add_verb(const Command& topic, Context& context, const std::shared_ptr<TopicFlags>& flags,
                 const std::string& name, const std::string& about, Verb verb) {
  const Command command = topic.add_command(name, about);
  command
      .add_option("URL", flags->url,
                  name == "ls" ? "Where: file:DIR or kafka://HOST:PORT"
                               : "The topic: file:DIR/TOPIC or kafka://HOST:PORT/TOPIC")
      .required()
      .value_text(" ");
  add_output(command, context);
  command.callback([&context, flags, verb] {
    context.action = [&context, flags, verb] { return verb(*flags, context.output); };
  });
  return command;
}

}  // namespace

void add_topic(const Command& app, Context& context) {
  const Command topic = app.add_command("topic", "Create, list, show, repair and delete topics");
  const auto flags = std::make_shared<TopicFlags>();
  const Command creation =
      add_verb(topic, context, flags, "create",
               "Create a topic; asked twice with the same settings, it happens once", create);
  add_settings(creation, flags->request);
  creation.footer(
      "Example:\n  once topic create file:data/orders --partitions 4 --gaps hold\n"
      "The directory is made when it is missing. In Kafka, what is not set is the broker's "
      "choice.");
  add_verb(topic, context, flags, "ls", "List the topics in a directory or of a cluster", list)
      .footer("Example:\n  once topic ls file:data -o json");
  add_verb(topic, context, flags, "show", "Show settings and partitions of a topic", describe)
      .footer("Example:\n  once topic show file:data/orders");
  const Command repairing =
      add_verb(topic, context, flags, "repair",
               "Show what is left of a topic whose segments are gone, and make it usable", repair);
  repairing.add_flag("--accept-loss", flags->accept_loss,
                     "Do it: go on with what is left; without it nothing is changed");
  repairing.footer(
      "Example:\n  once topic repair file:data/orders\n"
      "What is sound behind the last damage is kept, or what is sound in front of it if it is at "
      "the "
      "end.\nNothing is deleted: damaged files are kept under names that end with .damaged.");
  add_verb(topic, context, flags, "delete", "Delete a topic with all its messages, for good",
           remove)
      .footer("Example:\n  once topic delete file:data/orders\nDeleting what is gone is no error.");
}

}  // namespace once::cli
