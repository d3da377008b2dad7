// SPDX-License-Identifier: Apache-2.0
#include "wire/pulsar/compression.h"

#include <fmt/format.h>
#include <lz4.h>
#include <snappy.h>
#include <zlib.h>
#include <zstd.h>

namespace once::pulsar {
namespace {

// Each answers whether `into` is full now, and nothing is left.
bool from_lz4(std::string_view payload, std::string& into) {
  return LZ4_decompress_safe(payload.data(), into.data(), static_cast<int>(payload.size()),
                             static_cast<int>(into.size())) == static_cast<int>(into.size());
}

bool from_zlib(std::string_view payload, std::string& into) {
  uLongf size = into.size();
  return ::uncompress(reinterpret_cast<Bytef*>(into.data()), &size,
                      reinterpret_cast<const Bytef*>(payload.data()), payload.size()) == Z_OK &&
         size == into.size();
}

bool from_zstd(std::string_view payload, std::string& into) {
  const std::size_t size =
      ZSTD_decompress(into.data(), into.size(), payload.data(), payload.size());
  return ZSTD_isError(size) == 0 && size == into.size();
}

bool from_snappy(std::string_view payload, std::string& into) {
  std::size_t size = 0;
  return snappy::GetUncompressedLength(payload.data(), payload.size(), &size) &&
         size == into.size() && snappy::RawUncompress(payload.data(), payload.size(), into.data());
}

}  // namespace

Result<std::string> decompress(Compression compression, std::string_view payload,
                               std::size_t size) {
  if (compression == Compression::none) return std::string(payload);
  std::string text(size, '\0');
  bool done = false;
  switch (compression) {
    case Compression::lz4: done = from_lz4(payload, text); break;
    case Compression::zlib: done = from_zlib(payload, text); break;
    case Compression::zstd: done = from_zstd(payload, text); break;
    case Compression::snappy: done = from_snappy(payload, text); break;
    default:
      return fail(Remedy::stop, "unsupported",
                  fmt::format("it is compressed by a method that is not known here ({}); known: "
                              "LZ4, ZLIB, ZSTD, SNAPPY",
                              static_cast<std::uint32_t>(compression)));
  }
  if (!done) return fail(Remedy::stop, "corrupt", "its compressed payload is damaged");
  return text;
}

}  // namespace once::pulsar
