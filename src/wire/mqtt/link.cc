// SPDX-License-Identifier: Apache-2.0
#include "wire/mqtt/link.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/url.h"
#include "model/random.h"
#include "wire/mqtt/error.h"

namespace once::mqtt {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr std::int64_t connect_timeout_ms = 5'000;  // of one host, with the server's answer
// For so long the server may take nothing of what is sent to it.
constexpr std::int64_t send_timeout_ms = 10'000;
constexpr std::int64_t goodbye_ms = 500;
constexpr std::size_t read_bytes = 256u << 10;
// Of an answer before we know the server.
constexpr std::size_t answer_bytes_max = 64u << 10;

std::int64_t left_ms(net::Deadline deadline) {
  return std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now()).count();
}

}  // namespace

Introduction visitor() {
  // Every server takes so many letters and digits.
  return {.client = fmt::format("once{:016x}", random_number()), .clean_start = true};
}

Link::Link(const Address& address, std::unique_ptr<net::Stream> stream)
    : address_(address),
      stream_(std::move(stream)),
      reader_(answer_bytes_max),
      last_sent_(steady_clock::now()) {}

Result<std::unique_ptr<Link>> Link::open(const Address& address, const Introduction& introduction) {
  std::optional<net::TlsOptions> tls;
  if (address.tls) tls = {.ca = address.ca, .certificate = address.certificate, .key = address.key};
  std::optional<Error> last;
  for (const Endpoint& host : address.hosts) {
    const net::Deadline deadline = net::in_ms(connect_timeout_ms);
    auto stream = net::Stream::connect(host, tls, deadline);
    if (!stream) {
      last = std::move(stream).error();
      last->text = fmt::format("{}: {}", address.where(), last->text);
      if (last->remedy != Remedy::retry) break;
      continue;
    }
    std::unique_ptr<Link> link(new Link(address, std::move(*stream)));
    const Status introduced = link->introduce(introduction, deadline);
    if (introduced) return link;
    last = introduced.error();
    if (last->remedy != Remedy::retry) break;
  }
  return fail(std::move(*last));
}

Status Link::introduce(const Introduction& introduction, net::Deadline deadline) {
  Connect connect{.version = address_.version,
                  .clean_start = introduction.clean_start,
                  .keep_alive_s = introduction.keep_alive_s,
                  .client = introduction.client};
  if (!address_.user.empty()) connect.user = address_.user;
  if (!address_.password.empty()) connect.password = address_.password;
  if (address_.version == Version::v5) {
    // No maximum packet size: the server would drop larger messages and tell nobody.
    connect.properties = {{PropertyId::session_expiry, introduction.expiry_s},
                          {PropertyId::receive_maximum, introduction.receive_maximum}};
  }
  std::string packet;
  encode(connect, packet);
  ONCE_TRY(send(packet));
  while (left_ms(deadline) > 0) {
    auto frame = next(left_ms(deadline));
    if (!frame && frame.error().tag == "away")
      return fail(error_away(address_.where(), "connect",
                             "the server closed the connection instead of answering; does it "
                             "expect TLS (mqtts://)?"));
    if (!frame) return fail(std::move(frame).error());
    if (!*frame) continue;
    const auto answer = decode(**frame, address_.version);
    if (!answer) return fail(failed(answer.error()));
    const auto* const connack = std::get_if<Connack>(&*answer);
    if (connack == nullptr)
      return fail(error_away(address_.where(), "connect", "the answer is not one of MQTT"));
    return accepted(introduction, *connack);
  }
  return fail(error_away(address_.where(), "connect", "the server does not answer"));
}

