// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "wire/pulsar/address.h"
#include "wire/pulsar/connection.h"

namespace once::pulsar {

// The connections of one user of a cluster: which broker has a topic is asked (LOOKUP), and each
// broker has one connection. Used by one thread at a time.
class Client {
 public:
  explicit Client(Address address) : address_(std::move(address)) {}

  const Address& address() const { return address_; }
  // How many partitions the topic has; 0: it is not partitioned. A topic that is not there is an
  // error ("missing"), and is not made.
  Result<std::uint32_t> partition_count();
  // The topics behind it: itself, or its partitions in order.
  Result<std::vector<std::string>> topics();
  // All topics of its namespace.
  Result<std::vector<std::string>> topics_of_namespace();
  // The broker that has the topic now.
  Result<std::shared_ptr<Connection>> connection_for(const std::string& topic);

  // Waits until one of the connections has something to say, and lets it say it. Connections that
  // were lost are left out afterwards; whoever uses one finds out by itself.
  void serve(net::Deadline deadline);
  void cut_connections();

 private:
  using Key = std::pair<Endpoint, std::string>;  // a server, and the broker behind it

  Result<std::shared_ptr<Connection>> service(const std::string& behind_proxy = {});
  Result<std::shared_ptr<Connection>> connection(const Endpoint& server,
                                                 const std::string& behind_proxy);

  const Address address_;
  std::map<Key, std::shared_ptr<Connection>> connections_;
};

}  // namespace once::pulsar
