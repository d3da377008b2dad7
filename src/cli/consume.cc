// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <once/clock.h>
#include <once/open.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "audit/looking_url.h"
#include "audit/read_to_end.h"
#include "base/url.h"
#include "cli/books.h"
#include "cli/checks.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/id_text.h"
#include "cli/message_format.h"
#include "cli/moment.h"
#include "cli/signals.h"
#include "model/start_at.h"
#include "open/look.h"
#include "open/topics.h"
#include "operate/message_json.h"
#include "operate/progress.h"

namespace once::cli {
namespace {

struct ConsumeFlags {
  std::string url;
  std::string from = "first";
  std::int64_t last = 0;
  std::string partition;
  std::optional<std::string> key;
  std::string header;
  std::int64_t count = -1;
  std::string format;
  bool follow = false;
  bool json = false;
};

// Where each partition is read from.
class Start {
 public:
  static Result<Start> find(const ConsumeFlags& flags, const std::string& topic_url) {
    Start start;
    start.extents_ = ONCE_TRY(operate::topic_extents(topic_url));
    start.last_ = flags.last;
    if (flags.last > 0 || flags.from == "first") return start;
    start.end_ = flags.from == "end";
    if (start.end_) return start;
    if (const auto offset = number_in(flags.from); offset && *offset >= 0) {
      start.offset_ = *offset;
      return start;
    }
    const auto time_ms = parse_moment(flags.from, system_clock().now_ms());
    if (!time_ms)
      return fail_usage(
          fmt::format("--from is first, end, an offset (0, 1, 2, …) or a time, {}; "
                      "not \"{}\"",
                      moment_forms, flags.from));
    start.at_time_ = ONCE_TRY(offsets_at_time(topic_url, *time_ms));
    return start;
  }

  // -1: the oldest message there is.
  std::int64_t of(std::string_view partition) const {
    if (end_) return end_of(partition);
    const auto extent = extents_.find(partition);
    if (last_ > 0 && extent != extents_.end())
      return std::max(extent->second.first_offset, extent->second.end_offset - last_);
    const auto number = number_in(std::string(operate::partition_number(partition)));
    if (!at_time_.empty() && number && *number < static_cast<std::int64_t>(at_time_.size()))
      return at_time_[static_cast<std::size_t>(*number)];
    return offset_;
  }

  // Of an offset that was asked for: whether the partition has it, or comes to it next.
  Status check(std::string_view partition) const {
    const auto extent = extents_.find(partition);
    if (offset_ < 0 || extent == extents_.end()) return {};
    const std::int64_t first = extent->second.first_offset, end = extent->second.end_offset;
    if (offset_ >= first && offset_ <= end) return {};
    if (first >= end)
      return fail_usage(fmt::format("{} has no messages, and the next one is {}, not {}", partition,
                                    end, offset_));
    return fail_usage(
        fmt::format("{} has the offsets {} to {}, not {}", partition, first, end - 1, offset_));
  }

  // One that came after we looked has not been read by anybody: from its first message.
  std::int64_t end_of(std::string_view partition) const {
    const auto extent = extents_.find(partition);
    return extent == extents_.end() ? -1 : extent->second.end_offset;
  }

 private:
  operate::TopicExtents extents_;
  std::int64_t last_ = 0;
  bool end_ = false;
  std::int64_t offset_ = -1;
  std::vector<std::int64_t> at_time_;
};

// Which messages are shown.
class MessageFilter {
 public:
  explicit MessageFilter(const ConsumeFlags& flags) : flags_(flags) {
    const std::size_t equals = flags.header.find('=');
    header_ = flags.header.substr(0, equals);
    if (equals != std::string::npos) value_ = flags.header.substr(equals + 1);
  }

  bool fits(std::string_view partition) const {
    return flags_.partition.empty() || flags_.partition == operate::partition_number(partition);
  }
  bool fits(const Delivery& delivery) const {
    if (!fits(delivery.partition)) return false;
    if (flags_.key && (delivery.key.data() == nullptr || delivery.key != *flags_.key)) return false;
    return header_.empty() ||
           std::any_of(delivery.headers.begin(), delivery.headers.end(),
                       [&](const HeaderView& one) {
                         return one.name == header_ && (!value_ || one.value == *value_);
                       });
  }

