// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace once::testing {

// A port of the loopback address on which nobody listens.
std::uint16_t free_port();

}  // namespace once::testing
