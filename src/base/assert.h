// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace once {
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);
}  // namespace once

// Stays on in release builds: a broken invariant must not be written to disk.
#define ONCE_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::once::assertion_failed(#condition, __FILE__, __LINE__))
