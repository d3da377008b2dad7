// SPDX-License-Identifier: Apache-2.0
#include "bank.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <utility>

using namespace once;

namespace bank {
namespace {

constexpr std::size_t request_bytes_max = 64 << 10;
constexpr int timeout_s = 5;

// A socket that is closed when it goes.
class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {
    const timeval timeout{.tv_sec = timeout_s, .tv_usec = 0};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    ::setsockopt(descriptor_, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  }
  ~Socket() { ::close(descriptor_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int get() const { return descriptor_; }

  bool write(const std::string& bytes) const {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      const auto count =
          ::send(descriptor_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return false;
      sent += static_cast<std::size_t>(count);
    }
    return true;
  }

  // A whole HTTP message, as its Content-Length says; what came of it, if it broke off.
  std::string read() const {
    std::string bytes;
    char buffer[4096];
    while (bytes.size() < request_bytes_max && !complete(bytes)) {
      const auto count = ::recv(descriptor_, buffer, sizeof buffer, 0);
      if (count <= 0) break;
      bytes.append(buffer, static_cast<std::size_t>(count));
    }
    return bytes;
  }

  static bool complete(const std::string& bytes) {
    const auto end = bytes.find("\r\n\r\n");
    if (end == std::string::npos) return false;
    const auto length = bytes.find("Content-Length: ");
    if (length == std::string::npos || length > end) return true;
    return bytes.size() >= end + 4 + std::strtoul(bytes.c_str() + length + 16, nullptr, 10);
  }

 private:
  const int descriptor_;
};

std::string body_of(const std::string& message) {
  return message.substr(message.find("\r\n\r\n") + 4);
}

std::string http(const std::string& first_line, const std::string& body) {
  return first_line + "\r\nHost: localhost\r\nConnection: close\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

// The process that is the bank.
class Teller {
 public:
  explicit Teller(const std::string& book)
      : book_(::open(book.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
    std::ifstream lines(book);
    for (std::string line; std::getline(lines, line);) remember(line);
  }

  [[noreturn]] void serve(int listener) {
    while (true) {
      const int descriptor = ::accept(listener, nullptr, nullptr);
      if (descriptor < 0) ::_exit(1);
      const Socket socket(descriptor);
      const std::string request = socket.read();
      if (!Socket::complete(request)) continue;
      const std::string answer = handle(request);
      if (!answer.empty()) socket.write(answer);
    }
  }

 private:
  void remember(const std::string& line) {
    receipts_[line.substr(0, line.find(' '))] = "receipt " + std::to_string(receipts_.size() + 1);
  }

  // An empty answer is one that is lost.
  std::string handle(const std::string& request) {
    const bool post = request.rfind("POST /charges/", 0) == 0;
    const std::size_t from = post ? 14 : 13;
    const std::string reference = request.substr(from, request.find(' ', from) - from);
    if (post) return charge(reference, body_of(request));
    const auto found = receipts_.find(reference);
    if (found == receipts_.end()) return http("HTTP/1.1 404 Not Found", "");
    return http("HTTP/1.1 200 OK", found->second);
  }

  std::string charge(const std::string& reference, const std::string& order) {
    ++charges_;
    if (charges_ % 5 == 0) return {};  // never arrived
    if (order.back() == '7') return http("HTTP/1.1 402 Payment Required", "the card is blocked");
    const std::string line = reference + " " + order + "\n";
    if (::write(book_, line.data(), line.size()) != static_cast<ssize_t>(line.size()) ||
        ::fdatasync(book_) != 0)
      ::_exit(1);
    remember(line);
    if (charges_ % 3 == 0) return {};  // charged, and the answer is lost
    return http("HTTP/1.1 200 OK", receipts_[reference]);
  }

  const int book_;
  std::map<std::string, std::string> receipts_;
  int charges_ = 0;
};

}  // namespace

std::vector<std::string> charged_orders(const std::string& book) {
  std::vector<std::string> orders;
  std::ifstream lines(book);
  for (std::string line; std::getline(lines, line);)
    orders.push_back(line.substr(line.find(' ') + 1));
  return orders;
}

Result<Address> open(const std::string& book) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (::bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener, 16) != 0 ||
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return fail(Remedy::stop, "network", std::string("the bank: ") + std::strerror(errno));
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return fail(Remedy::stop, "process", "the bank could not be started");
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);  // it died in between
    Teller(book).serve(listener);
  }
  ::close(listener);
  return Address{ntohs(address.sin_port)};
}

Result<Answer> call(const Address& address, const std::string& method, const std::string& path,
                    const std::string& body) {
  const Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in to = loopback(address.port);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
    return fail(Remedy::retry, "away", "the bank does not answer");
  // From here on nobody knows, until there is an answer.
  const bool sent = socket.write(http(method + " " + path + " HTTP/1.1", body));
  const std::string answer = sent ? socket.read() : std::string();
  if (!Socket::complete(answer) || answer.rfind("HTTP/1.1 ", 0) != 0)
    return fail(Remedy::recheck, "lost", "the bank's answer to " + path + " was lost");
  return Answer{std::atoi(answer.c_str() + 9), body_of(answer)};
}

}  // namespace bank
