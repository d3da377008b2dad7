// SPDX-License-Identifier: Apache-2.0
#include <once/identity.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "model/sha256.h"

namespace once {
namespace {

constexpr std::uint8_t projection_version = 1;

bool starts_with_ignoring_case(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), text.begin(), [](char expected, char actual) {
           return expected == std::tolower(static_cast<unsigned char>(actual));
         });
}

// Headers that change with every sending although the message says the same.
bool is_volatile(std::string_view name) {
  constexpr std::array<std::string_view, 4> names{"traceparent", "tracestate", "baggage", "b3"};
  constexpr std::array<std::string_view, 2> prefixes{"once-", "x-b3-"};
  const auto is = [&](std::string_view candidate) {
    return name.size() == candidate.size() && starts_with_ignoring_case(name, candidate);
  };
  const auto begins = [&](std::string_view prefix) {
    return starts_with_ignoring_case(name, prefix);
  };
  return std::any_of(names.begin(), names.end(), is) ||
         std::any_of(prefixes.begin(), prefixes.end(), begins);
}

void hash_headers(Sha256& hash, std::span<const HeaderView> headers) {
  std::vector<const HeaderView*> lasting;
  lasting.reserve(headers.size());
  for (const HeaderView& header : headers)
    if (!is_volatile(header.name)) lasting.push_back(&header);
  // Brokers keep headers in tables: their order is not part of what a message says.
  std::sort(lasting.begin(), lasting.end(), [](const HeaderView* a, const HeaderView* b) {
    return a->name != b->name ? a->name < b->name : a->value < b->value;
  });
  for (const HeaderView* header : lasting) {
    hash.field(header->name);
    hash.field(header->value);
  }
}

}  // namespace

Fingerprint fingerprint_of(const Delivery& delivery) {
  Sha256 hash("once fingerprint 1");
  hash.field(delivery.key);
  hash.field(delivery.body);
  if (!delivery.headers.empty()) hash_headers(hash, delivery.headers);
  return {projection_version, hash.digest128()};
}

}  // namespace once
