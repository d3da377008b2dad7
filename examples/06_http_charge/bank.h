// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstdint>
#include <string>
#include <vector>

// A bank on the loopback interface, in a process of its own, and how to talk to it. It is a bank
// as many are: it charges whenever it is told to, and does not ask whether it was told before. But
// it keeps the reference of each charge and can be asked for it.
//
//   POST /charges/REFERENCE    charges the order in the body: 200 and a receipt, 402 if refused
//   GET  /charges/REFERENCE    200 and the receipt, or 404
//
// It handles one request after the other, and its network is bad: some requests never arrive, and
// some answers are lost.
namespace bank {

// The bank's own book: a line "REFERENCE order N" for each charge, durable before it is answered.
std::vector<std::string> charged_orders(const std::string& book);

struct Address {
  std::uint16_t port = 0;
};

// Starts the bank. It dies with us. To be called before there are threads.
once::Result<Address> open(const std::string& book);

struct Answer {
  int status = 0;
  std::string body;
};

// One request. The remedy of an error says what is known: `retry`, nothing happened; `recheck`, it
// may have.
once::Result<Answer> call(const Address& address, const std::string& method,
                          const std::string& path, const std::string& body = {});

}  // namespace bank