Status Link::accepted(const Introduction& introduction, const Connack& connack) {
  const bool is_v5 = address_.version == Version::v5;
  if (connack.reason != 0) {
    // A server of 3.1.1 answers an introduction of MQTT 5 with its own code for it.
    const bool is_code = !is_v5 || connack.reason < failures_begin;
    const std::uint8_t reason = is_code ? reason_of_return_code(connack.reason) : connack.reason;
    return fail(error_from_reason(reason, address_.where(), "connect",
                                  text_in(connack.properties, PropertyId::reason)));
  }
  const auto number = [&](PropertyId id, std::uint32_t otherwise) {
    return number_in(connack.properties, id).value_or(otherwise);
  };
  limits_.session_present = connack.session_present;
  limits_.expiry_s = number(PropertyId::session_expiry, introduction.expiry_s);
  limits_.receive_maximum = static_cast<std::uint16_t>(
      std::max<std::uint32_t>(number(PropertyId::receive_maximum, 0xffff), 1));
  limits_.maximum_qos = static_cast<std::uint8_t>(number(PropertyId::maximum_qos, 2));
  limits_.packet_bytes_max = number(PropertyId::maximum_packet, 5 + mqtt::body_bytes_max);
  limits_.keep_alive_s =
      static_cast<std::uint16_t>(number(PropertyId::server_keep_alive, introduction.keep_alive_s));
  limits_.retains = number(PropertyId::retain_available, 1) != 0;
  limits_.shares = number(PropertyId::shared_available, 1) != 0;
  reader_.allow(mqtt::body_bytes_max);
  return {};
}

Status Link::send(std::string_view packets) {
  if (packets.empty()) return {};
  last_sent_ = steady_clock::now();
  const Status written = stream_->write(packets, net::in_ms(send_timeout_ms));
  if (!written) return fail(failed(written.error()));
  return {};
}

Result<std::optional<Frame>> Link::cut() {
  auto frame = reader_.next();
  if (!frame) return fail(failed(frame.error()));
  return frame;
}

Result<std::optional<Frame>> Link::next(std::int64_t wait_ms) {
  const net::Deadline deadline = net::in_ms(wait_ms);
  arrived_.resize(read_bytes);
  while (true) {
    if (auto frame = ONCE_TRY(cut())) return frame;
    // Not beyond the time of the next ping.
    const std::int64_t piece_ms = std::min<std::int64_t>(left_ms(deadline), 1'000);
    const auto count = stream_->read(arrived_.data(), arrived_.size(), net::in_ms(piece_ms));
    if (!count) return fail(failed(count.error()));
    if (*count > 0) {
      pinged_.reset();
      reader_.add({arrived_.data(), *count});
      continue;
    }
    ONCE_TRY(keep_alive());
    if (pinged_ && steady_clock::now() - *pinged_ > seconds(limits_.keep_alive_s))
      return fail(error_away(address_.where(), "hear from the server",
                             fmt::format("no answer for {} s", limits_.keep_alive_s)));
    if (left_ms(deadline) <= 0) return std::optional<Frame>();
  }
}

Status Link::keep_alive() {
  if (limits_.keep_alive_s == 0 || pinged_) return {};
  if (steady_clock::now() - last_sent_ < milliseconds(limits_.keep_alive_s * 500)) return {};
  return ping();
}

Status Link::ping() {
  pinged_ = steady_clock::now();
  ++pings_;
  std::string packet;
  encode_ping(packet);
  return send(packet);
}

Error Link::ended_by(const Disconnect& disconnect) const {
  const std::string_view told = text_in(disconnect.properties, PropertyId::reason);
  // 0 says that it just ends.
  if (disconnect.reason == 0)
    return error_away(address_.where(), "go on", "the server ended the connection");
  return error_from_reason(disconnect.reason, address_.where(), "go on", told);
}

Error Link::last_word(Error why) {
  while (true) {
    const auto frame = next(0);
    if (!frame || !*frame) return why;
    const auto packet = decode(**frame, address_.version);
    const auto* const disconnect = packet ? std::get_if<Disconnect>(&*packet) : nullptr;
    if (disconnect != nullptr) return ended_by(*disconnect);
  }
}

Error Link::failed(const Error& why) const {
  return {why.remedy, why.tag, fmt::format("{}: {}", address_.where(), why.text), std::nullopt};
}

void Link::close(Session session) {
  std::string packet;
  Disconnect disconnect;
  if (session == Session::ends) disconnect.properties = {{PropertyId::session_expiry, 0}};
  encode(disconnect, address_.version, packet);
  if (stream_->write(packet, net::in_ms(goodbye_ms))) stream_->finish(net::in_ms(goodbye_ms));
}

}  // namespace once::mqtt
