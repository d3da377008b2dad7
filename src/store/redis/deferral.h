// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/records.h>

#include <cstdint>
#include <string>
#include <string_view>

// A deferred message as Redis keeps it; script.cc reads and writes the same. Attempts, when it was
// put off and when it is due, its order (a digest of its key in hex, or `-`) and the length of its
// reason are words with a blank behind each; then come the reason and, as a tuple, what never
// changes: partition, offset, id, key, body, headers, timestamp.

namespace once {

std::string deferral_name(std::int64_t number);  // with as many digits as any other
std::string deferral_order(std::string_view token);
std::string deferral_rest(const Delivery& delivery);
[[nodiscard]] Result<DeferredRecord> deferred_record(std::int64_t number, std::string_view row);

}  // namespace once
