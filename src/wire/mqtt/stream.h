// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/url.h"
#include "wire/mqtt/tls.h"

namespace once::mqtt {

using Moment = std::chrono::steady_clock::time_point;

// A connection to a server, plain or with TLS. What is written is kept until the network takes it;
// only `connect` and `wait` take time. Errors are of the remedy `retry` if they may pass; their
// texts only say why.
class Stream {
 public:
  // `tls` is nullptr for a plain one.
  static Result<std::unique_ptr<Stream>> connect(const Endpoint& to, const TlsFiles* tls,
                                                 Moment deadline);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();

  Status write(std::string_view bytes);
  // As much of it as the network takes now.
  Status flush();
  bool flushed() const { return sent_ == out_.size(); }
  // Appends what has arrived. An error when the other side has closed the connection and all was
  // read.
  Status read(std::string& into);
  // Closes it behind what is kept, and waits a little until the other side has done so too: it then
  // has got everything. To close a socket while something is unread throws away what was sent.
  void finish(std::int64_t wait_ms);
  // Until something arrives, what is kept can be sent, or the time is up.
  void wait(std::int64_t wait_ms) const;

 private:
  explicit Stream(int socket) : socket_(socket) {}
  Status shake_hands(Moment deadline);
  // Appends what is there; false when the other side has closed the connection.
  Result<bool> receive(std::string& into) const;
  Status take_outgoing();

  const int socket_;
  std::unique_ptr<Tls> tls_;
  std::string out_;
  std::size_t sent_ = 0;  // of `out_`
};

}  // namespace once::mqtt
