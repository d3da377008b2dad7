// SPDX-License-Identifier: Apache-2.0
#include "cli/replay.h"

#include <fmt/format.h>
#include <once/clock.h>
#include <once/identity.h>
#include <once/outbox.h>

#include <memory>
#include <vector>

#include "cli/exit_code.h"
#include "model/ledger.h"

namespace once::cli {
namespace {

constexpr std::string_view prefix = "once.replay/";
constexpr std::size_t uuid_size = 36;

// A store whose outbox has one destination: the rows of others are for the relays of their
// programs.
class OneDestination final : public Store, private Outbox {
 public:
  OneDestination(Store& store, std::string destination)
      : store_(store), destination_(std::move(destination)) {}

  StoreTraits traits() const override { return store_.traits(); }
  Result<std::unique_ptr<Transaction>> begin(std::string_view scope) override {
    return store_.begin(scope);
  }
  Result<Position> take(std::string_view scope, std::string_view partition) override {
    return store_.take(scope, partition);
  }
  Result<Position> position(std::string_view scope, std::string_view partition) override {
    return store_.position(scope, partition);
  }
  Result<Forgotten> forget(std::string_view scope, std::int64_t horizon_ms,
                           std::size_t rows_max) override {
    return store_.forget(scope, horizon_ms, rows_max);
  }
  Outbox* outbox() override { return this; }

 private:
  Result<std::vector<std::string>> destinations() override {
    const auto waiting = ONCE_TRY(store_.outbox()->pending(destination_, 1));
    if (waiting.empty()) return std::vector<std::string>{};
    return std::vector{destination_};
  }
  Result<std::vector<OutboxRow>> pending(std::string_view destination,
                                         std::size_t count_max) override {
    return store_.outbox()->pending(destination, count_max);
  }
  Status assign(std::string_view destination, std::uint64_t fence,
                std::span<const std::int64_t> numbers,
                std::span<const std::uint32_t> partitions) override {
    return store_.outbox()->assign(destination, fence, numbers, partitions);
  }
  Status sent(std::string_view destination, std::uint64_t fence,
              std::span<const std::int64_t> numbers) override {
    return store_.outbox()->sent(destination, fence, numbers);
  }

  Store& store_;
  const std::string destination_;
};

}  // namespace

Result<std::string> new_replay_destination(const std::string& url) {
  const std::string uuid = ONCE_TRY(make_uuid7(system_clock())->next());
  std::string destination = fmt::format("{}{}/{}", prefix, uuid, url);
  if (destination.size() > name_bytes_max)
    return fail_usage(
        fmt::format("--to has {} bytes, at most {} can be kept with the messages; "
                    "use a shorter path",
                    url.size(), name_bytes_max - prefix.size() - uuid_size - 1));
  return destination;
}

std::optional<std::string> replay_url_of(std::string_view destination) {
  const std::size_t url_at = prefix.size() + uuid_size + 1;
  if (!destination.starts_with(prefix) || destination.size() <= url_at) return std::nullopt;
  return std::string(destination.substr(url_at));
}

Result<std::size_t> send_replayed(Store& store, Sink& sink, const std::string& destination,
                                  Output& output) {
  OneDestination one(store, destination);
  RelayOptions options;
  options.name = destination;
  options.batch_count_max = 100;  // what was parked may be large
  auto relay = ONCE_TRY(Relay::make(
      one, [&](std::string_view) -> Result<Sink*> { return &sink; }, options));
  Progress progress(output);
  std::size_t sent = 0;
  while (true) {
    auto step = relay->step();
    if (!step) {
      Error error = std::move(step).error();
      error.text += "; what was not sent waits in the outbox: once park resume sends it";
      return fail(std::move(error));
    }
    if (*step == 0) return sent;
    sent += *step;
    progress.show(fmt::format("  sent {}", grouped(static_cast<std::int64_t>(sent))),
                  system_clock().ticks_ns());
  }
}

}  // namespace once::cli
