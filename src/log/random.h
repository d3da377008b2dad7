// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/rand.h>

#include <cstdint>

#include "base/assert.h"

namespace once::log {

// From the machine's source of secrets.
inline std::uint64_t machine_random() {
  std::uint64_t number = 0;
  ONCE_ASSERT(RAND_bytes(reinterpret_cast<unsigned char*>(&number), sizeof number) == 1);
  return number;
}

}  // namespace once::log
