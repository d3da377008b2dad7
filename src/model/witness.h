// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
#include <once/transaction.h>

namespace once {

// The message by which its topic is recognised later. Not cryptographic: it tells a topic that was
// made anew, not a forger.
[[nodiscard]] Witness witness_of(const Delivery& delivery);

}  // namespace once
