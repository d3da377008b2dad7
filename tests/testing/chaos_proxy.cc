// SPDX-License-Identifier: Apache-2.0
#include "testing/chaos_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/assert.h"

namespace once::testing {
namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Small answers are not held back for others to come.
void send_at_once(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int connect_to(std::uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    send_at_once(socket);
    return socket;
  }
  ::close(socket);
  return -1;
}

bool send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

}  // namespace

// One connection. Once its fault has begun, what is left of it is counted down.
struct ChaosProxy::Pipe {
  int client = -1;
  int server = -1;
  bool broken = false;
  std::optional<std::size_t> client_left;
  std::size_t answer_left = 0;
  bool was_answered = true;  // since the client has sent something
};

ChaosProxy::ChaosProxy(std::uint16_t target_port) : target_port_(target_port) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  ONCE_ASSERT(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  ONCE_ASSERT(::listen(listener_, 128) == 0);
  socklen_t size = sizeof address;
  ONCE_ASSERT(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_all(); });
}

ChaosProxy::~ChaosProxy() {
  stopping_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  ::close(listener_);
  for (std::thread& thread : threads_) thread.join();
}

void ChaosProxy::arm(Fault fault) {
  const std::lock_guard lock(mutex_);
  armed_ = std::move(fault);
  fired_ = false;
}

void ChaosProxy::cut_all() {
  clients_first_ = false;
  ++generation_;
}

void ChaosProxy::cut_all_behind_clients() {
  clients_first_ = true;
  ++generation_;
}

void ChaosProxy::accept_all() {
  while (!stopping_) {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    send_at_once(client);
    const std::lock_guard lock(mutex_);
    threads_.emplace_back([this, client] { serve(client); });
  }
}

void ChaosProxy::pause() const {
  if (delay_ms_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms_));
}

// To close a socket while something is unread throws away what was sent through it.
void ChaosProxy::end_in_peace(int server) const {
  ::shutdown(server, SHUT_WR);
  std::array<char, 65536> unread;
  pollfd ready{server, POLLIN, 0};
  while (!stopping_ && ::poll(&ready, 1, 1000) > 0)
    if (::recv(server, unread.data(), unread.size(), 0) <= 0) return;
}

void ChaosProxy::serve(int client) {
  const std::uint64_t generation = generation_;
  Pipe pipe;
  pipe.client = client;
  pipe.server = connect_to(target_port_);
  bool open = pipe.server >= 0 && !hanging_up_;
  while (open && !stopping_ && generation == generation_) {
    std::array<pollfd, 2> ready{pollfd{pipe.client, POLLIN, 0}, pollfd{pipe.server, POLLIN, 0}};
    if (stalled_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      continue;
    }
    ::poll(ready.data(), ready.size(), 20);
    if (ready[0].revents != 0) open = forward_client(pipe);
    if (open && ready[1].revents != 0) open = forward_server(pipe);
  }
  pollfd unread{pipe.client, POLLIN, 0};
  while (open && clients_first_ && ::poll(&unread, 1, 0) > 0) open = forward_client(pipe);
  if (pipe.server >= 0 && !pipe.broken && (clients_first_ || generation == generation_))
    end_in_peace(pipe.server);
  ::close(pipe.client);
  if (pipe.server >= 0) ::close(pipe.server);
}

bool ChaosProxy::forward_client(Pipe& pipe) {
  std::array<char, 65536> buffer;
  const ssize_t count = ::recv(pipe.client, buffer.data(), buffer.size(), 0);
  if (count <= 0) return false;
  if (std::exchange(pipe.was_answered, false)) ++round_trips_;
  pause();
  std::string_view bytes(buffer.data(), static_cast<std::size_t>(count));
  if (!pipe.broken) {
    const std::lock_guard lock(mutex_);
    const std::size_t at = armed_ ? bytes.find(armed_->match) : std::string_view::npos;
    if (at != std::string_view::npos) {
      pipe.broken = true;
      pipe.client_left = armed_->client_bytes;
      pipe.answer_left = armed_->answer_bytes;
      if (pipe.client_left) *pipe.client_left += at;
      armed_.reset();
    }
  }
  if (pipe.broken && pipe.client_left) {
    bytes = bytes.substr(0, *pipe.client_left);
    *pipe.client_left -= bytes.size();
    (void)send_all(pipe.server, bytes);
    if (*pipe.client_left > 0) return true;
    fired_ = true;
    return false;
  }
  return send_all(pipe.server, bytes);
}

bool ChaosProxy::forward_server(Pipe& pipe) {
  std::array<char, 65536> buffer;
  const ssize_t count = ::recv(pipe.server, buffer.data(), buffer.size(), 0);
  if (count <= 0) return false;
  pipe.was_answered = true;
  pause();
  std::string_view bytes(buffer.data(), static_cast<std::size_t>(count));
  if (!pipe.broken || pipe.client_left) return send_all(pipe.client, bytes);
  bytes = bytes.substr(0, pipe.answer_left);
  pipe.answer_left -= bytes.size();
  const bool sent = send_all(pipe.client, bytes);
  if (pipe.answer_left > 0) return sent;
  fired_ = true;
  return false;
}

}  // namespace once::testing
