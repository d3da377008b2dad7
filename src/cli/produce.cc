// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <once/clock.h>
#include <once/identity.h>
#include <once/open.h>
#include <once/producer.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/checks.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/line_reader.h"
#include "model/json_fields.h"
#include "model/message_view.h"
#include "operate/message_json.h"
#include "operate/one_partition_sink.h"

namespace once::cli {
namespace {

struct ProduceFlags {
  std::string url;
  std::string file = "-";
  bool json = false;
  std::string key_from;
  std::string id_from;
  std::string key_delimiter;
  std::vector<std::string> headers;
  std::optional<std::uint32_t> partition;
  bool tombstone = false;
  std::string producer;
  bool replay = false;
};

// How a line becomes a message.
class Maker {
 public:
  static Result<Maker> make(const ProduceFlags& flags) {
    Maker maker;
    maker.json_ = flags.json;
    if (!flags.id_from.empty()) {
      auto rule = IdRule::parse(flags.id_from);
      if (!rule) return fail_usage("--id: " + rule.error().text);
      if (rule->kind == IdRule::Kind::coordinates)
        return fail_usage(
            "--id coordinates: a message has no partition and offset before it is sent");
      maker.rule_ = std::move(*rule);
    }
    if (!flags.key_from.empty()) {
      if (!is_json_pointer(flags.key_from))
        return fail_usage(fmt::format("--key-from \"{}\" is not a JSON pointer; write /{}",
                                      flags.key_from, flags.key_from));
      maker.key_from_ = flags.key_from;
    }
    if (flags.json && !flags.key_delimiter.empty())
      return fail_usage("--json and --key-delimiter say two things; drop one");
    maker.key_delimiter_ = flags.key_delimiter;
    maker.tombstone_ = flags.tombstone;
    for (const std::string& text : flags.headers) {
      const std::size_t equals = text.find('=');
      if (equals == std::string::npos || equals == 0)
        return fail_usage(fmt::format("--header is NAME=VALUE, not \"{}\"", text));
      maker.headers_.push_back({text.substr(0, equals), text.substr(equals + 1)});
    }
    return maker;
  }

  Result<Message> message_from(std::string_view line) const {
    Message message;
    if (json_)
      message = ONCE_TRY(operate::message_of(line));
    else
      ONCE_TRY(take_line(line, message));
    if (tombstone_ && message.body && message.body->empty()) message.body.reset();
    message.headers.insert(message.headers.end(), headers_.begin(), headers_.end());
    if (!key_from_.empty()) message.key = ONCE_TRY(key_of(message.body));
    if (rule_) message.id = ONCE_TRY(rule_->id_of(DeliveryView(message).delivery()));
    return message;
  }

 private:
  // A body, or a key, a delimiter and a body.
  Status take_line(std::string_view line, Message& message) const {
    if (!key_delimiter_.empty()) {
      const std::size_t end = line.find(key_delimiter_);
      if (end == std::string_view::npos)
        return fail_input(fmt::format("there is no key: the line has no \"{}\"", key_delimiter_));
      message.key = std::string(line.substr(0, end));
      line.remove_prefix(end + key_delimiter_.size());
    }
    message.body = std::string(line);
    return {};
  }

  Result<std::string> key_of(const std::optional<std::string>& body) const {
    const auto fields = JsonFields::parse(view_of(body));
    if (!fields) return fail_input("--key-from: " + fields.error().text);
    auto key = fields->scalar(key_from_);
    if (!key) return fail_input("--key-from: " + key.error().text);
    return key;
  }

  bool json_ = false;
  std::string key_from_;
  std::string key_delimiter_;
  bool tombstone_ = false;
  std::vector<Header> headers_;
  std::optional<IdRule> rule_;
};

class Production {
 public:
  // `typed`: a person types the lines and needs no progress between them.
  Production(Producer& producer, const Maker& maker, Output& output, bool typed)
      : producer_(producer), maker_(maker), progress_(output), typed_(typed) {}

  Status run(LineReader& reader) {
    while (true) {
      const auto lines = reader.next(batch_count_max);
      if (!lines) return fail(after_what_was_sent(lines.error(), line_ + 1));
      if (lines->empty()) return {};
      ONCE_TRY(send(*lines));
      if (typed_) continue;
      progress_.show(fmt::format("  sent {}", grouped(static_cast<std::int64_t>(report_.sent))),
                     system_clock().ticks_ns());
    }
  }

  const SendReport& report() const { return report_; }
  void clear_progress() { progress_.clear(); }

 private:
  static constexpr std::size_t batch_count_max = 1000;

  Error after_what_was_sent(Error error, std::int64_t line) const {
    error.text =
        fmt::format("line {}: {}; {} before it {} sent", line, error.text,
                    report_.sent == 1 ? "1 message" : fmt::format("{} messages", report_.sent),
                    report_.sent == 1 ? "was" : "were");
    return error;
  }

