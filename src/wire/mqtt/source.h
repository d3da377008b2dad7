// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/source.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "wire/mqtt/address.h"
#include "wire/mqtt/inbox.h"
#include "wire/mqtt/link.h"

namespace once::mqtt {

// A subscription. It connects with the first poll, under the name of its session, and again
// whenever the connection is lost; then the broker delivers again what was not acknowledged. It has
// no thread of its own: all that arrives is read by polls, which also keep the connection alive.
class MqttSource final : public Source {
 public:
  // Finds out whether the broker would take us, without disturbing the session.
  static Result<std::unique_ptr<MqttSource>> open(Address address);
  ~MqttSource() override;

  SourceTraits traits() const override;
  Result<Batch> poll(std::size_t count_max, std::int64_t wait_ms) override;
  Status ack(std::span<const Delivery> done) override;
  Status release(std::span<const Delivery> undone, std::int64_t delay_ms) override;

 private:
  explicit MqttSource(Address address);
  bool keeps_session() const { return !address_.only_looks && !address_.client.empty(); }
  Status connect();
  Status subscribe(bool session_present);
  Status read(std::size_t count_max, std::int64_t wait_ms);
  Status serve(Frame frame);
  Status serve(const Suback& suback) const;
  Status send_answers();
  // Drops the connection. An error if there is no sense in making another.
  Status lost(Error why);
  Status look_for_end();
  Batch next_batch(std::size_t count_max);

  const Address address_;
  const std::string client_;
  Inbox inbox_;
  std::unique_ptr<Link> link_;
  bool announced_ = false;
  bool had_session_ = false;
  Moment connected_at_;
  int short_lives_ = 0;  // connections in a row that were lost soon
  // Nothing arrives between a ping, sent when all was acknowledged, and its answer: the broker has
  // nothing more for us.
  enum class End : std::uint8_t { unknown, asked, reached };
  End end_ = End::unknown;
  std::uint64_t pongs_ = 0;  // of this connection
  std::uint64_t pings_when_asked_ = 0;
};

}  // namespace once::mqtt
