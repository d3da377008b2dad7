// SPDX-License-Identifier: Apache-2.0
#include "wire/mqtt/flight.h"

#include <fmt/format.h>

#include <algorithm>

#include "wire/mqtt/error.h"

namespace once::mqtt {
namespace {

// So much is written before answers are looked at.
constexpr std::size_t packets_bytes_max = 1u << 20;

}  // namespace

Flight::Flight(const Settings& settings, std::span<const Message> messages)
    : settings_(settings), messages_(messages) {}

void Flight::next(std::size_t packet_bytes_max, std::size_t under_way_max, std::string& packets) {
  while (sent_ < messages_.size() && under_way_.size() < under_way_max &&
         packets.size() < packets_bytes_max) {
    const std::size_t message = sent_++;
    const std::uint16_t packet = settings_.qos > 0 ? free_packet() : std::uint16_t{0};
    if (!write(message, packet, false, packet_bytes_max, packets)) continue;
    if (settings_.qos > 0)
      under_way_.push_back({.packet = packet, .message = message});
    else
      ++accepted_;
  }
}

// Appends a PUBLISH, or refuses the message.
bool Flight::write(std::size_t message, std::uint16_t packet, bool duplicate, std::size_t bytes_max,
                   std::string& packets) {
  auto outgoing = Outgoing::make(messages_[message], settings_.version);
  if (!outgoing) {
    refused_.push_back({message, std::move(outgoing).error()});
    return false;
  }
  const Publish publish{.qos = settings_.qos,
                        .retain = settings_.retain,
                        .duplicate = duplicate,
                        .packet = packet,
                        .topic = settings_.topic,
                        .payload = outgoing->payload,
                        .properties = std::move(outgoing->properties)};
  const std::size_t bytes = encoded_bytes(publish, settings_.version);
  if (bytes > bytes_max) {
    refused_.push_back(
        {message, Error{Remedy::park, "too_large",
                        fmt::format("{}: the message has {} bytes as a packet of MQTT; the broker "
                                    "accepts at most {}",
                                    settings_.where, bytes, bytes_max),
                        std::nullopt}});
    return false;
  }
  encode(publish, settings_.version, packets);
  return true;
}

// Messages that are under way are the last ones that were sent, but for those that wait long.
std::uint16_t Flight::free_packet() {
  do {
    ++last_packet_;
  } while (last_packet_ == 0 || find(last_packet_) != nullptr);
  return last_packet_;
}

// Answers come in the order of sending: it is usually the first.
Flight::UnderWay* Flight::find(std::uint16_t packet) {
  const auto found = std::find_if(under_way_.begin(), under_way_.end(),
                                  [&](const UnderWay& one) { return one.packet == packet; });
  return found == under_way_.end() ? nullptr : &*found;
}

void Flight::answered(const Answer& answer, std::string& packets) {
  UnderWay* const one = find(answer.packet);
  const bool failed = answer.reason >= failures_begin;
  const bool is_received = answer.type == PacketType::pubrec && !failed;
  // Even for a message that is not known here: the broker waits for it.
  if (is_received)
    encode(Answer{.type = PacketType::pubrel, .packet = answer.packet}, settings_.version, packets);
  if (one == nullptr) return;
  ++answers_;
  // What becomes of a message is said once: a PUBCOMP has nothing to add.
  if (!one->received && answer.type != PacketType::pubcomp) judge(*one, answer);
  one->received = one->received || is_received;
  const PacketType last = settings_.qos == 2 ? PacketType::pubcomp : PacketType::puback;
  if (answer.type != last && !failed) return;
  if (!one->refused) ++accepted_;
  under_way_.erase(under_way_.begin() + (one - &under_way_.front()));
}

void Flight::judge(UnderWay& one, const Answer& answer) {
  const bool unheard = answer.reason == no_subscribers_reason && settings_.needs_subscribers;
  if (answer.reason < failures_begin && !unheard) return;
  one.refused = true;
  refused_.push_back(
      {one.message, error_from_reason(answer.reason, settings_.where, "publish",
                                      text_in(answer.properties, PropertyId::reason))});
}

void Flight::resend(bool session_present, std::size_t packet_bytes_max, std::string& packets) {
  std::deque<UnderWay> still;
  for (UnderWay& one : under_way_) {
    if (session_present && one.received) {
      encode(Answer{.type = PacketType::pubrel, .packet = one.packet}, settings_.version, packets);
    } else {
      if (one.refused) continue;  // it was said, and it is not there
      one.received = false;
      if (!write(one.message, one.packet, session_present, packet_bytes_max, packets)) continue;
    }
    still.push_back(one);
  }
  under_way_ = std::move(still);
}

Result<Receipt> Flight::outcome() const {
  Receipt receipt;
  receipt.refused = refused_;
  std::sort(receipt.refused.begin(), receipt.refused.end(),
            [](const Refusal& a, const Refusal& b) { return a.message < b.message; });
  // Where nothing was taken, and not for the messages' sake, all can be sent again.
  if (accepted_ == 0)
    for (const Refusal& refusal : receipt.refused)
      if (refusal.why.remedy != Remedy::park) return fail(refusal.why);
  return receipt;
}

}  // namespace once::mqtt
