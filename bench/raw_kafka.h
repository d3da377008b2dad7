// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <librdkafka/rdkafka.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "load.h"

namespace once::bench {

// A topic with payments as people send them, for us and the peers alike:
// {"id":"018b...","account":17,"amount":1,"note":"..."}, keyed by account.
struct KafkaTopic {
  std::string server_url;  // kafka://HOST:PORT
  std::string name;
  std::uint32_t partitions = 3;

  std::string url() const { return server_url + "/" + name; }
  std::string hosts() const { return server_url.substr(server_url.find("//") + 2); }
};

// Makes the topic and puts the messages 0 to `count` - 1 into it, in batches, without dedup.
void fill_topic(const KafkaTopic& topic, std::size_t count);

// A message of it as its consumers want it: the id, and the account as key.
Message payment_in(const rd_kafka_message_t& message);

// librdkafka as people use it: with its defaults, all partitions from their beginning.
class RawConsumer {
 public:
  explicit RawConsumer(const KafkaTopic& topic);
  RawConsumer(const RawConsumer&) = delete;
  RawConsumer& operator=(const RawConsumer&) = delete;
  ~RawConsumer();

  // Waits for at least one; valid until the next call.
  const rd_kafka_message_t& next();
  std::span<rd_kafka_message_t* const> next(std::size_t count_max);

 private:
  void let_go();

  rd_kafka_t* client_ = nullptr;
  rd_kafka_queue_t* queue_ = nullptr;
  std::vector<rd_kafka_message_t*> messages_;
};

}  // namespace once::bench
