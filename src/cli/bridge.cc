// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <once/open.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "audit/read_to_end.h"
#include "cli/bridge_audit.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/running.h"
#include "model/message_view.h"
#include "model/sha256.h"
#include "operate/paced_source.h"

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

// The same after every restart, another for every pair of topics, and without their secrets.
std::string scope_of(const BridgeFlags& flags) {
  Sha256 hash("bridge");
  hash.field(flags.from);
  hash.field(flags.to);
  return "bridge/" + to_hex(hash.digest128());
}

// A bridge is a pipeline whose only effect is the outbox: position and copy are one transaction of
// the state, and the relay sends the copy with a stamp that makes a resend recognisable.
Result<Plan> plan_of(const BridgeFlags& flags) {
  Plan plan;
  plan.file = "once bridge";
  plan.source_url = flags.from;
  if (!flags.follow) plan.source_url = ONCE_TRY(audit::url_that_ends(flags.from));
  plan.store_url = flags.state;
  plan.options.scope = scope_of(flags);
  plan.options.stop_at_end = !flags.follow;
  if (!flags.id.empty()) {
    auto rule = IdRule::parse(flags.id);
    if (!rule) return fail_usage("--id: " + rule.error().text);
    plan.options.id = std::move(*rule);
    plan.options.retention_ms = -1;  // a topic may be older than any number of days
  }
  plan.relay_name = plan.options.scope;
  EmitRule copy;
  copy.to = flags.to;
  copy.destination = fmt::format("run/{}/copy", plan.options.scope);
  plan.emits.push_back(std::move(copy));
  return plan;
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

// Copies to the end, or until a signal comes. `stopped` says which.
Result<int> copy(const BridgeFlags& flags, const Plan& plan, Output& output, bool& stopped) {
  SignalWatch signals;
  operate::Patience patience(flags.running.wait_s,
                             [&](const std::string& text) { output.talk(text); });
  operate::PacedSource source(
      ONCE_TRY(patience.until_there("the source", [&] { return open_source(plan.source_url); })),
      flags.rate);
  const auto state =
      ONCE_TRY(patience.until_there("the store", [&] { return open_store(plan.store_url); }));
  const Handler handler = handler_to(plan.emits.front().destination);
  const std::string promise =
      ONCE_TRY(verify(source.traits(), state->traits(), handler, plan.options));
  tell_warnings(source, output);
  output.talk(fmt::format("once bridge: {}", promise));
  const auto code =
      run_until_stopped({plan, source, *state, handler, flags.running.stats_every_s, flags.follow},
                        patience, signals, output);
  stopped = signals.came() != 0;
  return code;
}

Result<int> run_bridge(const BridgeFlags& flags, const Plan& plan, Output& output) {
  bool stopped = false;
  const int code = ONCE_TRY(copy(flags, plan, output, stopped));
  if (flags.follow || stopped) return code;
  return audit_bridge(flags.from, flags.to, plan.options.id, output);
}

Result<int> bridge(const BridgeFlags& flags, Output& output) {
  output.quiet = flags.running.quiet;
  const Plan plan = ONCE_TRY(plan_of(flags));
  plan.teach(output.secrets);
  return run_bridge(flags, plan, output);
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

void add_bridge(CLI::App& app, Context& context) {
  const auto flags = std::make_shared<BridgeFlags>();
  CLI::App& command = *app.add_subcommand("bridge", "Copy a topic, each message once");
  command.add_option("FROM", flags->from, "The topic to read")->required()->option_text(" ");
  command.add_option("TO", flags->to, "The topic to write")->required()->option_text(" ");
  command.add_option("--state", flags->state, "The store that keeps how far it is")
      ->required()
      ->option_text("STORE");
  command.add_option("--id", flags->id, "Copy each id once, found by this rule")
      ->option_text("RULE");
  command.add_option("--rate", flags->rate, "At most N messages per second")
      ->check(CLI::Range(1, 100'000'000).description(""))
      ->option_text("N");
  command.add_flag("--follow", flags->follow, "Wait for more messages instead of ending");
  add_running_flags(command, flags->running);
  add_output(command, context);
  command.footer(examples);
  command.callback([&context, flags] {
    context.action = [&context, flags] { return bridge(*flags, context.output); };
  });
}

}  // namespace once::cli
