// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace once::pulsar {

// How a producer has made a payload smaller (PulsarApi's CompressionType).
enum class Compression : std::uint32_t { none = 0, lz4 = 1, zlib = 2, zstd = 3, snappy = 4 };

// The payload as it was, which has exactly `size` bytes. Whoever asks has checked that this is not
// too much.
[[nodiscard]] Result<std::string> decompress(Compression compression, std::string_view payload,
                                             std::size_t size);

}  // namespace once::pulsar
