// SPDX-License-Identifier: Apache-2.0
#include "net/stream.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace once::net {
namespace {

using std::chrono::duration_cast, std::chrono::milliseconds, std::chrono::steady_clock;

int ms_until(Deadline deadline) {
  const auto left = duration_cast<milliseconds>(deadline - steady_clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
}

tl::unexpected<Error> not_reached(const Endpoint& server, std::string_view why) {
  return fail(Remedy::retry, "away",
              fmt::format("{}: cannot connect: {}; is the server up and reachable?",
                          shown_endpoint(server), why));
}

struct AddressesFree {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, AddressesFree>;

Result<Addresses> addresses_of(const Endpoint& server) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port = fmt::format("{}", server.port);
  const int code = ::getaddrinfo(server.host.c_str(), port.c_str(), &hints, &found);
  if (code != 0) return not_reached(server, ::gai_strerror(code));
  return Addresses(found);
}

// The descriptor of a connection, or the reason why there is none.
struct Attempt {
  int descriptor = -1;
  int code = 0;
};

Attempt attempt(const addrinfo& address, Deadline deadline) {
  const int descriptor = ::socket(
      address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, address.ai_protocol);
  if (descriptor < 0) return {-1, errno};
  const auto give_up = [&](int code) {
    ::close(descriptor);
    return Attempt{-1, code};
  };
  if (::connect(descriptor, address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return give_up(errno);
    pollfd waiting{descriptor, POLLOUT, 0};
    int ready = 0;
    do ready = ::poll(&waiting, 1, ms_until(deadline));
    while (ready < 0 && errno == EINTR && steady_clock::now() < deadline);
    if (ready <= 0) return give_up(ETIMEDOUT);
    int code = 0;
    socklen_t size = sizeof code;
    if (::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size) != 0) return give_up(errno);
    if (code != 0) return give_up(code);
  }
  const int on = 1;
  (void)::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return {descriptor, 0};
}

}  // namespace

Deadline in_ms(std::int64_t ms) {
  return steady_clock::now() + milliseconds(std::max<std::int64_t>(ms, 0));
}

Result<std::unique_ptr<Stream>> Stream::connect(const Endpoint& server,
                                                const std::optional<TlsOptions>& tls,
                                                Deadline deadline) {
  const Addresses addresses = ONCE_TRY(addresses_of(server));
  Attempt last;
  for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next) {
    last = attempt(*one, deadline);
    if (last.descriptor >= 0) break;
  }
  if (last.descriptor < 0) return not_reached(server, std::strerror(last.code));
  std::unique_ptr<Stream> stream(new Stream(server, last.descriptor));
  if (tls) ONCE_TRY(stream->start_tls(*tls, deadline));
  return stream;
}

Stream::~Stream() { ::close(descriptor_); }

std::string Stream::name() const { return shown_endpoint(server_); }

tl::unexpected<Error> Stream::away(std::string_view what, int code) const {
  return fail(Remedy::retry, "away", fmt::format("{}: {}: {}", name(), what, std::strerror(code)));
}

Status Stream::start_tls(const TlsOptions& options, Deadline deadline) {
  tls_ = ONCE_TRY(Tls::make(options, server_.host));
  std::array<char, 16384> bytes;
  while (true) {
    const auto done = tls_->shake_hands();
    // Also an alert that says why.
    ONCE_TRY(send_all(tls_->take(), deadline));
    if (!done) return fail(done.error());
    if (*done) return {};
    const std::size_t count = ONCE_TRY(receive(bytes.data(), bytes.size(), deadline));
    if (count == 0)
      return fail(Remedy::retry, "away",
                  fmt::format("{}: no answer to a TLS handshake; is it a port with TLS?", name()));
    tls_->feed({bytes.data(), count});
  }
}

Result<bool> Stream::wait(short events, Deadline deadline) const {
  pollfd waiting{descriptor_, events, 0};
  while (true) {
    const int ready = ::poll(&waiting, 1, ms_until(deadline));
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) return away("cannot wait", errno);
  }
}

Status Stream::send_all(std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!ONCE_TRY(wait(POLLOUT, deadline))) return away("cannot send", ETIMEDOUT);
    } else if (errno != EINTR) {
      return away("the connection was lost", errno);
    }
  }
  return {};
}

Result<std::size_t> Stream::receive(char* into, std::size_t size, Deadline deadline) {
  while (true) {
    const ssize_t count = ::recv(descriptor_, into, size, 0);
    if (count > 0) return static_cast<std::size_t>(count);
    if (count == 0)
      return fail(Remedy::retry, "away",
                  fmt::format("{}: the connection was closed by the server", name()));
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!ONCE_TRY(wait(POLLIN, deadline))) return 0u;
    } else if (errno != EINTR) {
      return away("the connection was lost", errno);
    }
  }
}

Status Stream::write(std::string_view bytes, Deadline deadline) {
  if (!tls_) return send_all(bytes, deadline);
  ONCE_TRY(tls_->encrypt(bytes));
  return send_all(tls_->take(), deadline);
}

Result<std::size_t> Stream::read(char* into, std::size_t size, Deadline deadline) {
  if (!tls_) return receive(into, size, deadline);
  std::array<char, 16384> bytes;
  while (true) {
    const std::size_t decrypted = ONCE_TRY(tls_->decrypt(into, size));
    // TLS has things of its own to say now and then.
    if (const std::string more = tls_->take(); !more.empty())
      ONCE_TRY(send_all(more, in_ms(10'000)));
    if (decrypted > 0) return decrypted;
    const std::size_t count = ONCE_TRY(receive(bytes.data(), bytes.size(), deadline));
    if (count == 0) return 0u;
    tls_->feed({bytes.data(), count});
  }
}

void Stream::finish(Deadline deadline) {
  std::array<char, 16384> unread;
  if (::shutdown(descriptor_, SHUT_WR) != 0) return;
  while (steady_clock::now() < deadline) {
    const auto count = receive(unread.data(), unread.size(), deadline);
    if (!count || *count == 0) return;
  }
}

}  // namespace once::net
