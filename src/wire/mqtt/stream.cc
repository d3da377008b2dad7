// SPDX-License-Identifier: Apache-2.0
#include "wire/mqtt/stream.h"

#include <fcntl.h>
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
#include <limits>
#include <system_error>
#include <utility>

namespace once::mqtt {
namespace {

// What one `read` takes at most: the caller looks at it before it takes more.
constexpr std::size_t read_bytes_max = 256u << 10;

std::string text_of(int error) { return std::generic_category().message(error); }

tl::unexpected<Error> away(std::string why) { return fail(Remedy::retry, "away", std::move(why)); }

int left_ms(Moment deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Result<Addresses> look_up(const Endpoint& to) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code =
      ::getaddrinfo(to.host.c_str(), fmt::format("{}", to.port).c_str(), &wanted, &found);
  if (code != 0) return away(fmt::format("{}: {}", to.host, ::gai_strerror(code)));
  return Addresses(found);
}

// A socket that is connected, or the reason why not.
Result<int> connect_to(const addrinfo& address, Moment deadline) {
  const int made = ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made < 0) return away(text_of(errno));
  const int on = 1;
  ::setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  int error = ::connect(made, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd ready{made, POLLOUT, 0};
    if (::poll(&ready, 1, left_ms(deadline)) <= 0) {
      error = ETIMEDOUT;
    } else {
      socklen_t size = sizeof error;
      ::getsockopt(made, SOL_SOCKET, SO_ERROR, &error, &size);
    }
  }
  if (error == 0) return made;
  ::close(made);
  return away(text_of(error));
}

}  // namespace

Result<std::unique_ptr<Stream>> Stream::connect(const Endpoint& to, const TlsFiles* tls,
                                                Moment deadline) {
  const Addresses addresses = ONCE_TRY(look_up(to));
  Result<int> made = away("there is no address");
  for (const addrinfo* next = addresses.get(); next != nullptr; next = next->ai_next) {
    made = connect_to(*next, deadline);
    if (made) break;
  }
  std::unique_ptr<Stream> stream(new Stream(ONCE_TRY(std::move(made))));
  if (tls == nullptr) return stream;
  stream->tls_ = ONCE_TRY(Tls::make(*tls, to.host));
  ONCE_TRY(stream->shake_hands(deadline));
  return stream;
}

Stream::~Stream() { ::close(socket_); }

Status Stream::shake_hands(Moment deadline) {
  std::string bytes;
  while (true) {
    const auto done = tls_->handshake();
    // An alert to the server goes out even where it failed.
    const Status flushed = take_outgoing();
    if (!done) return fail(done.error());
    ONCE_TRY(flushed);
    if (*done) return {};
    if (left_ms(deadline) == 0) return away("the server does not answer (TLS)");
    wait(left_ms(deadline));
    ONCE_TRY(flush());
    bytes.clear();
    const bool open = ONCE_TRY(receive(bytes));
    tls_->arrived(bytes);
    if (!open && bytes.empty())
      return away("the server closed the connection during the TLS handshake");
  }
}

Status Stream::take_outgoing() {
  if (tls_) out_ += tls_->outgoing();
  return flush();
}

Status Stream::write(std::string_view bytes) {
  if (sent_ == out_.size()) {
    out_.clear();
    sent_ = 0;
  }
  if (tls_) {
    ONCE_TRY(tls_->write(bytes));
    out_ += tls_->outgoing();
  } else {
    out_ += bytes;
  }
  return flush();
}

Status Stream::flush() {
  while (sent_ < out_.size()) {
    const ssize_t count = ::send(socket_, out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (count > 0) {
      sent_ += static_cast<std::size_t>(count);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
    return away(text_of(errno));
  }
  return {};
}

Result<bool> Stream::receive(std::string& into) const {
  std::array<char, 65'536> piece;
  while (into.size() < read_bytes_max) {
    const ssize_t count = ::recv(socket_, piece.data(), piece.size(), 0);
    if (count > 0) {
      into.append(piece.data(), static_cast<std::size_t>(count));
      if (static_cast<std::size_t>(count) < piece.size()) return true;
      continue;
    }
    if (count == 0) return false;
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return true;
    return away(text_of(errno));
  }
  return true;
}

Status Stream::read(std::string& into) {
  const std::size_t before = into.size();
  bool open = true;
  if (tls_) {
    std::string bytes;
    open = ONCE_TRY(receive(bytes));
    tls_->arrived(bytes);
    open = ONCE_TRY(tls_->read(into)) && open;
    ONCE_TRY(take_outgoing());  // the answer to a change of keys
  } else {
    open = ONCE_TRY(receive(into));
  }
  if (!open && into.size() == before) return away("the server closed the connection");
  return {};
}

void Stream::finish(std::int64_t wait_ms) {
  const Moment deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(wait_ms);
  bool is_open = true;
  std::string unread;
  while (left_ms(deadline) > 0) {
    if (!flush()) return;
    if (flushed() && std::exchange(is_open, false)) ::shutdown(socket_, SHUT_WR);
    wait(left_ms(deadline));
    unread.clear();
    const auto more = receive(unread);
    if (!more || !*more) return;
  }
}

void Stream::wait(std::int64_t wait_ms) const {
  pollfd ready{socket_, POLLIN, 0};
  if (!flushed()) ready.events |= POLLOUT;
  ::poll(&ready, 1,
         static_cast<int>(std::clamp<std::int64_t>(wait_ms, 0, std::numeric_limits<int>::max())));
}

}  // namespace once::mqtt
