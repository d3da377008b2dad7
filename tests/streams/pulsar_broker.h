// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/source.h>

#include <cstdint>
#include <string>

#include "testing/live_server.h"

namespace once::testing {

// The broker that all tests of a program share.
LiveServer& pulsar_broker();

// pulsar://HOST:PORT/PATH?web=PORT, to which more parameters can be added by &.
std::string pulsar_url(const LiveServer& server, const std::string& path);

// Makes a topic and answers its URL.
std::string pulsar_topic(std::uint32_t partitions = 1);
std::string pulsar_topic_at(const LiveServer& server, const std::string& name,
                            std::uint32_t partitions = 1);
std::string pulsar_topic_at_url(const std::string& url, std::uint32_t partitions);

// Asks the admin API; what it refuses fails the test.
void pulsar_admin(const LiveServer& server, const std::string& method, const std::string& path,
                  const std::string& body);

// The connections of a source are lost, as the network sees it.
void cut_pulsar_source(Source& source);

}  // namespace once::testing
