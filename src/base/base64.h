// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace once {

// RFC 4648, with padding.
[[nodiscard]] std::string encode_base64(std::string_view bytes);
// Unset if it is none.
[[nodiscard]] std::optional<std::string> decode_base64(std::string_view text);

}  // namespace once
