// SPDX-License-Identifier: Apache-2.0
#include "model/message_row.h"

#include <fmt/format.h>
#include <once/identity.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "model/message_view.h"

namespace once {
namespace {

// What the columns of key and body, and the pairs of headers, cannot say.
std::string exceptions_of(const Delivery& delivery) {
  std::string found;
  if (delivery.has_key() && delivery.key.empty()) found += 'k';
  if (!delivery.has_body()) found += 'b';
  for (std::size_t i = 0; i < delivery.headers.size(); ++i)
    if (!delivery.headers[i].has_value()) found += fmt::format(",{}", i);
  return found;
}

tl::unexpected<Error> unreadable() {
  return fail(Remedy::stop, "corrupt", "the headers of a stored message cannot be read");
}

Status apply_exceptions(std::string_view text, Message& message) {
  if (text.starts_with('k')) {
    message.key = std::string();
    text.remove_prefix(1);
  }
  if (text.starts_with('b')) {
    message.body.reset();
    text.remove_prefix(1);
  }
  while (!text.empty()) {
    std::size_t index = 0;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data() + 1, end, index);
    if (text[0] != ',' || read.ec != std::errc() || index >= message.headers.size())
      return unreadable();
    message.headers[index].value.reset();
    text = {read.ptr, static_cast<std::size_t>(end - read.ptr)};
  }
  return {};
}

}  // namespace

std::string encode_headers(const Delivery& delivery) {
  const std::string exceptions = exceptions_of(delivery);
  if (delivery.headers.empty() && exceptions.empty()) return {};
  std::vector<std::string_view> parts;
  parts.reserve(2 * delivery.headers.size() + 1);
  if (!exceptions.empty()) parts.push_back(exceptions);
  for (const HeaderView& header : delivery.headers) {
    parts.push_back(header.name);
    parts.push_back(header.value);
  }
  return encode_tuple(parts);
}

std::string encode_headers(const Message& message) {
  return encode_headers(DeliveryView(message).delivery());
}

Status decode_headers(std::string_view encoded, Message& message) {
  auto parts = decode_tuple(encoded);
  if (!parts) return unreadable();
  const std::size_t first = parts->size() % 2;
  message.headers.clear();
  for (std::size_t i = first; i < parts->size(); i += 2)
    message.headers.push_back({std::move((*parts)[i]), std::move((*parts)[i + 1])});
  if (message.key && message.key->empty()) message.key.reset();
  return first == 0 ? Status{} : apply_exceptions(parts->front(), message);
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
