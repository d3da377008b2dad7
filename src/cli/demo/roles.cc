// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/roles.h"

#include <fmt/format.h>
#include <once/open.h>
#include <once/outbox.h>
#include <once/producer.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include "cli/demo/journal.h"
#include "cli/demo/shop.h"
#include "cli/demo/weather.h"
#include "cli/exit_code.h"
#include "operate/relay_loop.h"
#include "operate/runner.h"

namespace once::cli {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

volatile std::sig_atomic_t end_asked = 0;  // written by the signal's handler, so it is global

std::string topic_url(const DemoSettings& settings, std::string_view topic) {
  return fmt::format("file:{}/{}", settings.directory, topic);
}

// Waits for SIGTERM on behalf of a pipeline that is running.
class Watcher {
 public:
  explicit Watcher(operate::Runner& runner)
      : thread_([this, &runner] {
          while (!over_ && !end_was_asked()) std::this_thread::sleep_for(milliseconds(5));
          runner.stop();
        }) {}
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  ~Watcher() {
    over_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> over_{false};
  std::thread thread_;
};

Status run_pipeline(const std::string& role, std::string_view topic, Handler handler,
                    PipelineOptions options, const DemoSettings& settings) {
  Journal journal = ONCE_TRY(Journal::open(settings.directory, role, settings.number));
  auto store = ONCE_TRY(open_sqlite_store(settings.directory + "/shop.db"));
  auto log = ONCE_TRY(open_source(topic_url(settings, topic)));
  ForgetfulSource source(*log, journal, seed_of_process(settings));
  options.batch_count_max = 50;   // a shop that is never far behind has small batches
  operate::Patience none(0, {});  // its parent starts it again
  const auto runner = ONCE_TRY(operate::Runner::make({.name = role,
                                                      .source = source,
                                                      .store = *store,
                                                      .handler = std::move(handler),
                                                      .options = std::move(options)},
                                                     none));
  const Watcher watcher(*runner);
  const Status done = runner->run();
  ONCE_TRY(journal.line({{"end", done ? "asked" : done.error().tag}}));
  return done;
}

Status play_orders(const DemoSettings& settings) {
  PipelineOptions options;
  options.scope = orders_scope;
  options.id = ONCE_TRY(IdRule::parse("json:/order_id"));
  return run_pipeline("orders", orders_topic, take_orders(), options, settings);
}

Status play_points(const DemoSettings& settings) {
  PipelineOptions options;
  options.scope = points_scope;
  options.id = ONCE_TRY(IdRule::parse("carried"));
  return run_pipeline("points", payments_topic, give_points(), options, settings);
}

// Sends the whole load at its pace. What the log has from before is recognised, and is passed
// without waiting.
Status play_gate(const DemoSettings& settings) {
  constexpr std::size_t chunk_count = 10;
  Journal journal = ONCE_TRY(Journal::open(settings.directory, "gate", settings.number));
  const Load load(settings);
  auto sink = ONCE_TRY(open_sink(topic_url(settings, orders_topic)));
  BadNetwork network(*sink, seed_of_process(settings));
  ProducerOptions options;
  options.name = "gate";
  options.replay = true;
  auto producer = ONCE_TRY(Producer::open(network, options));
  const microseconds pause(static_cast<std::int64_t>(1e6 * static_cast<double>(chunk_count) /
                                                     sends_per_second(settings)));
  auto next = std::chrono::steady_clock::now();
  for (std::size_t at = 0; at < load.sends().size() && !end_was_asked();) {
    std::vector<Message> messages;
    for (; at < load.sends().size() && messages.size() < chunk_count; ++at)
      messages.push_back(load.message(at));
    const SendReport report = ONCE_TRY(producer->send(messages));
    ONCE_TRY(journal.line({{"sent", report.sent},
                           {"duplicates", report.duplicates},
                           {"overtakings", network.overtakings()}}));
    if (report.duplicates == report.sent) continue;
    next = std::max(next + pause, std::chrono::steady_clock::now() - 10 * pause);
    std::this_thread::sleep_until(next);
  }
  return {};
}

// The relay is independent of the pipelines: it sends what they have committed to the outbox.
Status play_relay(const DemoSettings& settings) {
  auto store = ONCE_TRY(open_sqlite_store(settings.directory + "/shop.db"));
  RelayOptions options;
  options.name = "shop";
  options.batch_count_max = 50;
  auto relay = ONCE_TRY(Relay::make(
      *store,
      [&](std::string_view) -> Result<std::shared_ptr<Sink>> {
        return open_sink(topic_url(settings, payments_topic));
      },
      options));
  const Status done = operate::run_relay(*relay, {.idle_ms = 5, .away_ms_max = 5},
                                         [](const operate::RelayStep& step) {
                                           std::this_thread::sleep_for(milliseconds(step.rest_ms));
                                           return !end_was_asked();
                                         });
  const bool was_away = !done && is_transient(done.error().remedy);
  return was_away ? Status() : done;
}

}  // namespace

void await_end() {
  struct sigaction action {};
  action.sa_handler = [](int) { end_asked = 1; };
  ::sigaction(SIGTERM, &action, nullptr);
}

bool end_was_asked() { return end_asked != 0; }

std::uint64_t seed_of_process(const DemoSettings& settings) {
  return settings.seed * 1'000'003 + static_cast<std::uint64_t>(settings.number);
}

Status play_role(const std::string& role, const DemoSettings& settings) {
  await_end();
  if (role == "gate") return play_gate(settings);
  if (role == "orders") return play_orders(settings);
  if (role == "relay") return play_relay(settings);
  if (role == "points") return play_points(settings);
  if (role == "naive-orders") return play_naive_orders(settings);
  if (role == "naive-points") return play_naive_points(settings);
  return fail_usage(fmt::format("the demo has no role \"{}\"", role));
}

}  // namespace once::cli
