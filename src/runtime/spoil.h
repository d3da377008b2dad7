// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstddef>
#include <string>
#include <utility>

namespace once {

// An error that belongs to one message of the batch, and what to settle for it.
inline tl::unexpected<Error> spoil(std::size_t index, Outcome instead) {
  std::string text = instead.detail;
  return fail(Error{Remedy::retry, "message", std::move(text), Culprit{index, std::move(instead)}});
}

}  // namespace once