 private:
  const ConsumeFlags& flags_;
  std::string header_;
  std::optional<std::string> value_;  // unset: any
};

// Prints deliveries in the form that was asked for.
class Printer {
 public:
  static Result<Printer> make(Output& output, const ConsumeFlags& flags) {
    Printer printer(output, flags.json || output.json());
    if (!flags.format.empty()) printer.format_ = ONCE_TRY(MessageFormat::parse(flags.format));
    return printer;
  }

  void print(const Delivery& delivery) {
    if (format_)
      return output_.write_lines(format_->text_of(
          delivery, [this](std::string_view bytes) { return output_.body_text(bytes); }));
    if (json_) return output_.write_json(operate::json_of(delivery));
    if (output_.format == Format::table) return print_row(delivery);
    output_.write_body(delivery.body);
  }

 private:
  Printer(Output& output, bool json) : output_(output), json_(json) {}

  // Rows are written as they come, so the columns have fixed widths.
  void print_row(const Delivery& delivery) {
    if (!headed_)
      output_.write_line(fmt::format("{:>9}  {:>10}  {:<24}  {:<16}  {}", "partition", "offset",
                                     "id", "key", "body"));
    headed_ = true;
    const auto cell = [this](std::string_view bytes) {
      return output_.shown(operate::text_or_base64(bytes));
    };
    const bool has_id = delivery.id.data() != nullptr;
    const std::string id = has_id ? output_.shown(text_of_id(delivery.id)) : cell(delivery.id);
    output_.write_line(fmt::format("{:>9}  {:>10}  {:<24}  {:<16}  {}",
                                   output_.shown(operate::partition_number(delivery.partition)),
                                   delivery.offset, id, cell(delivery.key), cell(delivery.body)));
  }

  Output& output_;
  bool json_;
  bool headed_ = false;
  std::optional<MessageFormat> format_;
};

class Consumption {
 public:
  Consumption(const ConsumeFlags& flags, const Start& start, Source& source, Printer printer,
              Output& output)
      : flags_(flags),
        start_(start),
        filter_(flags),
        source_(source),
        printer_(std::move(printer)),
        output_(output) {}

  void stop() { stopping_ = true; }

  Status run() {
    constexpr std::int64_t wait_ms = 200;
    while (left() > 0 && !stopping_) {
      const auto count = static_cast<std::size_t>(std::min<std::int64_t>(left(), 1000));
      const Batch batch = ONCE_TRY(source_.poll(count, wait_ms));
      switch (batch.event) {
        case Batch::Event::assigned: ONCE_TRY(start(batch.partition)); break;
        case Batch::Event::revoked: break;
        case Batch::Event::end: return finish();
        case Batch::Event::messages: ONCE_TRY(take(batch)); break;
      }
    }
    return finish();
  }

 private:
  std::int64_t left() const { return flags_.count < 0 ? 1000 : flags_.count - taken_; }

  Status start(std::string_view partition) {
    const bool wanted = filter_.fits(partition);
    seen_ = seen_ || wanted;
    if (wanted) ONCE_TRY(start_.check(partition));
    if (!source_.traits().replayable) return {};
    return start_at(source_, partition, wanted ? start_.of(partition) : start_.end_of(partition));
  }

  Status take(const Batch& batch) {
    for (const Delivery& delivery : batch.deliveries) {
      if (!filter_.fits(delivery) || left() <= 0) continue;
      printer_.print(delivery);
      ++taken_;
    }
    if (batch.deliveries.empty()) return {};
    return output_.flush();
  }

  Status finish() {
    if (!stopping_ && !seen_ && !flags_.partition.empty())
      return fail_usage(fmt::format("{} has no partition {}; once topic show lists them",
                                    flags_.url, flags_.partition));
    return output_.flush();
  }

