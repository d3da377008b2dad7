// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <librdkafka/rdkafka.h>
#include <once/message.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace once::kafka {

// How a message of ours looks in Kafka: key, value and timestamp are Kafka's own, the id travels in
// the header `once-id` and the stamp in `once-stamp`, so that a consumer can tell what Kafka's
// idempotence cannot: a producer that was restarted or forgotten.

inline constexpr std::string_view stamp_header = "once-stamp";

// PRODUCER/EPOCH/SEQUENCE; the producer in hexadecimal.
std::string encode_stamp(const Stamp& stamp);
// Unset for anything else: a header of this name may come from anybody.
std::optional<Stamp> decode_stamp(std::string_view text);

// The headers of a message with its id and stamp; the caller, or the message it is sent with, owns
// them.
rd_kafka_headers_t* headers_for(const Message& message, const Stamp& stamp);

// Takes id and stamp out of headers, and adds the others to `into`, in order.
void take_headers(const rd_kafka_headers_t* headers, Delivery& delivery,
                  std::vector<HeaderView>& into);
// The same for the headers of a message, which may have none.
void take_headers(const rd_kafka_message_t& message, Delivery& delivery,
                  std::vector<HeaderView>& into);

}  // namespace once::kafka
