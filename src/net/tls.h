// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace once::net {

// How a server is recognised, and how we are. There is no way to do without the first.
struct TlsOptions {
  std::string ca = {};  // a file with certificates of authorities; empty: those of the system
  std::string certificate = {};  // of ours, in a file; empty: none
  std::string key = {};          // belongs to it
};

// One TLS connection as a client, without I/O: what comes from the server is fed in, and what is to
// be sent to it is taken out. TLS 1.2 or later.
class Tls {
 public:
  // `host`: whose certificate it must be.
  static Result<std::unique_ptr<Tls>> make(const TlsOptions& options, const std::string& host);
  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  // Goes on with the handshake; true when it is done.
  Result<bool> shake_hands();
  Status encrypt(std::string_view text);
  // Bytes of the text that was decrypted; 0: more must be fed first.
  Result<std::size_t> decrypt(char* into, std::size_t size);

  void feed(std::string_view from_server);
  std::string take();  // what is to be sent now

 private:
  struct Parts;
  explicit Tls(std::unique_ptr<Parts> parts);
  Error error(std::string_view what) const;

  const std::unique_ptr<Parts> parts_;
};

}  // namespace once::net
