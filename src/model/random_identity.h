// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace once {

// 128 random bits as 32 hexadecimal digits: the identity of a store or a topic, which two that were
// made separately never share.
std::string random_identity();

}  // namespace once
