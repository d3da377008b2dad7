// SPDX-License-Identifier: Apache-2.0
#include "wire/pulsar/tail.h"

#include <once/sink.h>

#include <algorithm>
#include <chrono>

#include "model/message_view.h"

namespace once::pulsar {
namespace {

constexpr std::int64_t near_entries = 500;
constexpr std::int64_t far_entries = 20'000;
constexpr std::int64_t near_ms = 10'000;
constexpr std::int64_t far_ms = 3'000;
constexpr std::size_t window = 1'000;
// An end of which nothing comes is a mark of the broker, which consumers do not see.
constexpr std::int64_t quiet_ms = 2'000;

bool is_before(const Place& one, const Place& other) {
  return one.ledger != other.ledger ? one.ledger < other.ledger : one.entry < other.entry;
}

Subscribe reader_of(const std::string& topic, Place behind) {
  return {
      .topic = topic, .subscription = private_subscription(), .durable = false, .behind = behind};
}

}  // namespace

Result<bool> read_to_end(Client& client, const std::string& topic, Place behind,
                         std::int64_t budget_ms, const std::function<void(const Received&)>& see) {
  const auto reader = ONCE_TRY(Consumer::open(client, reader_of(topic, behind)));
  const Place end = ONCE_TRY(reader->last()).place;
  if (end.entry < 0 || !is_before(behind, end)) return true;
  const net::Deadline deadline = net::in_ms(budget_ms);
  net::Deadline quiet = net::in_ms(quiet_ms);
  while (std::chrono::steady_clock::now() < std::min(deadline, quiet)) {
    ONCE_TRY(reader->want(window));
    client.serve(std::min(deadline, quiet));
    while (reader->has_some()) {
      const Received received = ONCE_TRY(reader->take());
      see(received);
      if (!is_before(received.place, end)) return true;
      quiet = net::in_ms(quiet_ms);
    }
    if (reader->is_lost())
      return fail(Remedy::retry, "away", topic + ": the connection was lost while it was read");
  }
  return std::chrono::steady_clock::now() < deadline;
}

Result<std::optional<Sent>> last_sent(Client& client, const std::string& topic,
                                      std::string_view producer, bool thoroughly) {
  std::optional<Sent> found;
  const auto see = [&](const Received& received) {
    if (received.entry->producer() != producer) return;
    const Delivery delivery = received.entry->delivery(received.entry->size() - 1);
    found = Sent{received.entry->sequence(), received.place, delivery.stamp,
                 digest_of(message_of(delivery))};
  };
  Place end;
  {
    const auto looker = ONCE_TRY(Consumer::open(client, reader_of(topic, earliest_place)));
    end = ONCE_TRY(looker->last()).place;
  }
  if (end.entry < 0) return found;
  for (const std::int64_t entries : {near_entries, far_entries}) {
    const Place behind{end.ledger, std::max<std::int64_t>(end.entry - entries, -1)};
    ONCE_TRY(read_to_end(client, topic, behind, near_ms, see));
    if (found || !thoroughly) return found;
    if (behind.entry < 0) break;
  }
  // Older ledgers have numbers that nobody tells.
  if (!ONCE_TRY(read_to_end(client, topic, earliest_place, far_ms, see))) found.reset();
  return found;
}

}  // namespace once::pulsar
