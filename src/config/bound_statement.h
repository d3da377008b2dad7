// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/action.h"

namespace once {

// A statement whose parameters are values of the message.
class BoundStatement {
 public:
  // `extra`, if it is not empty, is the name of one more parameter that the caller gives.
  [[nodiscard]] static Result<BoundStatement> make(const std::string& statement,
                                                   const Resolve& resolve, SqlDialect dialect,
                                                   std::string_view extra = {});

  [[nodiscard]] Status execute(MessageValues& values, SqlTransaction& transaction,
                               const Expect& expect, std::string_view extra = {}) const;
  // The same for a statement that answers rows.
  [[nodiscard]] Status fetch(MessageValues& values, SqlTransaction& transaction,
                             const Expect& expect, const SqlTransaction::Then& then) const;
  Probe probe() const;

 private:
  BoundStatement() = default;
  Result<std::vector<Value>> bind(MessageValues& values, std::string_view extra) const;

  std::string text_;
  std::vector<std::size_t> parameters_;  // places of values, or `extra_parameter`
};

}  // namespace once
