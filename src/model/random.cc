// SPDX-License-Identifier: Apache-2.0
#include "model/random.h"

#include <openssl/rand.h>

#include <array>
#include <string_view>

#include "base/assert.h"
#include "base/hex.h"

namespace once {

Status random_bytes(std::span<std::uint8_t> bytes) {
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1)
    return fail(Remedy::retry, "exhausted", "the system gives no random bytes");
  return {};
}

std::uint64_t random_number() {
  std::array<std::uint8_t, 8> bytes{};
  ONCE_ASSERT(random_bytes(bytes).has_value());
  std::uint64_t number = 0;
  for (const std::uint8_t byte : bytes) number = number << 8 | byte;
  return number;
}

std::string random_identity() {
  std::array<std::uint8_t, 16> bytes{};
  ONCE_ASSERT(random_bytes(bytes).has_value());
  std::string text;
  append_hex(text, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return text;
}

}  // namespace once
