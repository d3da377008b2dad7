// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <string>

namespace once::audit {

// The topic to which both URLs lead, however they are written (base/topic_address.h); brokers of
// other names are asked whether they are of one cluster. Empty: none.
[[nodiscard]] Result<std::string> topic_of_both(const std::string& one, const std::string& other);

}  // namespace once::audit
