// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

namespace once::operate {

// The members of an object stay in the order in which they were put.
using Json = nlohmann::ordered_json;

}  // namespace once::operate
