// SPDX-License-Identifier: Apache-2.0
#include "net/tls.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace once::net {
namespace {

template <auto free_object>
struct Free {
  template <class T>
  void operator()(T* object) const {
    free_object(object);
  }
};
using Context = std::unique_ptr<SSL_CTX, Free<SSL_CTX_free>>;
using Session = std::unique_ptr<SSL, Free<SSL_free>>;

// What OpenSSL complains about, and its queue is empty afterwards.
std::string complaint() {
  std::string text;
  while (const unsigned long code = ERR_get_error()) {
    std::array<char, 256> line{};
    ERR_error_string_n(code, line.data(), line.size());
    const std::string_view whole(line.data());
    // "error:0A000086:SSL routines::certificate verify failed": the last part is for people.
    const std::string_view reason = whole.substr(whole.rfind(':') + 1);
    text += fmt::format("{}{}", text.empty() ? "" : ", ", reason);
  }
  return text.empty() ? "the connection was closed" : text;
}

tl::unexpected<Error> refuse(const std::string& text) { return fail(Remedy::stop, "denied", text); }

Status use_own(SSL_CTX* context, const TlsOptions& options) {
  if (options.certificate.empty()) return {};
  if (SSL_CTX_use_certificate_chain_file(context, options.certificate.c_str()) != 1)
    return refuse(
        fmt::format("the certificate in {} cannot be read: {}", options.certificate, complaint()));
  if (SSL_CTX_use_PrivateKey_file(context, options.key.c_str(), SSL_FILETYPE_PEM) != 1)
    return refuse(fmt::format("the key in {} cannot be used: {}", options.key, complaint()));
  return {};
}

int piece_of(std::size_t size) {
  return static_cast<int>(std::min<std::size_t>(size, std::numeric_limits<int>::max()));
}

}  // namespace

struct Tls::Parts {
  std::string host;
  Context context;
  Session session;
  BIO* in = nullptr;   // owned by the session
  BIO* out = nullptr;  // owned by the session
};

Tls::Tls(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Tls::~Tls() = default;

Result<std::unique_ptr<Tls>> Tls::make(const TlsOptions& options, const std::string& host) {
  ERR_clear_error();
  auto parts = std::make_unique<Parts>();
  parts->host = host;
  parts->context.reset(SSL_CTX_new(TLS_client_method()));
  if (!parts->context) return refuse("TLS: " + complaint());
  SSL_CTX* const context = parts->context.get();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  const int loaded = options.ca.empty()
                         ? SSL_CTX_set_default_verify_paths(context)
                         : SSL_CTX_load_verify_locations(context, options.ca.c_str(), nullptr);
  if (loaded != 1)
    return refuse(
        fmt::format("the certificates in {} cannot be read: {}", options.ca, complaint()));
  ONCE_TRY(use_own(context, options));
  parts->session.reset(SSL_new(context));
  SSL* const session = parts->session.get();
  if (session == nullptr) return refuse("TLS: " + complaint());
  // An address is not a name, and is not sent as one.
  X509_VERIFY_PARAM* const wanted = SSL_get0_param(session);
  if (X509_VERIFY_PARAM_set1_ip_asc(wanted, host.c_str()) != 1) {
    ERR_clear_error();
    X509_VERIFY_PARAM_set1_host(wanted, host.c_str(), host.size());
    SSL_set_tlsext_host_name(session, host.c_str());
  }
  parts->in = BIO_new(BIO_s_mem());
  parts->out = BIO_new(BIO_s_mem());
  SSL_set_bio(session, parts->in, parts->out);
  SSL_set_connect_state(session);
  return std::unique_ptr<Tls>(new Tls(std::move(parts)));
}

Error Tls::error(std::string_view what) const {
  const long verdict = SSL_get_verify_result(parts_->session.get());
  const std::string text = complaint();
  if (verdict != X509_V_OK)
    return {Remedy::stop, "denied",
            fmt::format("{}: its certificate is not accepted: {}; check ca=FILE and the name",
                        parts_->host, X509_verify_cert_error_string(verdict)),
            std::nullopt};
  return {Remedy::retry, "away", fmt::format("{}: cannot {} by TLS: {}", parts_->host, what, text),
          std::nullopt};
}

Result<bool> Tls::shake_hands() {
  ERR_clear_error();
  const int done = SSL_do_handshake(parts_->session.get());
  if (done == 1) return true;
  const int reason = SSL_get_error(parts_->session.get(), done);
  if (reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE) return false;
  return fail(error("connect"));
}

Status Tls::encrypt(std::string_view text) {
  while (!text.empty()) {
    ERR_clear_error();
    const int done = SSL_write(parts_->session.get(), text.data(), piece_of(text.size()));
    if (done <= 0) return fail(error("send"));
    text.remove_prefix(static_cast<std::size_t>(done));
  }
  return {};
}

Result<std::size_t> Tls::decrypt(char* into, std::size_t size) {
  ERR_clear_error();
  const int done = SSL_read(parts_->session.get(), into, piece_of(size));
  if (done > 0) return static_cast<std::size_t>(done);
  const int reason = SSL_get_error(parts_->session.get(), done);
  if (reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE) return 0u;
  if (reason == SSL_ERROR_ZERO_RETURN)
    return fail(Remedy::retry, "away", parts_->host + ": the connection was closed");
  return fail(error("receive"));
}

// A memory BIO takes everything.
void Tls::feed(std::string_view from_server) {
  BIO_write(parts_->in, from_server.data(), piece_of(from_server.size()));
}

std::string Tls::take() {
  std::string bytes(BIO_ctrl_pending(parts_->out), '\0');
  if (!bytes.empty()) BIO_read(parts_->out, bytes.data(), piece_of(bytes.size()));
  return bytes;
}

}  // namespace once::net
