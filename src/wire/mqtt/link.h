// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/stream.h"
#include "wire/mqtt/address.h"
#include "wire/mqtt/packet.h"

namespace once::mqtt {

using Moment = std::chrono::steady_clock::time_point;

// How a client introduces itself.
struct Introduction {
  std::string client;
  bool clean_start = false;
  std::uint32_t expiry_s = 0;  // for how long its session outlives the connection
  std::uint16_t receive_maximum = 0xffff;
  std::uint16_t keep_alive_s = 0;  // 0: the connection may be silent
};

// Of somebody who leaves nothing behind, under a name that nobody else has.
Introduction visitor();

// What the server answers, with MQTT's defaults.
struct ServerLimits {
  bool session_present = false;
  std::uint32_t expiry_s = 0;
  std::uint16_t receive_maximum = 0xffff;
  std::uint8_t maximum_qos = 2;
  std::size_t packet_bytes_max = 5 + mqtt::body_bytes_max;
  std::uint16_t keep_alive_s = 0;
  bool retains = true;
  bool shares = true;
};

// A connection to a broker that has said yes. Used by one thread at a time; all its errors are
// complete, and end it.
class Link {
 public:
  // Tries the hosts of the address one after another.
  static Result<std::unique_ptr<Link>> open(const Address& address,
                                            const Introduction& introduction);

  const ServerLimits& limits() const { return limits_; }
  Status send(std::string_view packets);
  // The next packet, waiting up to `wait_ms` for it; nothing if none came.
  Result<std::optional<Frame>> next(std::int64_t wait_ms);
  // Keeps a connection alive that is not read from at present.
  Status keep_alive();
  Status ping();
  std::uint64_t pings() const { return pings_; }  // sent so far
  // An error with what the server says when it ends the connection.
  Error ended_by(const Disconnect& disconnect) const;
  // Why the connection has ended: what the server has said before, if that is still to be read,
  // otherwise `why`.
  Error last_word(Error why);
  Error failed(const Error& why) const;
  // Says that nothing is wrong. The session stays for as long as it was asked for, or ends too.
  enum class Session : std::uint8_t { stays, ends };
  void close(Session session = Session::stays);

 private:
  Link(const Address& address, std::unique_ptr<net::Stream> stream);
  Status introduce(const Introduction& introduction, net::Deadline deadline);
  Status accepted(const Introduction& introduction, const Connack& connack);
  Result<std::optional<Frame>> cut();

  const Address& address_;
  std::unique_ptr<net::Stream> stream_;
  FrameReader reader_;
  ServerLimits limits_;
  std::string arrived_;  // room for what is read
  Moment last_sent_;
  std::uint64_t pings_ = 0;
  std::optional<Moment> pinged_;  // and nothing was heard since
};

}  // namespace once::mqtt
