// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/weather.h"

#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "model/start_at.h"

namespace once::cli {
namespace {

constexpr std::uint64_t lost_answers = 12;  // one in so many
constexpr std::uint64_t overtakes = 6;
constexpr std::uint64_t lost_acks = 15;

}  // namespace

bool BadNetwork::one_in(std::uint64_t n) {
  const std::lock_guard lock(mutex_);
  return dice_() % n == 0;
}

Result<Receipt> BadNetwork::append(std::uint32_t partition, const Stamp& stamp,
                                   std::span<const Message> messages) {
  const bool crossed = messages.size() >= 2 && one_in(overtakes);
  Receipt receipt = ONCE_TRY(crossed ? append_crossed(partition, stamp, messages)
                                     : inner().append(partition, stamp, messages));
  if (one_in(lost_answers)) receipt = ONCE_TRY(inner().append(partition, stamp, messages));
  return receipt;
}

// The second half leaves first, on a connection of its own; the sink has to hold it.
Result<Receipt> BadNetwork::append_crossed(std::uint32_t partition, const Stamp& stamp,
                                           std::span<const Message> messages) {
  const std::size_t half = messages.size() / 2;
  Stamp later = stamp;
  later.sequence += half;
  std::optional<Result<Receipt>> second;
  std::thread overtaker([&] { second = inner().append(partition, later, messages.subspan(half)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  auto first = inner().append(partition, stamp, messages.first(half));
  overtaker.join();
  ++overtakings_;
  if (!first) return first;
  if (!*second) return *second;
  first->duplicates += (*second)->duplicates;
  return first;
}

Result<Batch> ForgetfulSource::poll(std::size_t count_max, std::int64_t wait_ms) {
  for (const auto& [partition, offset] : std::exchange(go_back_, {}))
    ONCE_TRY(start_at(source_, partition, offset));
  Batch batch = ONCE_TRY(source_.poll(count_max, wait_ms));
  if (batch.deliveries.empty()) return batch;
  Json offsets = Json::array();
  for (const Delivery& delivery : batch.deliveries) offsets.push_back(delivery.offset);
  ONCE_TRY(journal_.line({{"partition", batch.partition}, {"offsets", std::move(offsets)}}));
  return batch;
}

Status ForgetfulSource::ack(std::span<const Delivery> done) {
  if (done.empty() || dice_() % lost_acks != 0) return source_.ack(done);
  const auto [lost, fresh] =
      go_back_.try_emplace(std::string(done.front().partition), done.front().offset);
  if (!fresh) lost->second = std::min(lost->second, done.front().offset);
  return {};
}

}  // namespace once::cli
