// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/source.h>

#include <memory>
#include <string_view>

namespace once {

// The source of a URL for somebody who only looks: it reads all partitions, joins no group and
// acknowledges nothing, so that a pipeline on the same URL is not disturbed.
[[nodiscard]] Result<std::unique_ptr<Source>> open_source_to_look(std::string_view url);

}  // namespace once
