// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
#include <once/result.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "wire/mqtt/envelope.h"
#include "wire/mqtt/packet.h"

namespace once::mqtt {

// What a receiving session has got and not answered yet. It reads and writes no connection: it is
// told what arrives, and `answers` has what is to be sent. Used by one thread.
//
// A message is answered (PUBACK, or PUBREC with QoS 2) when it is acknowledged and so are all that
// came before it: MQTT wants answers in the order of receipt. What was not answered when the
// connection ends is delivered again by the broker; only messages of QoS 0 stay here until they are
// acknowledged, since nobody else has them.
class Inbox {
 public:
  Inbox(Version version, bool own_headers_only, std::string partition);

  // A connection begins or has ended. Without a session the broker has forgotten the old one.
  void connected(bool session_present);
  void disconnected();

  // The frame is that of the message.
  Status arrived(Frame frame, std::int64_t now_ms);
  void released(std::uint16_t packet);  // PUBREL

  // Adds deliveries that are ready, at most so many.
  void take(std::size_t count_max, std::int64_t now_ms, Batch& batch);
  void ack(const Delivery& delivery);
  void release(const Delivery& delivery, std::int64_t ready_ms);
  // What is to be sent now; empty afterwards.
  std::string take_answers();

  bool empty() const { return entries_.empty(); }
  std::size_t delivered() const { return out_.size(); }  // and not acknowledged
  std::size_t ready(std::int64_t now_ms);                // to be taken
  // When the next of those that were released is ready; -1: none waits.
  std::int64_t next_ready_ms() const { return later_.empty() ? -1 : later_.begin()->first; }
  // Whether there is room for more that was not asked for.
  bool has_room() const;

 private:
  enum class State : std::uint8_t { ready, out, done };
  struct Entry {
    std::shared_ptr<Incoming> message;
    State state = State::ready;
    std::uint32_t attempt = 1;
    std::uint64_t session = 0;
    std::int64_t tag = 0;  // of its last delivery
  };
  using Number = std::uint64_t;  // of a message: `first_` and on

  Entry& entry(Number number) { return entries_[static_cast<std::size_t>(number - first_)]; }
  std::uint8_t qos(const Entry& one) const { return one.message->publish.qos; }
  void find_due(std::int64_t now_ms);
  void answer_in_order();
  void answer(PacketType type, std::uint16_t packet, std::uint8_t reason = 0);
  Entry* find(const Delivery& delivery);

  const Version version_;
  const bool own_headers_only_;
  const std::string partition_;
  std::uint64_t session_ = 0;
  std::deque<Entry> entries_;  // in the order of receipt
  Number first_ = 0;           // of entries_
  std::deque<Number> ready_;
  std::multimap<std::int64_t, Number> later_;     // by the time when they are ready
  std::unordered_map<std::int64_t, Number> out_;  // by tag
  std::set<std::uint16_t> unanswered_;            // packets of this connection
  std::set<std::uint16_t> received_;              // of QoS 2: answered, and not released yet
  std::size_t ready_bytes_ = 0;
  std::int64_t last_tag_ = 0;
  std::string answers_;
};

}  // namespace once::mqtt
