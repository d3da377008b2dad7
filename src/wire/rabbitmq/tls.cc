// SPDX-License-Identifier: Apache-2.0
#include "wire/rabbitmq/tls.h"

#include <amqp_ssl_socket.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace once::rabbitmq {
namespace {

tl::unexpected<Error> refuse(const Address& address, const std::string& what) {
  const std::string complaint = last_tls_complaint();
  return fail(Remedy::stop, "denied",
              fmt::format("{}: cannot {}{}{}", address.server(), what,
                          complaint.empty() ? "" : ": ", complaint));
}

int note_refusal(int accepted, X509_STORE_CTX* checked) {
  if (accepted == 1) return 1;
  const auto* ssl =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(checked, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* refusal = static_cast<TlsRefusal*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  refusal->why = X509_verify_cert_error_string(X509_STORE_CTX_get_error(checked));
  return 0;
}

bool expect_host(SSL_CTX* context, const std::string& host) {
  X509_VERIFY_PARAM* expected = SSL_CTX_get0_param(context);
  return X509_VERIFY_PARAM_set1_ip_asc(expected, host.c_str()) == 1 ||
         X509_VERIFY_PARAM_set1_host(expected, host.c_str(), host.size()) == 1;
}

}  // namespace

Result<amqp_socket_t*> make_tls_socket(amqp_connection_state_t connection, const Address& address,
                                       const std::string& host, TlsRefusal& refusal) {
  amqp_socket_t* socket = amqp_ssl_socket_new(connection);
  if (socket == nullptr) return refuse(address, "encrypt");
  ERR_clear_error();
  // librabbitmq compares names of hosts and knows no addresses; OpenSSL does both.
  amqp_ssl_socket_set_verify_hostname(socket, 0);
  amqp_ssl_socket_set_verify_peer(socket, 1);
  auto* context = static_cast<SSL_CTX*>(amqp_ssl_socket_get_context(socket));
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_app_data(context, &refusal);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, note_refusal);
  if (!expect_host(context, host)) return refuse(address, fmt::format("expect the host {}", host));
  if (address.ca_file.empty()) {
    if (SSL_CTX_set_default_verify_paths(context) != 1)
      return refuse(address, "find the certificates that this machine trusts");
  } else if (amqp_ssl_socket_set_cacert(socket, address.ca_file.c_str()) != AMQP_STATUS_OK) {
    return refuse(address, fmt::format("read cacertfile {}", address.ca_file));
  }
  if (!address.certificate_file.empty() &&
      amqp_ssl_socket_set_key(socket, address.certificate_file.c_str(), address.key_file.c_str()) !=
          AMQP_STATUS_OK)
    return refuse(address, fmt::format("use certfile {} with keyfile {}", address.certificate_file,
                                       address.key_file));
  return socket;
}

std::string last_tls_complaint() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* const reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "" : reason;
}

}  // namespace once::rabbitmq
