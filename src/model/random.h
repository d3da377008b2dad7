// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstdint>
#include <span>
#include <string>

namespace once {

// Random bits from the machine's source of secrets. All that is random in Once and does not come
// from a caller comes from here.
[[nodiscard]] Status random_bytes(std::span<std::uint8_t> bytes);

// The same for callers without a way to answer an error: a machine without random bits is a fault.
std::uint64_t random_number();

// 128 random bits as 32 hexadecimal digits: the identity of a store or a topic, which two that were
// made separately never share.
std::string random_identity();

}  // namespace once
