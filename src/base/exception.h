// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <exception>

namespace once {

// Library code does not throw, but the standard library does when there is no memory or no thread
// left. What that means for us: nothing of it happened, and with more of either it can be tried
// again. Any other exception is a defect, and its outcome unknown.
Error error_from_exception(const std::exception& exception);

}  // namespace once
