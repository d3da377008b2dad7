// SPDX-License-Identifier: Apache-2.0
#include "wire/mqtt/tls.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <array>

#include "base/assert.h"

namespace once::mqtt {
namespace {

// What OpenSSL complains about first; the rest of its queue is removed.
std::string complaint() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* const reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : "no reason given";
}

tl::unexpected<Error> denied(std::string text) {
  return fail(Remedy::stop, "denied", std::move(text));
}

bool is_ip_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return ::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

}  // namespace

Result<std::unique_ptr<Tls>> Tls::make(const TlsFiles& files, const std::string& host) {
  ERR_clear_error();
  std::unique_ptr<Tls> tls(new Tls());
  tls->context_.reset(SSL_CTX_new(TLS_client_method()));
  if (!tls->context_) return denied(fmt::format("TLS is not available: {}", complaint()));
  ONCE_TRY(tls->load(files));
  tls->session_.reset(SSL_new(tls->context_.get()));
  if (!tls->session_) return denied(fmt::format("TLS is not available: {}", complaint()));
  ONCE_TRY(tls->expect(host));
  tls->in_ = BIO_new(BIO_s_mem());
  tls->out_ = BIO_new(BIO_s_mem());
  ONCE_ASSERT(tls->in_ != nullptr && tls->out_ != nullptr);
  SSL_set_bio(tls->session_.get(), tls->in_, tls->out_);
  SSL_set_connect_state(tls->session_.get());
  return tls;
}

Status Tls::load(const TlsFiles& files) {
  SSL_CTX* const context = context_.get();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  const int known = files.ca.empty()
                        ? SSL_CTX_set_default_verify_paths(context)
                        : SSL_CTX_load_verify_locations(context, files.ca.c_str(), nullptr);
  if (known != 1)
    return denied(fmt::format("cannot read the certificates of authorities in \"{}\" (ca=): {}",
                              files.ca, complaint()));
  if (files.certificate.empty()) return {};
  if (SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1)
    return denied(fmt::format("cannot read the certificate \"{}\" (cert=): {}", files.certificate,
                              complaint()));
  if (SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1)
    return denied(fmt::format("cannot use the key \"{}\" (key=): {}", files.key, complaint()));
  return {};
}

Status Tls::expect(const std::string& host) {
  X509_VERIFY_PARAM* const wanted = SSL_get0_param(session_.get());
  const bool is_ip = is_ip_address(host);
  const int set = is_ip ? X509_VERIFY_PARAM_set1_ip_asc(wanted, host.c_str())
                        : X509_VERIFY_PARAM_set1_host(wanted, host.c_str(), host.size());
  if (set != 1) return denied(fmt::format("\"{}\" is not the name of a host", host));
  if (!is_ip) SSL_set_tlsext_host_name(session_.get(), host.c_str());
  return {};
}

void Tls::arrived(std::string_view bytes) {
  const int written = BIO_write(in_, bytes.data(), static_cast<int>(bytes.size()));
  ONCE_ASSERT(written == static_cast<int>(bytes.size()));  // it is memory
}

std::string Tls::outgoing() {
  std::string bytes(BIO_ctrl_pending(out_), '\0');
  if (!bytes.empty()) BIO_read(out_, bytes.data(), static_cast<int>(bytes.size()));
  return bytes;
}

Result<bool> Tls::handshake() {
  ERR_clear_error();
  const int done = SSL_do_handshake(session_.get());
  if (done == 1) return true;
  if (SSL_get_error(session_.get(), done) == SSL_ERROR_WANT_READ) return false;
  const long verified = SSL_get_verify_result(session_.get());
  if (verified != X509_V_OK)
    return denied(
        fmt::format("the certificate of the server is not accepted: {}; check ca= and the "
                    "name of the host",
                    X509_verify_cert_error_string(verified)));
  return denied(
      fmt::format("no TLS connection: {}; is it a port with TLS, and does the server want a "
                  "certificate (cert=, key=)?",
                  complaint()));
}

Result<bool> Tls::read(std::string& into) {
  std::array<char, 16'384> piece;
  while (true) {
    ERR_clear_error();
    const int count = SSL_read(session_.get(), piece.data(), static_cast<int>(piece.size()));
    if (count > 0) {
      into.append(piece.data(), static_cast<std::size_t>(count));
      continue;
    }
    switch (SSL_get_error(session_.get(), count)) {
      case SSL_ERROR_WANT_READ: return true;
      case SSL_ERROR_ZERO_RETURN: return false;
      default: break;
    }
    return fail(Remedy::retry, "away", fmt::format("TLS was broken off: {}", complaint()));
  }
}

Status Tls::write(std::string_view bytes) {
  if (bytes.empty()) return {};
  ERR_clear_error();
  constexpr std::size_t piece_max = 1u << 20;
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, piece_max);
    if (SSL_write(session_.get(), piece.data(), static_cast<int>(piece.size())) <= 0)
      return fail(Remedy::retry, "away", fmt::format("TLS was broken off: {}", complaint()));
    bytes.remove_prefix(piece.size());
  }
  return {};
}

}  // namespace once::mqtt
