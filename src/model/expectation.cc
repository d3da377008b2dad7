// SPDX-License-Identifier: Apache-2.0
#include "model/expectation.h"

#include <fmt/format.h>

namespace once {

Error unmet_expectation(std::string_view where, std::string_view statement, std::int64_t rows,
                        const Expect& expect, std::optional<std::size_t> message) {
  Error error{
      Remedy::park, "expect",
      fmt::format("{}: \"{}\" touched {} rows, not {}", where, statement, rows, expect.rows),
      std::nullopt};
  if (message) error.culprit = Culprit{*message, expect.otherwise};
  return error;
}

Error blamed_on(std::optional<std::size_t> message, Error error) {
  if (error.remedy == Remedy::park && message && !error.culprit)
    error.culprit = Culprit{*message, parked(error.text)};
  if (error.cause == Cause::statement) error.message = message;
  if (error.cause != Cause::other) error.cause = Cause::handler;
  return error;
}

}  // namespace once
