// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace once::testing {

// What tests do to a Kafka cluster beside what Once does. `hosts` is HOST:PORT.

using KafkaSettings = std::vector<std::pair<std::string, std::string>>;

// Creates a topic, waiting for the broker to be able to.
void create_kafka_topic(const std::string& hosts, const std::string& topic,
                        std::uint32_t partitions, const KafkaSettings& settings = {});
// Deletes everything before `offset` in a partition.
void delete_kafka_records(const std::string& hosts, const std::string& topic,
                          std::int32_t partition, std::int64_t offset);
// What a group has committed at a partition; -1: nothing.
std::int64_t kafka_committed(const std::string& hosts, const std::string& group,
                             const std::string& topic, std::int32_t partition);

// Sends a message to partition 0 in a transaction, and aborts it.
void abort_kafka_transaction(const std::string& hosts, const std::string& topic,
                             const std::string& body);

}  // namespace once::testing
