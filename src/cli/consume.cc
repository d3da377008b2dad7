// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <once/log.h>
#include <once/open.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "audit/read_to_end.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/signals.h"
#include "open/log_address.h"
#include "operate/message_json.h"

namespace once::cli {
namespace {

struct ConsumeFlags {
  std::string url;
  std::string from = "first";
  std::string partition;
  std::int64_t count = -1;
  bool follow = false;
  bool json = false;
};

struct From {
  bool end = false;
  std::int64_t offset = -1;
};

Result<From> parse_from(const std::string& text) {
  if (text == "first") return From{};
  if (text == "end") return From{true, -1};
  From from;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, from.offset);
  if (error != std::errc() || stop != end || from.offset < 0)
    return fail_usage(
        fmt::format("--from \"{}\" is not first, end or an offset (0, 1, 2, …)", text));
  return from;
}

// Prints deliveries in the form that was asked for.
class Printer {
 public:
  Printer(Output& output, bool json) : output_(output), json_(json || output.json()) {}

  void print(const Delivery& delivery) {
    if (json_) return output_.write_json(operate::json_of(delivery));
    if (output_.format == Format::table) return print_row(delivery);
    output_.write_body(delivery.body);
  }

 private:
  // Rows are written as they come, so the columns have fixed widths.
  void print_row(const Delivery& delivery) {
    if (!headed_)
      output_.write_line(fmt::format("{:>9}  {:>10}  {:<24}  {:<16}  {}", "partition", "offset",
                                     "id", "key", "body"));
    headed_ = true;
    const auto cell = [this](std::string_view bytes) {
      return output_.shown(operate::text_or_base64(bytes));
    };
    output_.write_line(fmt::format("{:>9}  {:>10}  {:<24}  {:<16}  {}",
                                   output_.shown(operate::partition_number(delivery.partition)),
                                   delivery.offset, cell(delivery.id), cell(delivery.key),
                                   cell(delivery.body)));
  }

  Output& output_;
  bool json_;
  bool headed_ = false;
};

class Consumption {
 public:
  Consumption(const ConsumeFlags& flags, const From& from, Source& source, Printer printer,
              Output& output)
      : flags_(flags), from_(from), source_(source), printer_(printer), output_(output) {}

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
  bool wanted(std::string_view partition) const {
    return flags_.partition.empty() || flags_.partition == operate::partition_number(partition);
  }

  Status start(std::string_view partition) {
    seen_ = seen_ || wanted(partition);
    if (!source_.traits().replayable) return {};
    if (!wanted(partition) || from_.end)
      return source_.seek(partition, ONCE_TRY(end_of(partition)));
    return source_.seek(partition, from_.offset);
  }

  Result<std::int64_t> end_of(std::string_view partition) {
    if (!info_) {
      const Url url = ONCE_TRY(parse_url(flags_.url));
      const LogAddress address = ONCE_TRY(log_address_of(url));
      info_ = ONCE_TRY(describe_topic(address.directory, address.topic));
    }
    for (const PartitionInfo& known : info_->partitions)
      if (fmt::format("{}", known.partition) == operate::partition_number(partition))
        return known.end_offset;
    return fail(Remedy::retry, "missing", fmt::format("partition {} has no end", partition));
  }

  Status take(const Batch& batch) {
    for (const Delivery& delivery : batch.deliveries) {
      if (!wanted(delivery.partition) || left() <= 0) continue;
      printer_.print(delivery);
      ++taken_;
    }
    if (batch.deliveries.empty()) return {};
    ONCE_TRY(output_.flush());
    return source_.ack(batch.deliveries);
  }

  Status finish() {
    if (!stopping_ && !seen_ && !flags_.partition.empty())
      return fail_usage(fmt::format("{} has no partition {}; once topic show lists them",
                                    flags_.url, flags_.partition));
    return output_.flush();
  }

  const ConsumeFlags& flags_;
  From from_;
  Source& source_;
  Printer printer_;
  Output& output_;
  std::optional<TopicInfo> info_;
  std::int64_t taken_ = 0;
  bool seen_ = false;
  std::atomic<bool> stopping_{false};
};

// Without --follow the source ends at its end; what the URL says goes first.
Result<std::string> bounded(const ConsumeFlags& flags) {
  const Url url = ONCE_TRY(parse_url(flags.url));
  if (flags.follow && url.parameter("end") != nullptr)
    return fail_usage("--follow and the parameter end= of the URL say two things; drop one");
  if (flags.follow) return flags.url;
  return audit::url_that_ends(flags.url);
}

Result<int> consume(const ConsumeFlags& flags, Output& output) {
  if (flags.json && output.format == Format::table)
    return fail_usage("--json and -o table say two things; drop one");
  const From from = ONCE_TRY(parse_from(flags.from));
  const std::string url = ONCE_TRY(bounded(flags));
  SignalWatch signals;
  const auto source = ONCE_TRY(open_source(url));
  Consumption consumption(flags, from, *source, Printer(output, flags.json), output);
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
    "Reading changes nothing: positions belong to pipelines and live in their stores.";

}  // namespace

void add_consume(CLI::App& app, Context& context) {
  const auto flags = std::make_shared<ConsumeFlags>();
  CLI::App& command = *app.add_subcommand("consume", "Read messages of a topic");
  command.add_option("URL", flags->url, "The topic: file:DIR/TOPIC")->required()->option_text(" ");
  command.add_option("--from", flags->from, "Where to start in each partition (first)")
      ->option_text("OFFSET|first|end");
  command.add_option("--partition", flags->partition, "Only this partition")->option_text("N");
  command.add_option("--count", flags->count, "Stop after this many messages")
      ->check(CLI::NonNegativeNumber.description(""))
      ->option_text("N");
  command.add_flag("--follow", flags->follow, "Wait for more messages instead of ending");
  command.add_flag("--json", flags->json, "The same as -o json: one JSON object per message");
  add_output(command, context);
  command.footer(examples);
  command.callback([&context, flags] {
    context.action = [&context, flags] { return consume(*flags, context.output); };
  });
}

}  // namespace once::cli
