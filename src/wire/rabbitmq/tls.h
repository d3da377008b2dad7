// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <amqp.h>
#include <once/result.h>

#include <string>

#include "wire/rabbitmq/address.h"

namespace once::rabbitmq {

// Why the certificate of a broker was not accepted; empty: it was, or there was none.
struct TlsRefusal {
  std::string why = {};
};

// An encrypted socket of a connection, which owns it. The certificate is checked against the
// host, by name or by address, while hands are shaken; what is wrong with it is noted in `refusal`,
// which outlives the socket.
Result<amqp_socket_t*> make_tls_socket(amqp_connection_state_t connection, const Address& address,
                                       const std::string& host, TlsRefusal& refusal);

// What OpenSSL complained about last in this thread, and forgets; empty: nothing.
std::string last_tls_complaint();

}  // namespace once::rabbitmq
