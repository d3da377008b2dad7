// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace once {

// The same path from every directory, without links; it need not be there.
[[nodiscard]] std::string absolute_path(std::string_view path);
// The URL of a path of this machine, the same from every directory.
[[nodiscard]] std::string local_url(std::string_view scheme, std::string_view path);
// The same URL from every directory. What is no URL of a path stays as it is.
[[nodiscard]] std::string absolute_url(std::string_view text);

}  // namespace once
