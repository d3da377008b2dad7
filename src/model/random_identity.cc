// SPDX-License-Identifier: Apache-2.0
#include "model/random_identity.h"

#include <openssl/rand.h>

#include <array>
#include <string_view>

#include "base/assert.h"
#include "base/hex.h"

namespace once {

std::string random_identity() {
  std::array<unsigned char, 16> bytes{};
  ONCE_ASSERT(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1);
  std::string text;
  append_hex(text, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return text;
}

}  // namespace once
