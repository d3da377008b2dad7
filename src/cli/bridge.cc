// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <once/open.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "audit/bridge_audit.h"
#include "audit/read_to_end.h"
#include "audit/same_topic.h"
#include "base/url.h"
#include "cli/books.h"
#include "cli/checks.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/running.h"
#include "model/hint.h"
#include "model/message_view.h"
#include "model/sha256.h"
#include "open/look.h"
#include "open/shared_topic.h"
#include "operate/audit_json.h"
#include "operate/outbox.h"
#include "operate/paced_source.h"
#include "operate/park.h"

namespace once::cli {
namespace {

struct BridgeFlags {
  std::string from;
  std::string to;
  std::string state;
  std::string id;
  std::int64_t rate = 0;
  bool follow = false;
  RunningFlags running;
};

// The topics of a URL, whatever its parameters say beside them. A path stays relative, so that a
// directory can be moved with the state in it.
std::string place_of(const std::string& text) {
  const auto url = parse_url(text);
  if (!url) return text;  // refused when it is opened
  const auto address = topic_address_of(text);
  if (!address || address->brokers.empty())
    return fmt::format("{}:{}", url->scheme,
                       std::filesystem::path(url->path).lexically_normal().string());
  std::vector<std::string> parts;
  for (const Endpoint& broker : address->brokers)
    parts.push_back(fmt::format("{}:{}", broker.host, broker.port));
  for (const TopicAddress::Topic& topic : address->topics) parts.push_back(topic.name);
  return fmt::format("{}:{}", url->scheme, fmt::join(parts, "\n"));
}

// The same after every restart, another for every pair of topics, and without their secrets.
std::string scope_of(const BridgeFlags& flags) {
  Sha256 hash("bridge");
  hash.field(place_of(flags.from));
  hash.field(place_of(flags.to));
  return "bridge/" + to_hex(hash.digest128());
}

Result<PipelineOptions> options_of(const BridgeFlags& flags) {
  PipelineOptions options;
  options.scope = scope_of(flags);
  options.stop_at_end = !flags.follow;
  if (flags.id.empty()) return options;
  auto rule = IdRule::parse(flags.id);
  if (!rule) return fail_usage("--id: " + rule.error().text);
  options.id = std::move(*rule);
  options.retention_ms = -1;  // a topic may be older than any number of days
  return options;
}

// In the outbox.
std::string destination_of(const PipelineOptions& options) {
  return fmt::format("run/{}/copy", options.scope);
}

Message copied(const Delivery& delivery) {
  Message message = message_of(delivery);
  // The id travels as the sink will have it.
  std::erase_if(message.headers, [](const Header& header) { return header.name == id_header; });
  return message;
}

Handler handler_to(std::string destination) {
  return each([destination = std::move(destination)](const Delivery& delivery,
                                                     Transaction& state) -> Result<Outcome> {
    ONCE_TRY(state.enqueue(destination, copied(delivery)));
    return applied();
  });
}

// A bridge is a pipeline whose only effect is the outbox: position and copy are one transaction of
// the state, and the relay sends the copy with a stamp that makes a resend recognisable.
operate::Job job_of(const BridgeFlags& flags, const PipelineOptions& options, Source& source,
                    Store& state) {
  const std::string destination = destination_of(options);
  return {.name = "once bridge",
          .source = source,
          .store = state,
          .handler = handler_to(destination),
          .options = options,
          .source_url = flags.from,
          .store_url = flags.state,
          .destinations = {{flags.to, destination, "once bridge"}},
          .relay_name = options.scope,
          .has_effects = false,
          .takes_turns = is_for_one_process(flags.from)};
}

struct BridgeParts {
  std::unique_ptr<Store> state;
  std::unique_ptr<operate::PacedSource> source;
};

Result<operate::OpenedJob> open_bridge(const BridgeFlags& flags, const PipelineOptions& options,
                                       operate::Patience& patience, RunLog& log) {
  const std::string from = flags.follow ? flags.from : ONCE_TRY(audit::url_that_ends(flags.from));
  const auto parts = std::make_shared<BridgeParts>();
  parts->source = std::make_unique<operate::PacedSource>(
      ONCE_TRY(patience.until_there(the_source, [&] { return open_source(from); })), flags.rate);
  parts->state = ONCE_TRY(patience.until_there(the_store, [&] { return open_store(flags.state); }));
  operate::Job job = job_of(flags, options, *parts->source, *parts->state);
  const SinkTraits sink = ONCE_TRY(sink_traits_of(flags.to));
  const std::string promise = ONCE_TRY(verify(parts->source->traits(), parts->state->traits(),
                                              job.handler, options, std::span(&sink, 1)));
  tell_warnings(parts->source->traits(), std::span(&sink, 1), log);
  log.tell(Severity::info, "promise", fmt::format("once bridge: {}", promise));
  return operate::OpenedJob{parts, std::move(job)};
}

// Copies to the end, or until a signal comes; answers as run_until_stopped does.
Result<int> copy(const BridgeFlags& flags, const PipelineOptions& options, SignalWatch& signals,
                 Output& output) {
  std::vector<RunningPipeline> pipelines;
  pipelines.push_back({{}, [&](operate::Patience& patience, RunLog& log) {
                         return open_bridge(flags, options, patience, log);
                       }});
  return run_until_stopped(std::move(pipelines), flags.running.wait_s,
                           {flags.running.stats_every_s, flags.follow}, signals, output);
}

// What could not be copied: messages without an id, and those that the other topic never accepts.
Result<std::size_t> parked_by(const BridgeFlags& flags, const PipelineOptions& options) {
  Books books = ONCE_TRY(Books::open(flags.state));
  const std::size_t read = ONCE_TRY(operate::parked_in(books, options.scope)).size();
  const auto emitted =
      ONCE_TRY(operate::parked_emits(books, {.destination = destination_of(options)}));
  return read + emitted.size();
}

void write(const audit::BridgeReport& report, std::size_t parked, Output& output) {
  if (output.json()) return output.write_json(operate::json_of(report, parked));
  const auto number = [](std::uint64_t n) { return grouped(static_cast<std::int64_t>(n)); };
  Table table({"copied", "missing", "doubled", "others", "duplicates", "parked", "without id"});
  table.row({number(report.copied), number(report.missing), number(report.doubled),
             number(report.others), number(report.duplicates), number(parked),
             number(report.without_id)});
  output.write_table(table);
}

// A copy that is behind its state can be made again, which other destinations cannot.
Error with_way_out(Error error, const BridgeFlags& flags, const PipelineOptions& options) {
  if (error.tag != "diverged") return error;
  error.text = fmt::format(
      "{} is not the topic that {} has copied to: it was deleted and created again, or one of the "
      "two was restored. To copy all of {} again, use another --state. To go on without what is "
      "missing: {}. What was found: {}",
      shown_url(flags.to), shown_url(flags.state), shown_url(flags.from),
      hint({"outbox", "restart", destination_of(options), "--reason",
            "the copy was restored or made again", "--store", shown_url(flags.state)}),
      error.text);
  return error;
}

void explain_missing(const BridgeFlags& flags, Output& output) {
  output.talk(fmt::format(
      "what is missing was copied before, as {} says: {} was deleted and created again, "
      "or messages were deleted from it. To copy all of {} again, use another --state",
      shown_url(flags.state), shown_url(flags.to), shown_url(flags.from)));
}

// A queue keeps nothing that could be compared.
Result<int> finish_without_audit(const BridgeFlags& flags, std::size_t parked, Output& output) {
  if (output.json()) {
    output.write_json(operate::json_of_bridge_without_audit(parked));
  } else {
    Table table({"parked"});
    table.row({grouped(static_cast<std::int64_t>(parked))});
    output.write_table(table);
  }
  output.talk(fmt::format(
      "not compared: {} is a queue, which keeps nothing that was acknowledged. Each message was "
      "copied in the transaction in which {} remembers it",
      shown_url(is_queue(flags.from) ? flags.from : flags.to), shown_url(flags.state)));
  return exit_ok;
}

void explain_parked(const BridgeFlags& flags, const PipelineOptions& options, Output& output) {
  output.talk(
      fmt::format("{} and {} show what is parked",
                  hint({"park", "ls", "--scope", options.scope, "--store", shown_url(flags.state)}),
                  hint({"outbox", "show", "--store", shown_url(flags.state)})));
}

Result<int> bridge(const BridgeFlags& flags, Output& output) {
  set_log(flags.running, output);
  for (const std::string& url : {flags.from, flags.to, flags.state}) output.secrets.learn(url);
  const PipelineOptions options = ONCE_TRY(options_of(flags));
  if (const std::string topic = ONCE_TRY(audit::topic_of_both(flags.from, flags.to));
      !topic.empty())
    return fail_usage(fmt::format("{} and {} are the same topic, {}: a copy would never end",
                                  shown_url(flags.from), shown_url(flags.to), topic));
  {
    SignalWatch signals;
    const auto code = copy(flags, options, signals, output);
    if (!code) return fail(with_way_out(code.error(), flags, options));
    if (flags.follow || signals.came() != 0) return *code;
  }
  const std::size_t parked = ONCE_TRY(parked_by(flags, options));
  if (parked > 0) explain_parked(flags, options, output);
  if (is_queue(flags.from) || is_queue(flags.to))
    return finish_without_audit(flags, parked, output);
  const audit::BridgeReport report =
      ONCE_TRY(audit::audit_bridge(flags.from, flags.to, options.id));
  write(report, parked, output);
  if (report.missing > parked) explain_missing(flags, output);
  return report.is_clean() ? exit_ok : exit_broken;
}

constexpr const char* examples =
    "Examples:\n"
    "  once bridge file:data/orders file:new/orders --state sqlite:bridge.db\n"
    "  once bridge file:data/orders kafka://localhost/orders --state sqlite:bridge.db --follow\n"
    "  once bridge A B --state sqlite:bridge.db --id json:/order     and drop what was sent twice\n"
    "Run it again after a crash with the same state: it goes on where it was, and sends again "
    "what\n"
    "may have been sent, with the same stamps. Without --follow it ends with an audit: exit code "
    "1\n"
    "if a message is missing or doubled.";

}  // namespace

void add_bridge(const Command& app, Context& context) {
  const auto flags = std::make_shared<BridgeFlags>();
  const Command command = app.add_command("bridge", "Copy a topic, each message once");
  command.add_option("FROM", flags->from, "The topic to read").required().value_text(" ");
  command.add_option("TO", flags->to, "The topic to write").required().value_text(" ");
  command.add_option("--state", flags->state, "The store that keeps how far it is")
      .required()
      .value_text("STORE");
  command.add_option("--id", flags->id, "Copy each id once, found by this rule").value_text("RULE");
  command.add_option("--rate", flags->rate, "At most N messages per second")
      .check(whole_number(1, 100'000'000))
      .value_text("N");
  command.add_flag("--follow", flags->follow, "Wait for more messages instead of ending");
  add_running_flags(command, flags->running);
  add_output(command, context);
  command.footer(examples);
  command.callback([&context, flags] {
    context.action = [&context, flags] { return bridge(*flags, context.output); };
  });
}

}  // namespace once::cli
