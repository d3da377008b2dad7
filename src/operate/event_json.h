// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/observe.h>

#include <string>

#include "operate/json.h"

namespace once::operate {

// What happened, without its time: `level`, `kind`, `text`, and what applies of `subject`, `tag`,
// `count` and `duration_ms`.
Json json_of(const Event& event);

// The same on one line for people.
std::string text_of(const Event& event);

}  // namespace once::operate