  // A bad line stops us, but the good ones before it are sent first: what is told is then exact.
  Status send(const std::vector<std::string_view>& lines) {
    std::vector<Message> messages;
    std::optional<Error> bad;
    const std::int64_t first = line_ + 1;
    for (const std::string_view line : lines) {
      ++line_;
      auto message = maker_.message_from(line);
      if (!message) {
        bad = message.error();
        break;
      }
      messages.push_back(std::move(*message));
    }
    if (!messages.empty()) {
      const auto report = producer_.send(messages);
      if (!report) {
        Error error = after_what_was_sent(report.error(), first);
        error.text += fmt::format(", and lines {} to {} perhaps in part", first, line_);
        return fail(std::move(error));
      }
      report_.sent += report->sent;
      report_.duplicates += report->duplicates;
      report_.maybe_twice += report->maybe_twice;
    }
    if (bad) return fail(after_what_was_sent(*bad, line_));
    return {};
  }

  Producer& producer_;
  const Maker& maker_;
  Progress progress_;
  const bool typed_;
  SendReport report_;
  std::int64_t line_ = 0;
};

Result<int> produce(const ProduceFlags& flags, Output& output) {
  if (flags.replay && flags.producer.empty())
    return fail_usage(
        "--replay needs --producer NAME: only the messages of a named producer are recognised");
  const Maker maker = ONCE_TRY(Maker::make(flags));
  LineReader reader = ONCE_TRY(LineReader::open(flags.file));
  auto sink = ONCE_TRY(open_sink(flags.url));
  if (flags.partition)
    sink = ONCE_TRY(operate::OnePartitionSink::make(std::move(sink), *flags.partition));
  ProducerOptions options;
  options.name = flags.producer;
  options.replay = flags.replay;
  auto producer = ONCE_TRY(Producer::open(*sink, options));
  const bool typed = flags.file == "-" && ::isatty(STDIN_FILENO) == 1;
  Production production(*producer, maker, output, typed);
  ONCE_TRY(production.run(reader));
  const SendReport report = production.report();
  production.clear_progress();
  if (output.json()) {
    output.write_json(Json{{"sent", report.sent}, {"duplicates", report.duplicates}});
  } else {
    Table table({"sent", "duplicates"});
    table.row({fmt::format("{}", report.sent), fmt::format("{}", report.duplicates)});
    output.write_table(table);
  }
  if (report.maybe_twice > 0)
    output.talk(
        fmt::format("{} may be there twice: an answer was lost, and {} does not recognise "
                    "resends",
                    report.maybe_twice, sink->traits().name));
  return exit_ok;
}

constexpr const char* examples =
    "Examples:\n"
    "  echo hello | once produce file:data/orders\n"
    "  once produce file:data/orders --file orders.jsonl --json\n"
    "      lines like {\"id\":\"order-1\",\"key\":\"ann\",\"body\":{\"amount\":5}}\n"
    "  printf 'ann:5\\nben:7\\n' | once produce file:data/orders --key-delimiter :\n"
    "  once produce file:data/orders --file bodies.jsonl --id json:/order --key-from "
    "/customer\n"
    "  once produce file:data/orders --file orders.txt --producer nightly --replay\n"
    "      run it again after a crash: what arrived before is recognised\n"
    "Id rules: carried, key, header:NAME, json:/a,/b, cloudevents, digest:/a,/b";

}  // namespace

void add_produce(const Command& app, Context& context) {
  const auto flags = std::make_shared<ProduceFlags>();
  const Command command = app.add_command("produce", "Send lines or JSON messages to a topic");
  command.add_option("URL", flags->url, "The topic: file:DIR/TOPIC").required().value_text(" ");
  command.add_option("--file", flags->file, "Read this file instead of the standard input")
      .value_text("PATH");
  command.add_flag("--json", flags->json,
                   "Each line is an object with id, key, headers, body, encoding, timestamp_ms "
                   "instead of a body");
  command.add_option("--key-from", flags->key_from, "Take the key from this place in the JSON body")
      .value_text("/POINTER");
  command.add_option("--id,--id-from", flags->id_from, "Make the id by this rule")
      .value_text("RULE");
  command
      .add_option("--key-delimiter", flags->key_delimiter,
                  "Each line is a key, this text, and a body")
      .value_text("TEXT");
  command.add_option("--header", flags->headers, "A header of every message; may be repeated")
      .repeated()
      .value_text("NAME=VALUE");
  command
      .add_option("--partition", flags->partition,
                  "Send all to this partition, whatever their keys say")
      .check(whole_number(0, UINT32_MAX))
      .value_text("N");
  command.add_flag("--tombstone", flags->tombstone, "An empty body is sent as none: a tombstone");
  command
      .add_option("--producer", flags->producer,
                  "The name of the producer, the same in every run; without it, a random one")
      .value_text("NAME");
  command.add_flag("--replay", flags->replay,
                   "This is the whole input of that producer again, from its first line on");
  add_output(command, context);
  command.footer(examples);
  command.callback([&context, flags] {
    context.action = [&context, flags] { return produce(*flags, context.output); };
  });
}

}  // namespace once::cli
