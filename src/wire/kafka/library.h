// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace once::kafka {

// What is known of the version of librdkafka that is used.
[[nodiscard]] std::vector<std::string> library_advice();

}  // namespace once::kafka
