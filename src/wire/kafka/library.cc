// SPDX-License-Identifier: Apache-2.0
#include "wire/kafka/library.h"

#include <fmt/format.h>
#include <librdkafka/rdkafka.h>

namespace once::kafka {
namespace {

// Versions of librdkafka below this have known bugs that deliver twice or get stuck. Positions in
// the store guard against the first; a person should know of both.
constexpr int sound_version = 0x02050000;

}  // namespace

std::vector<std::string> library_advice() {
  if (rd_kafka_version() >= sound_version) return {};
  return {fmt::format(
      "librdkafka {} may deliver messages twice (fixed in 2.1.1, 2.4.0) or get stuck after a "
      "time-out (2.3.0). Positions in the store keep the promise all the same; 2.5.0 or later is "
      "better",
      rd_kafka_version_str())};
}

}  // namespace once::kafka
