// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace once {

// What a person should know about the libraries behind a URL, whatever the topic is: worth a look
// before something is set up, not at every start.
[[nodiscard]] std::vector<std::string> advice_about(std::string_view url);

}  // namespace once
