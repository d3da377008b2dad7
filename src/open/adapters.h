// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <span>
#include <string_view>

#include "model/adapter.h"

namespace once {

// All adapters of this build.
[[nodiscard]] std::span<const Adapter* const> adapters();

// The adapter with this scheme, or nullptr.
[[nodiscard]] const Adapter* adapter_of_scheme(std::string_view scheme);

// The adapter of a URL, which must be able to do what is asked: `can` looks at a member of it.
// Otherwise an error ("url") that names the nearest scheme and the known ones; `purpose`
// ("source", ...) is for the error.
using Ability = bool (*)(const Adapter&);
[[nodiscard]] Result<const Adapter*> adapter_of(std::string_view url, std::string_view purpose,
                                                Ability can);

}  // namespace once
