// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
#include <once/result.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wire/mqtt/envelope.h"
#include "wire/mqtt/packet.h"

namespace once::mqtt {

// The messages of one append on their way to the broker, up to its answers. It reads and writes no
// connection: `next` gives what is to be sent, and answers are told to it.
class Flight {
 public:
  struct Settings {
    std::string topic;
    Version version = Version::v5;
    std::uint8_t qos = 1;
    bool retain = false;
    bool needs_subscribers = true;
    std::string where;  // for errors
  };

  // Refers to both until it ends.
  Flight(const Settings& settings, std::span<const Message> messages);

  // Adds packets of messages that were not sent, while there is room for them.
  void next(std::size_t packet_bytes_max, std::size_t under_way_max, std::string& packets);
  // PUBACK, PUBREC or PUBCOMP. Adds the answer to it, if there is one.
  void answered(const Answer& answer, std::string& packets);
  // What has no answer goes out again on a new connection; in a new session the broker knows
  // nothing of it.
  void resend(bool session_present, std::size_t packet_bytes_max, std::string& packets);

  bool done() const { return sent_ == messages_.size() && under_way_.empty(); }
  // Whether a message may be at the broker.
  bool may_be_there() const { return accepted_ > 0 || !under_way_.empty(); }
  std::size_t answers() const { return answers_; }
  // When all are done: what became of them. An error if nothing was accepted.
  Result<Receipt> outcome() const;

 private:
  struct UnderWay {
    std::uint16_t packet = 0;
    std::size_t message = 0;
    bool received = false;  // of QoS 2: PUBREC has come, PUBREL was sent
    bool refused = false;
  };

  bool write(std::size_t message, std::uint16_t packet, bool duplicate, std::size_t bytes_max,
             std::string& packets);
  void judge(UnderWay& one, const Answer& answer);
  std::uint16_t free_packet();
  UnderWay* find(std::uint16_t packet);

  const Settings& settings_;
  const std::span<const Message> messages_;
  std::size_t sent_ = 0;            // of the messages, for the first time
  std::deque<UnderWay> under_way_;  // in the order of sending
  std::uint16_t last_packet_ = 0;
  std::size_t accepted_ = 0;
  std::size_t answers_ = 0;
  std::vector<Refusal> refused_;
};

}  // namespace once::mqtt
