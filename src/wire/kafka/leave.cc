// SPDX-License-Identifier: Apache-2.0
#include "wire/kafka/leave.h"

#include <chrono>
#include <mutex>
#include <utility>
#include <vector>

namespace once::kafka {

bool close_consumer(const Client& client, int wait_ms) {
  constexpr int step_ms = 50;
  rd_kafka_t* const handle = client.get();
  const Queue events(rd_kafka_queue_new(handle));
  const Failure failure(rd_kafka_consumer_close_queue(handle, events.get()));
  // After a fatal error there is no group to leave any more.
  if (failure) return true;
  // An assignment or a revocation that was announced and not carried out would be waited for.
  // While a consumer is being closed, librdkafka takes every assignment for "give up everything".
  (void)rd_kafka_assign(handle, nullptr);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(wait_ms);
  while (rd_kafka_consumer_closed(handle) == 0) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    const Event event(rd_kafka_queue_poll(events.get(), step_ms));
    if (event && rd_kafka_event_type(event.get()) == RD_KAFKA_EVENT_REBALANCE)
      (void)rd_kafka_assign(handle, nullptr);
  }
  return true;
}

void keep_until_exit(std::shared_ptr<Client> client) {
  static std::mutex mutex;  // taken with no other lock
  static auto& kept = *new std::vector<std::shared_ptr<Client>>;
  const std::lock_guard lock(mutex);
  kept.push_back(std::move(client));
}

}  // namespace once::kafka
