// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace once {

// CRC-32C (Castagnoli), as in Kafka's record batches. `crc` continues an earlier result.
std::uint32_t crc32c(std::string_view bytes, std::uint32_t crc = 0);

// The same without the processor's instruction; for tests and machines that lack it.
std::uint32_t crc32c_portable(std::string_view bytes, std::uint32_t crc = 0);

}  // namespace once
