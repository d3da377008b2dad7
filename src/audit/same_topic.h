// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <string>

namespace once::audit {

// Whether two URLs lead to one topic, however they are written: as a relative or absolute path,
// through a link, by another broker of the same cluster.
[[nodiscard]] Result<bool> is_same_topic(const std::string& one, const std::string& other);

}  // namespace once::audit
