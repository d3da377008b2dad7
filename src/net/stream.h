// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/url.h"
#include "net/tls.h"

namespace once::net {

using Deadline = std::chrono::steady_clock::time_point;
[[nodiscard]] Deadline in_ms(std::int64_t ms);

// A connection to a server. Every wait has an end. Errors have the remedy `retry` and the tag
// "away" where the server may come back: whether what was sent has arrived is for the caller to
// know. A certificate that is not accepted is "denied". Used by one thread at a time, except
// `descriptor`. After an error it can only be destroyed.
class Stream {
 public:
  static Result<std::unique_ptr<Stream>> connect(const Endpoint& server,
                                                 const std::optional<TlsOptions>& tls,
                                                 Deadline deadline);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // All of the bytes; what the server does not take until the deadline is an error.
  Status write(std::string_view bytes, Deadline deadline);
  // At most `size` bytes, as soon as there are some; 0: none came until the deadline. The end of
  // the connection is an error.
  Result<std::size_t> read(char* into, std::size_t size, Deadline deadline);

  // Ends the connection behind what was sent, and waits until the server has ended it too: to close
  // one while something is unread can throw away what was sent.
  void finish(Deadline deadline);

  int descriptor() const { return descriptor_; }
  std::string name() const;  // HOST:PORT

 private:
  Stream(Endpoint server, int descriptor) : server_(std::move(server)), descriptor_(descriptor) {}

  Status start_tls(const TlsOptions& options, Deadline deadline);
  Result<bool> wait(short events, Deadline deadline) const;
  Status send_all(std::string_view bytes, Deadline deadline);
  Result<std::size_t> receive(char* into, std::size_t size, Deadline deadline);
  tl::unexpected<Error> away(std::string_view what, int code) const;

  const Endpoint server_;
  const int descriptor_;
  std::unique_ptr<Tls> tls_;
};

}  // namespace once::net
