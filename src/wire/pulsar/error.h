// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstdint>
#include <string_view>

namespace once::pulsar {

// Those of Pulsar's ServerError that we look at ourselves.
enum class ServerError : std::uint32_t {
  metadata = 1,
  persistence = 2,
  authentication = 3,
  authorization = 4,
  consumer_busy = 5,
  not_ready = 6,
  quota = 7,
  quota_exception = 8,
  checksum = 9,
  version = 10,
  topic_not_found = 11,
  subscription_not_found = 12,
  consumer_not_found = 13,
  too_many_requests = 14,
  terminated = 15,
  producer_busy = 16,
  invalid_topic = 17,
  incompatible_schema = 18,
  not_allowed = 22,
  producer_fenced = 25,
};

// What an error of a broker means for us: "WHERE: cannot WHAT: ...; advice".
Error error_from_pulsar(std::uint32_t code, std::string_view where, std::string_view what,
                        std::string_view native);

}  // namespace once::pulsar
