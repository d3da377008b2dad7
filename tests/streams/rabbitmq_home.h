// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/once.h>

#include <string>
#include <vector>

#include "testing/live_server.h"
#include "wire/rabbitmq/adapter.h"

namespace once::testing {

// The server of a test program, and the adapter that talks to it.
inline LiveServer& rabbitmq_server() {
  // A broker may allow less than we do.
  static LiveServer made("rabbitmq", {.settings = {"max_message_size=2000000"}});
  return made;
}

inline const Adapter& rabbitmq_adapter() { return rabbitmq::adapter(); }

// A new queue of this type; answers its URL at another port if one is given, that of a proxy.
inline std::string new_rabbitmq_queue(const std::string& type, const std::string& more = {}) {
  static int count = 0;
  const std::string url = rabbitmq_server().url() + "?queue=" + type + std::to_string(++count);
  const Status created = rabbitmq_adapter().topics->create(url + "&type=" + type + more, {});
  if (!created) throw std::runtime_error(created.error().text);
  return url;
}

inline std::string with_port(const std::string& url, std::uint16_t port) {
  const auto question = url.find('?');
  return rabbitmq_server().url_at(port) + url.substr(question);
}

}  // namespace once::testing
