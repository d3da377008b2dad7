// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wire/pulsar/place.h"

namespace once::pulsar {

// Pulsar's binary protocol without I/O: the commands that we send, as whole frames, and those that
// we understand. The numbers are those of PulsarApi.proto.

enum class Type : std::uint32_t {
  connect = 2,
  connected = 3,
  subscribe = 4,
  producer = 5,
  send = 6,
  send_receipt = 7,
  send_error = 8,
  message = 9,
  ack = 10,
  flow = 11,
  unsubscribe = 12,
  success = 13,
  error = 14,
  close_producer = 15,
  close_consumer = 16,
  producer_success = 17,
  ping = 18,
  pong = 19,
  redeliver = 20,
  partitions = 21,
  partitions_response = 22,
  lookup = 23,
  lookup_response = 24,
  end_of_topic = 27,
  get_last = 29,
  get_last_response = 30,
  active_change = 31,
  get_topics = 32,
  get_topics_response = 33,
  auth_challenge = 36,
  auth_response = 37,
  ack_response = 38,
};

enum class SubscriptionType : std::uint32_t { exclusive = 0, shared = 1, failover = 2, key_shared };

// Pulsar's ServerError, as far as we tell them apart (error.cc).
inline constexpr std::uint32_t no_error = 0xffffffff;

struct Subscribe {
  std::string topic;
  std::string subscription;
  SubscriptionType type = SubscriptionType::exclusive;
  std::uint64_t consumer = 0;
  std::string consumer_name = {};
  bool durable = true;
  // Of one that is not durable: the last place that is not delivered; earliest_place: all are. A
  // durable one that is new begins with the oldest message.
  Place behind = earliest_place;
};

struct Send {
  std::uint64_t producer = 0;
  std::uint64_t sequence = 0;
  std::string_view metadata;
  std::string_view payload;
};

// `behind_proxy`: the broker to which a proxy is to forward; empty: whoever answers.
std::string connect_frame(std::string_view token, std::string_view behind_proxy);
std::string auth_response_frame(std::string_view token);
std::string ping_frame();
std::string pong_frame();
std::string partitions_frame(std::uint64_t request, std::string_view topic);
std::string lookup_frame(std::uint64_t request, std::string_view topic, bool authoritative,
                         std::string_view listener);
std::string topics_frame(std::uint64_t request, std::string_view name_space);
std::string producer_frame(std::uint64_t request, std::string_view topic, std::uint64_t producer,
                           std::string_view name);
std::string close_producer_frame(std::uint64_t request, std::uint64_t producer);
std::string send_frame(const Send& send);
std::string subscribe_frame(std::uint64_t request, const Subscribe& subscribe);
std::string close_consumer_frame(std::uint64_t request, std::uint64_t consumer);
std::string flow_frame(std::uint64_t consumer, std::uint32_t permits);
std::string get_last_frame(std::uint64_t request, std::uint64_t consumer);

// Places of whole entries, or of an entry with the messages in it that are still to be done (as
// bits): the others are acknowledged.
struct AckedEntry {
  Place place;
  std::vector<std::uint64_t> left = {};
  std::int32_t batch_size = 0;
};
std::string ack_frame(std::uint64_t request, std::uint64_t consumer, bool cumulative,
                      std::span<const AckedEntry> entries);
std::string redeliver_frame(std::uint64_t consumer, std::span<const Place> places);

// A command from the broker. Views are into the frame.
struct Command {
  Type type = Type::ping;
  std::uint64_t request = 0;
  std::uint64_t producer = 0;
  std::uint64_t consumer = 0;
  std::uint64_t sequence = 0;
  std::int64_t last_sequence = -1;
  std::optional<Place> place;
  std::optional<Place> mark_delete;  // of get_last_response: what the subscription has done
  std::uint32_t redeliveries = 0;
  std::vector<std::uint64_t> left;  // of a batch: the messages that are to be done, as bits
  std::uint32_t error = no_error;
  std::string_view text;  // of the error
  std::uint32_t response = 0;
  std::uint32_t partition_count = 0;
  std::string_view url;
  std::string_view url_tls;
  bool authoritative = false;
  bool through_proxy = false;
  bool is_active = false;
  std::uint32_t message_bytes_max = 0;
  std::uint32_t protocol = 0;
  std::vector<std::string_view> topics;
  // Of a message.
  std::string_view metadata;
  std::string_view payload;
};

// Of a LOOKUP response.
inline constexpr std::uint32_t lookup_redirect = 0;
inline constexpr std::uint32_t lookup_connect = 1;

// Of a frame its content, behind the length. What is not understood is an error ("protocol");
// commands that we do not know are empty.
Result<std::optional<Command>> read_command(std::string_view frame);

// Cuts frames out of what comes. A frame is refused by its length before it is kept.
class FrameCutter {
 public:
  explicit FrameCutter(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  void limit(std::size_t bytes_max) { bytes_max_ = bytes_max; }
  void feed(std::string_view bytes) { buffer_ += bytes; }
  // The next whole frame without its length; nothing: more must come.
  Result<std::optional<std::string>> next();

 private:
  std::size_t bytes_max_;
  std::string buffer_;
  std::size_t begin_ = 0;
};

}  // namespace once::pulsar
