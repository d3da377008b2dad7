// SPDX-License-Identifier: Apache-2.0
#include "operate/replay.h"

#include <fmt/format.h>
#include <once/outbox.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "model/ledger.h"
#include "operate/failure.h"
#include "operate/relay_loop.h"

namespace once::operate {
namespace {

constexpr std::string_view prefix = "once.replay/";
constexpr std::size_t uuid_size = 36;

}  // namespace

Result<std::string> replay_destination(const std::string& url) {
  std::string destination = fmt::format("{}{}", prefix, url);
  if (destination.size() > name_bytes_max)
    return fail_usage(
        fmt::format("--to has {} bytes, at most {} can be kept with the messages; "
                    "use a shorter path",
                    url.size(), name_bytes_max - prefix.size()));
  return destination;
}

std::optional<std::string> replay_url_of(std::string_view destination) {
  if (!destination.starts_with(prefix)) return std::nullopt;
  destination.remove_prefix(prefix.size());
  const bool has_uuid = destination.size() > uuid_size && destination[uuid_size] == '/' &&
                        destination.find_first_not_of("0123456789abcdef-") == uuid_size;
  if (has_uuid) destination.remove_prefix(uuid_size + 1);
  if (destination.empty()) return std::nullopt;
  return std::string(destination);
}

Result<RelayState> send_replayed(Store& store, Sink& sink, const std::string& destination,
                                 const OnSent& on_sent) {
  RelayOptions options;
  options.name = destination;
  options.destinations = {destination};
  options.batch_count_max = 100;  // what was parked may be large
  const auto lent = std::shared_ptr<Sink>(std::shared_ptr<void>(), &sink);
  auto relay = ONCE_TRY(Relay::make(
      store, [&](std::string_view) -> Result<std::shared_ptr<Sink>> { return lent; }, options));
  // A relay that died elsewhere keeps its place until its lease ends; nothing else is waited for.
  const Status done = run_relay(*relay, {.idle_ms = 100}, [&](const RelayStep& step) {
    if (step.away != nullptr || step.is_idle()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(step.rest_ms));
    on_sent(step.state.sent);
    return true;
  });
  if (done) return relay->state();
  Error error = done.error();
  error.text += "; what was not sent waits in the outbox: `once park resume` sends it";
  return fail(std::move(error));
}

}  // namespace once::operate
