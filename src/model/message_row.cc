// SPDX-License-Identifier: Apache-2.0
#include "model/message_row.h"

#include <once/identity.h>

#include <algorithm>

namespace once {
namespace {

template <class T>
std::string encode(std::span<const T> headers) {
  if (headers.empty()) return {};
  std::vector<std::string_view> parts;
  parts.reserve(2 * headers.size());
  for (const T& header : headers) {
    parts.push_back(header.name);
    parts.push_back(header.value);
  }
  return encode_tuple(parts);
}

}  // namespace

std::string encode_headers(std::span<const HeaderView> headers) { return encode(headers); }
std::string encode_headers(std::span<const Header> headers) { return encode(headers); }

Result<std::vector<Header>> decode_headers(std::string_view encoded) {
  auto parts = decode_tuple(encoded);
  if (!parts || parts->size() % 2 != 0)
    return fail(Remedy::stop, "corrupt", "the headers of a stored message cannot be read");
  std::vector<Header> headers;
  for (std::size_t i = 0; i < parts->size(); i += 2)
    headers.push_back({std::move((*parts)[i]), std::move((*parts)[i + 1])});
  return headers;
}

FingerprintBytes bytes_of(const Fingerprint& fingerprint) {
  FingerprintBytes bytes;
  bytes[0] = static_cast<char>(fingerprint.version);
  std::copy(fingerprint.digest.begin(), fingerprint.digest.end(), bytes.begin() + 1);
  return bytes;
}

Fingerprint fingerprint_from(std::string_view bytes) {
  Fingerprint fingerprint;
  if (bytes.size() != FingerprintBytes{}.size()) return fingerprint;
  fingerprint.version = static_cast<std::uint8_t>(bytes[0]);
  std::copy(bytes.begin() + 1, bytes.end(), fingerprint.digest.begin());
  return fingerprint;
}

}  // namespace once
