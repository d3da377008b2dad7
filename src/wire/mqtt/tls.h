// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>
#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <string_view>

namespace once::mqtt {

// The files of TLS; empty: the authorities of the machine, no certificate of our own.
struct TlsFiles {
  std::string ca;
  std::string certificate;
  std::string key;
};

// The TLS of a connection, without the connection: bytes go in and come out. It verifies that the
// server's certificate is signed by a known authority and belongs to the host.
class Tls {
 public:
  // Errors have the tag "denied" (a file is not usable).
  static Result<std::unique_ptr<Tls>> make(const TlsFiles& files, const std::string& host);

  // What the server sends.
  void arrived(std::string_view bytes);
  // What is to be sent to it.
  std::string outgoing();

  // False: more has to arrive.
  Result<bool> handshake();
  // Appends what was decrypted; false when the server has closed the connection.
  Result<bool> read(std::string& into);
  Status write(std::string_view bytes);

 private:
  struct FreeContext {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  struct FreeSession {
    void operator()(SSL* session) const { SSL_free(session); }
  };
  Tls() = default;
  Status load(const TlsFiles& files);
  Status expect(const std::string& host);

  std::unique_ptr<SSL_CTX, FreeContext> context_;
  std::unique_ptr<SSL, FreeSession> session_;
  BIO* in_ = nullptr;   // of the session
  BIO* out_ = nullptr;  // of the session
};

}  // namespace once::mqtt
