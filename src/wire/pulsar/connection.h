// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/stream.h"
#include "wire/pulsar/address.h"
#include "wire/pulsar/command.h"

namespace once::pulsar {

// For how long a broker may think about a question.
inline constexpr std::int64_t answer_ms = 10'000;
// And when we only take our leave.
inline constexpr std::int64_t close_ms = 2'000;

// A command that came; its views are into the frame.
struct Answer {
  std::unique_ptr<std::string> frame;
  Command command;
};

// One connection to a broker, over which all our producers and consumers there speak. It has no
// thread: whoever uses it serves it (`serve`, `ask`), which also answers the broker's pings. A
// process that does not for a minute is taken for dead, and its producers and consumers are free
// for others. Used by one thread at a time. After an error it is lost for good.
class Connection {
 public:
  // What concerns one producer or consumer; may move the frame away.
  using Listener = std::function<Status(Command&, std::string&&)>;

  static Result<std::shared_ptr<Connection>> open(const Address& address, const Endpoint& server,
                                                  const std::string& behind_proxy);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  std::uint64_t next_number() { return ++last_number_; }  // of requests, producers and consumers
  void listen_to_producer(std::uint64_t producer, Listener listener);
  void listen_to_consumer(std::uint64_t consumer, Listener listener);
  void forget_producer(std::uint64_t producer) { producers_.erase(producer); }
  void forget_consumer(std::uint64_t consumer) { consumers_.erase(consumer); }

  Status send(std::string_view frame);
  // Sends a request and waits for the answer to it; others are given to their listeners.
  Result<Answer> ask(std::string_view frame, std::uint64_t request, std::string_view what,
                     std::int64_t wait_ms = answer_ms);
  // Takes in what is there, or else waits for something until the deadline.
  Status serve(net::Deadline deadline);

  bool is_lost() const { return lost_.has_value(); }
  int descriptor() const { return stream_->descriptor(); }
  std::size_t message_bytes_max() const { return message_bytes_max_; }
  std::string name() const { return stream_->name(); }

 private:
  Connection(std::unique_ptr<net::Stream> stream, std::string token);

  Status shake_hands(const std::string& behind_proxy);
  Result<bool> receive(net::Deadline deadline);
  Status handle_all();
  Status handle(Command& command, std::string&& frame);
  Status keep_alive();
  tl::unexpected<Error> lose(Error error);
  Error named(Error error) const;

  const std::unique_ptr<net::Stream> stream_;
  const std::string token_;  // a secret
  FrameCutter cutter_;
  std::size_t message_bytes_max_;
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, Listener> producers_;
  std::map<std::uint64_t, Listener> consumers_;
  std::uint64_t awaited_ = 0;  // the request whose answer is waited for; 0: none
  std::optional<Answer> answer_;
  std::chrono::steady_clock::time_point heard_;
  std::optional<std::chrono::steady_clock::time_point> pinged_;
  std::optional<Error> lost_;
};

}  // namespace once::pulsar
