// SPDX-License-Identifier: Apache-2.0
#include "wire/mqtt/source.h"

#include <fmt/format.h>
#include <once/clock.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "model/random.h"
#include "wire/mqtt/error.h"

namespace once::mqtt {
namespace {

using std::chrono::steady_clock;

constexpr std::uint16_t subscribe_packet = 1;
constexpr std::int64_t delay_ms_max = 3'600'000;
// A message that waits keeps those behind it unanswered, so that they can come again later than the
// session alone would allow.
constexpr std::int64_t answers_late_ms = 24 * 3'600'000;
// Not every server says that another has taken over: 3.1.1 has no word for it, and Mosquitto says
// nothing with MQTT 5 either. So many connections, each of which ended so soon, are no accident.
constexpr int short_lives_max = 30;
constexpr std::chrono::seconds short_life{2};

std::int64_t now_ms() { return system_clock().ticks_ns() / 1'000'000; }

}  // namespace

MqttSource::MqttSource(Address address)
    : address_(std::move(address)),
      client_(keeps_session() ? address_.client : visitor().client),
      inbox_(address_.version, address_.own_headers_only, address_.topic) {}

MqttSource::~MqttSource() {
  if (!link_) return;
  (void)link_->send(inbox_.take_answers());
  link_->close();
}

Result<std::unique_ptr<MqttSource>> MqttSource::open(Address address) {
  const auto link = ONCE_TRY(Link::open(address, visitor()));
  const ServerLimits& limits = link->limits();
  if (!address.share.empty() && !limits.shares)
    return fail(error_from_reason(0x9E, address.where(), "subscribe"));
  link->close();
  return std::unique_ptr<MqttSource>(new MqttSource(std::move(address)));
}

SourceTraits MqttSource::traits() const {
  SourceTraits traits{.name = address_.where(),
                      .partitions = {address_.topic},
                      .delay_ms_max = delay_ms_max,
                      .unacknowledged_max = address_.prefetch};
  if (address_.version == Version::v5)
    traits.redelivery_ms_max = std::int64_t{address_.expiry_s} * 1000 + answers_late_ms;
  if (address_.qos == 0) {
    traits.redelivery_ms_max = 0;
    traits.warnings.push_back(fmt::format(
        "{}: QoS 0: a message that is sent while this process is away, or is under way in a crash, "
        "is lost; use qos=1",
        traits.name));
  }
  if (address_.qos == 2)
    traits.warnings.push_back(fmt::format(
        "{}: QoS 2 is exactly once only as long as the session lasts; beyond it the ledger decides",
        traits.name));
  if (address_.version == Version::v3)
    traits.warnings.push_back(
        fmt::format("{}: MQTT 3.1.1 has no place for ids, keys and headers: the id has to be in "
                    "the body",
                    traits.name));
  return traits;
}

Status MqttSource::connect() {
  Introduction introduction{.client = client_,
                            .clean_start = !keeps_session(),
                            .expiry_s = keeps_session() ? address_.expiry_s : 0,
                            .receive_maximum = address_.prefetch,
                            .keep_alive_s = address_.keep_alive_s};
  link_ = ONCE_TRY(Link::open(address_, introduction));
  connected_at_ = steady_clock::now();
  end_ = End::unknown;
  pongs_ = 0;
  const ServerLimits& limits = link_->limits();
  inbox_.connected(limits.session_present);
  const Status subscribed = subscribe(limits.session_present);
  if (!subscribed) return lost(subscribed.error());
  if (address_.version == Version::v5 && limits.expiry_s < introduction.expiry_s)
    return fail(
        Remedy::stop, "config",
        fmt::format("{}: the broker keeps the session for {} s, not for {} s; set expiry={}",
                    address_.where(), limits.expiry_s, introduction.expiry_s, limits.expiry_s));
  const bool forgotten = std::exchange(had_session_, keeps_session()) && !limits.session_present;
  if (!forgotten) return {};
  return fail(Remedy::retry, "session_lost",
              fmt::format("{}: the broker has forgotten the session of the client \"{}\": messages "
                          "that it had for us, and those that were sent since, are lost if nobody "
                          "sends them again. Reading goes on with what is sent from now on",
                          address_.where(), client_));
}

// Each time: a process may have died between its connection and its subscription.
Status MqttSource::subscribe(bool session_present) {
  const std::string filter = address_.subscription();
  std::string packet;
  const std::uint8_t handling = !address_.takes_retained ? 2 : session_present ? 1 : 0;
  encode(Subscribe{.packet = subscribe_packet,
                   .filter = filter,
                   .qos = address_.qos,
                   .retain_handling = handling},
         address_.version, packet);
  return link_->send(packet);
}

Status MqttSource::lost(Error why) {
  if (is_transient(why.remedy)) why = link_->last_word(std::move(why));
  link_.reset();
  inbox_.disconnected();
  if (!is_transient(why.remedy)) return fail(std::move(why));
  const bool soon = steady_clock::now() - connected_at_ < short_life;
  short_lives_ = soon ? short_lives_ + 1 : 0;
  if (short_lives_ < short_lives_max) return {};
  return fail(Remedy::stop, "fenced",
              fmt::format("{}; {} connections in a row ended like this. Usually another process "
                          "uses the client identifier \"{}\" too, and they throw each other out: "
                          "each process needs a client= of its own",
                          why.text, short_lives_, client_));
}

Result<Batch> MqttSource::poll(std::size_t count_max, std::int64_t wait_ms) {
  if (!link_) ONCE_TRY(connect());
  if (!std::exchange(announced_, true)) {
    Batch batch;
    batch.event = Batch::Event::assigned;
    batch.partition = address_.topic;
    return batch;
  }
  Status done = read(count_max, wait_ms);
  if (!done) {  // the pipeline only has to wait if the connection cannot be made again
    ONCE_TRY(lost(std::move(done).error()));
    ONCE_TRY(connect());
  }
  return next_batch(count_max);
}

Status MqttSource::read(std::size_t count_max, std::int64_t wait_ms) {
  const std::int64_t until_ms = now_ms() + (count_max > 0 ? wait_ms : 0);
  ONCE_TRY(send_answers());
  while (inbox_.has_room() && (count_max == 0 || inbox_.ready(now_ms()) < count_max)) {
    std::int64_t left_ms = inbox_.ready(now_ms()) > 0 ? 0 : until_ms - now_ms();
    const std::int64_t due_ms = inbox_.next_ready_ms();
    if (due_ms >= 0) left_ms = std::min(left_ms, due_ms - now_ms());
    auto frame = ONCE_TRY(link_->next(std::max<std::int64_t>(left_ms, 0)));
    if (frame)
      ONCE_TRY(serve(std::move(*frame)));
    else if (inbox_.ready(now_ms()) > 0 || now_ms() >= until_ms)
      break;
  }
  ONCE_TRY(link_->keep_alive());
  ONCE_TRY(send_answers());
  return count_max > 0 ? look_for_end() : Status();
}

Status MqttSource::serve(Frame frame) {
  if (static_cast<PacketType>(frame.first >> 4) == PacketType::publish) {
    if (!address_.only_looks) end_ = End::unknown;
    const Status arrived = inbox_.arrived(std::move(frame), system_clock().now_ms());
    if (!arrived) return fail(link_->failed(arrived.error()));
    return {};
  }
  const auto packet = decode(frame, address_.version);
  if (!packet) return fail(link_->failed(packet.error()));
  if (const auto* const answer = std::get_if<Answer>(&*packet)) {
    if (answer->type == PacketType::pubrel) inbox_.released(answer->packet);
  } else if (const auto* const suback = std::get_if<Suback>(&*packet)) {
    return serve(*suback);
  } else if (const auto* const disconnect = std::get_if<Disconnect>(&*packet)) {
    return fail(link_->ended_by(*disconnect));
  } else if (std::holds_alternative<Pong>(*packet)) {
    ++pongs_;
    if (pongs_ == pings_when_asked_ && (end_ == End::asked || address_.only_looks))
      end_ = End::reached;
  }
  return {};
}

Status MqttSource::serve(const Suback& suback) const {
  const std::uint8_t reason = suback.reasons.front();
  const std::string what = fmt::format("subscribe to \"{}\"", address_.subscription());
  // 3.1.1 gives no reason.
  if (reason >= failures_begin)
    return fail(error_from_reason(address_.version == Version::v3 ? 0x87 : reason, address_.where(),
                                  what, text_in(suback.properties, PropertyId::reason)));
  if (reason >= address_.qos) return {};
  return fail(Remedy::stop, "config",
              fmt::format("{}: cannot {} with QoS {}: the broker only grants QoS {}; set qos={} if "
                          "that is enough",
                          address_.where(), what, address_.qos, reason, reason));
}

Status MqttSource::send_answers() { return link_->send(inbox_.take_answers()); }

// Who only looks has seen what is there when the broker answers the first ping; what comes later is
// new.
Status MqttSource::look_for_end() {
  if (end_ != End::unknown || (!inbox_.empty() && !address_.only_looks)) return {};
  ONCE_TRY(link_->ping());
  end_ = End::asked;
  pings_when_asked_ = link_->pings();
  return {};
}

Batch MqttSource::next_batch(std::size_t count_max) {
  Batch batch;
  const std::size_t allowed =
      address_.prefetch - std::min<std::size_t>(inbox_.delivered(), address_.prefetch);
  inbox_.take(std::min(count_max, allowed), now_ms(), batch);
  if (address_.only_looks)  // nobody else does
    for (const Delivery& delivery : batch.deliveries) inbox_.ack(delivery);
  if (!batch.deliveries.empty() || count_max == 0) return batch;
  batch.partition = {};
  if (end_ != End::reached) return batch;
  if (address_.stop_at_end)
    batch.event = Batch::Event::end;
  else
    batch.drained = true;
  return batch;
}

Status MqttSource::ack(std::span<const Delivery> done) {
  for (const Delivery& delivery : done) inbox_.ack(delivery);
  // An answer that does not arrive means a redelivery; the next poll finds the connection lost.
  if (link_) (void)send_answers();
  return {};
}

Status MqttSource::release(std::span<const Delivery> undone, std::int64_t delay_ms) {
  const std::int64_t ready_ms = now_ms() + std::clamp<std::int64_t>(delay_ms, 0, delay_ms_max);
  for (const Delivery& delivery : undone) inbox_.release(delivery, ready_ms);
  return {};
}

}  // namespace once::mqtt