  const ConsumeFlags& flags_;
  const Start& start_;
  const MessageFilter filter_;
  Source& source_;
  Printer printer_;
  Output& output_;
  std::int64_t taken_ = 0;
  bool seen_ = false;
  std::atomic<bool> stopping_{false};
};

// Without --follow the source ends at its end; what the URL says goes first.
Result<std::string> bounded(const ConsumeFlags& flags, const std::string& source_url) {
  const Url url = ONCE_TRY(parse_url(source_url));
  if (flags.follow && url.parameter("end") != nullptr)
    return fail_usage("--follow and the parameter end= of the URL say two things; drop one");
  if (flags.follow) return source_url;
  return audit::url_that_ends(source_url);
}

Status check_flags(const ConsumeFlags& flags, const Output& output) {
  if (flags.json && output.format == Format::table)
    return fail_usage("--json and -o table say two things; drop one");
  if (!flags.format.empty() && (flags.json || output.format != Format::automatic))
    return fail_usage("--format and --json or -o say two things; drop one");
  if (flags.last > 0 && flags.from != "first")
    return fail_usage("--last and --from say two things; drop one");
  return {};
}

Status check_offsets(const ConsumeFlags& flags, const Source& source) {
  if (source.traits().replayable || (flags.from == "first" && flags.last == 0)) return {};
  return fail_usage(
      fmt::format("{} has no offsets to start from; drop --from and --last", source.traits().name));
}

Result<int> consume(const ConsumeFlags& flags, Output& output) {
  ONCE_TRY(check_flags(flags, output));
  Printer printer = ONCE_TRY(Printer::make(output, flags));
  const audit::LookingUrl looking = ONCE_TRY(audit::looking_url_of_one(flags.url));
  const std::string url = ONCE_TRY(bounded(flags, looking.source));
  tell_looking(flags.url, output);
  SignalWatch signals;
  const Start start = ONCE_TRY(Start::find(flags, looking.topic));
  const auto source = ONCE_TRY(open_source_to_look(url));
  ONCE_TRY(check_offsets(flags, *source));
  Consumption consumption(flags, start, *source, std::move(printer), output);
  const SignalWatch::Scope stoppable(
      signals, {.on_signal = [&] { consumption.stop(); }, .on_overdue = [&] { source->leave(); }});
  ONCE_TRY(consumption.run());
  return signals.came() == 0 ? int{exit_ok} : 128 + signals.came();
}

constexpr const char* examples =
    "Examples:\n"
    "  once consume file:data/orders                      all bodies, one per line, then end\n"
    "  once consume file:data/orders -o json              one JSON object per message\n"
    "  once consume file:data/orders --from end --follow  what comes from now on\n"
    "  once consume file:data/orders --partition 0 --from 100 --count 10\n"
    "  once consume file:data/orders --last 5             the last five of each partition\n"
    "  once consume file:data/orders --from -1h --key ann\n"
    "  once consume file:data/orders --format '%p %o %k: %s\\n'\n"
    "In --format: %t topic, %p partition, %o offset, %k key, %s body, %h headers, %T timestamp,\n"
    "%i id, %K and %S bytes of key and body, %% percent; \\n \\r \\t \\0 \\\\ as in C.\n"
    "Reading changes nothing: positions belong to pipelines and live in their stores.";

}  // namespace

void add_consume(const Command& app, Context& context) {
  const auto flags = std::make_shared<ConsumeFlags>();
  const Command command = app.add_command("consume", "Read messages of a topic");
  command.add_option("URL", flags->url, "The topic: file:DIR/TOPIC").required().value_text(" ");
  command.add_option("--from", flags->from, "Where to start in each partition (first)")
      .value_text("first|end|OFFSET|TIME");
  command.add_option("--last", flags->last, "Only the last N messages of each partition")
      .check(whole_number(1, INT64_MAX))
      .value_text("N");
  command.add_option("--key", flags->key, "Only messages with this key").value_text("TEXT");
  command.add_option("--header", flags->header, "Only messages that have this header")
      .value_text("NAME[=VALUE]");
  command.add_option("--format", flags->format, "How each message is written, as below")
      .value_text("TEXT");
  command.add_option("--partition", flags->partition, "Only this partition").value_text("N");
  command.add_option("--count", flags->count, "Stop after this many messages")
      .check(whole_number(0, INT64_MAX))
      .value_text("N");
  command.add_flag("--follow", flags->follow, "Wait for more messages instead of ending");
  command.add_flag("--json", flags->json, "The same as -o json: one JSON object per message");
  add_output(command, context);
  command.footer(examples);
  command.callback([&context, flags] {
    context.action = [&context, flags] { return consume(*flags, context.output); };
  });
}

}  // namespace once::cli
