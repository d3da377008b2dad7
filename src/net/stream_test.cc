// SPDX-License-Identifier: Apache-2.0
#include "net/stream.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>

namespace once::net {
namespace {

// A server on the loopback address that takes one connection.
class Listener {
 public:
  Listener() : descriptor_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(descriptor_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(descriptor_, 1), 0);
    EXPECT_EQ(::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~Listener() { ::close(descriptor_); }
  Endpoint endpoint() const { return {"127.0.0.1", port_}; }
  int accept() const { return ::accept(descriptor_, nullptr, nullptr); }

 private:
  const int descriptor_;
  std::uint16_t port_ = 0;
};

TEST(Stream, bytes_go_there_and_back) {
  const Listener listener;
  auto stream = Stream::connect(listener.endpoint(), std::nullopt, in_ms(5000));
  ASSERT_TRUE(stream) << stream.error().text;
  const int peer = listener.accept();
  std::thread echo([&] {
    std::array<char, 4096> bytes;
    std::size_t rest = 3'000'000;
    while (rest > 0) {
      const ssize_t count = ::read(peer, bytes.data(), bytes.size());
      if (count <= 0) return;
      rest -= static_cast<std::size_t>(count);
    }
    EXPECT_EQ(::write(peer, "done", 4), 4);
  });
  ASSERT_TRUE((*stream)->write(std::string(3'000'000, 'x'), in_ms(10'000)));
  std::array<char, 10> answer{};
  EXPECT_EQ((*stream)->read(answer.data(), answer.size(), in_ms(10'000)).value(), 4u);
  EXPECT_STREQ(answer.data(), "done");
  echo.join();
  ::close(peer);
}

TEST(Stream, a_wait_has_an_end) {
  const Listener listener;
  auto stream = Stream::connect(listener.endpoint(), std::nullopt, in_ms(5000)).value();
  const int peer = listener.accept();
  char byte = 0;
  EXPECT_EQ(stream->read(&byte, 1, in_ms(20)).value(), 0u);
  // Nobody reads: the buffers between are full at some time.
  const Status sent = stream->write(std::string(50'000'000, 'x'), in_ms(50));
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().tag, "away");
  ::close(peer);
}

TEST(Stream, the_end_of_a_connection_is_an_error_and_not_a_signal) {
  const Listener listener;
  auto stream = Stream::connect(listener.endpoint(), std::nullopt, in_ms(5000)).value();
  ::close(listener.accept());
  char byte = 0;
  const auto read = stream->read(&byte, 1, in_ms(5000));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().remedy, Remedy::retry);
  Status sent;
  for (int i = 0; i < 100 && sent; ++i) sent = stream->write("x", in_ms(1000));
  EXPECT_FALSE(sent);
}

TEST(Stream, says_who_cannot_be_reached) {
  Endpoint nowhere;
  {
    const Listener listener;
    nowhere = listener.endpoint();
  }
  const auto refused = Stream::connect(nowhere, std::nullopt, in_ms(5000));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().tag, "away");
  EXPECT_NE(refused.error().text.find(shown_endpoint(nowhere)), std::string::npos);
  EXPECT_NE(refused.error().text.find("Connection refused"), std::string::npos);
}

TEST(Stream, a_server_that_speaks_no_tls_is_told_apart_from_a_wrong_certificate) {
  const Listener listener;
  std::thread other([&] {
    const int peer = listener.accept();
    EXPECT_EQ(::write(peer, "hello, this is another protocol\n", 32), 32);
    ::close(peer);
  });
  const auto stream = Stream::connect(listener.endpoint(), TlsOptions{}, in_ms(5000));
  other.join();
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().tag, "away") << stream.error().text;
}

TEST(Stream, certificates_that_cannot_be_read_are_named) {
  const Listener listener;
  const auto stream =
      Stream::connect(listener.endpoint(), TlsOptions{.ca = "/nowhere/ca.pem"}, in_ms(5000));
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().tag, "denied");
  EXPECT_NE(stream.error().text.find("/nowhere/ca.pem"), std::string::npos);
}

}  // namespace
}  // namespace once::net
