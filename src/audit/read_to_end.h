// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/source.h>

#include <functional>
#include <string>

namespace once::audit {

// The URL with end=stop, unless it says something about its end.
[[nodiscard]] Result<std::string> url_that_ends(const std::string& url);

// All messages that a topic has now, from the first one on. Changes nothing there: what was read is
// not acknowledged.
[[nodiscard]] Status read_to_end(const std::string& url,
                                 const std::function<Status(const Delivery&)>& take);

}  // namespace once::audit
