// SPDX-License-Identifier: Apache-2.0
#include "wire/mqtt/sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "wire/mqtt/error.h"

namespace once::mqtt {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// For so long an append waits for a first or next answer, and for a new connection.
constexpr milliseconds patience{10'000};
constexpr milliseconds retry_pause{100};
// The session only has to outlive a lost connection.
constexpr std::uint32_t expiry_s = 120;
constexpr std::size_t under_way_max = 5'000;
constexpr int in_vain_max = 10;

}  // namespace

SinkTraits sink_traits(const Address& address) {
  SinkTraits traits{.name = address.where(), .recognises = Recognises::none};
  const auto warn = [&](std::string_view text) {
    traits.warnings.push_back(fmt::format("{}: {}", traits.name, text));
  };
  if (address.qos == 0)
    warn("QoS 0: the broker confirms nothing, so that what it has not got is lost; use qos=1");
  if (address.version == Version::v3)
    warn(
        "MQTT 3.1.1 only carries the body: keys, headers and times are left out, a consumer has to "
        "find the id in the body, and the broker also confirms what it refuses or nobody reads");
  else if (!address.needs_subscribers)
    warn("no_subscribers=accept: a message that nobody subscribes to is dropped by the broker");
  return traits;
}

MqttSink::MqttSink(Address address)
    : address_(std::move(address)),
      client_(address_.client.empty() ? visitor().client : address_.client),
      settings_{.topic = address_.topic,
                .version = address_.version,
                .qos = address_.qos,
                .retain = address_.retain,
                // What is retained waits for its subscribers.
                .needs_subscribers = address_.needs_subscribers && !address_.retain,
                .where = address_.where()} {}

MqttSink::~MqttSink() {
  if (link_) link_->close(Link::Session::ends);
}

Result<std::unique_ptr<MqttSink>> MqttSink::open(Address address) {
  std::unique_ptr<MqttSink> sink(new MqttSink(std::move(address)));
  const std::lock_guard lock(sink->mutex_);
  ONCE_TRY(sink->connect(false));
  return sink;
}

// A session of 3.1.1 would have no end, and what it remembers of another process would be taken for
// ours; so there is none, and what was not answered is sent again as new.
Status MqttSink::connect(bool goes_on) {
  const bool is_v5 = address_.version == Version::v5;
  link_ = ONCE_TRY(Link::open(
      address_,
      {.client = client_, .clean_start = !(is_v5 && goes_on), .expiry_s = is_v5 ? expiry_s : 0}));
  const ServerLimits& limits = link_->limits();
  packet_bytes_max_ = limits.packet_bytes_max;
  if (limits.maximum_qos < address_.qos)
    return fail(error_from_reason(0x9B, settings_.where, "publish"));
  if (address_.retain && !limits.retains)
    return fail(error_from_reason(0x9A, settings_.where, "publish"));
  return {};
}

SinkTraits MqttSink::traits() const {
  SinkTraits traits = sink_traits(address_);
  const std::lock_guard lock(mutex_);
  const std::size_t around = address_.topic.size() + 16;
  traits.message_bytes_max = packet_bytes_max_ > around ? packet_bytes_max_ - around : 1;
  return traits;
}

Result<Receipt> MqttSink::append(std::uint32_t partition, const Stamp&,
                                 std::span<const Message> messages) {
  if (partition != 0)
    return fail(Remedy::stop, "partition",
                fmt::format("{} has no partition {}", settings_.where, partition));
  const std::lock_guard lock(mutex_);
  notice_end();
  if (!link_) ONCE_TRY(connect(false));
  Flight flight(settings_, messages);
  int in_vain = 0;  // connections that brought no answer
  while (true) {
    const std::size_t answers = flight.answers();
    Status flown = fly(flight);
    if (!flown) in_vain = flight.answers() > answers ? 0 : in_vain + 1;
    // A broker may answer the last message and hang up.
    if (flown || flight.done()) return flight.outcome();
    Error why = link_->last_word(std::move(flown).error());
    if (why.remedy == Remedy::retry && in_vain < in_vain_max) {
      const Status again = reconnect(flight, why);
      if (again) continue;
      why = again.error();
    }
    link_.reset();
    if (flight.may_be_there() && why.remedy != Remedy::stop) why.remedy = Remedy::recheck;
    return fail(std::move(why));
  }
}

// Whether the connection has ended since the last append.
void MqttSink::notice_end() {
  while (link_) {
    const auto frame = link_->next(0);
    const bool ended = !frame || (*frame && static_cast<PacketType>((*frame)->first >> 4) ==
                                                PacketType::disconnect);
    if (ended) link_.reset();
    if (frame && !*frame) return;
  }
}

Status MqttSink::fly(Flight& flight) {
  const std::size_t window = std::min<std::size_t>(link_->limits().receive_maximum, under_way_max);
  steady_clock::time_point heard = steady_clock::now();
  while (!flight.done()) {
    std::string packets;
    flight.next(packet_bytes_max_, window, packets);
    ONCE_TRY(link_->send(packets));
    if (flight.done()) return {};
    if (ONCE_TRY(take_answers(flight, packets.empty()))) {
      heard = steady_clock::now();
    } else if (steady_clock::now() - heard > patience) {
      return fail(error_away(settings_.where, "publish",
                             fmt::format("no answer for {} s", patience.count() / 1000)));
    }
  }
  return {};
}

// Those that are there, or that come within a moment. Whether there were any.
Result<bool> MqttSink::take_answers(Flight& flight, bool waits) {
  std::string packets;
  bool any = false;
  while (auto frame = ONCE_TRY(link_->next(any || !waits ? 0 : 100))) {
    any = true;
    const auto packet = decode(*frame, address_.version);
    if (!packet) return fail(link_->failed(packet.error()));
    if (const auto* const answer = std::get_if<Answer>(&*packet))
      flight.answered(*answer, packets);
    else if (const auto* const disconnect = std::get_if<Disconnect>(&*packet))
      return fail(link_->ended_by(*disconnect));
  }
  ONCE_TRY(link_->send(packets));
  return any;
}

// What is under way goes out again, in the same session if the broker still has it. Where nothing
// is under way, the caller can wait better.
Status MqttSink::reconnect(Flight& flight, Error why) {
  link_.reset();
  if (!flight.may_be_there()) return fail(std::move(why));
  const auto deadline = steady_clock::now() + patience;
  while (steady_clock::now() < deadline) {
    const Status connected = connect(true);
    if (connected) {
      std::string packets;
      flight.resend(link_->limits().session_present, packet_bytes_max_, packets);
      return link_->send(packets);
    }
    why = connected.error();
    if (why.remedy != Remedy::retry) break;
    std::this_thread::sleep_for(retry_pause);
  }
  return fail(std::move(why));
}

}  // namespace once::mqtt
