// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "config/action.h"

namespace once {

// A condition whose names and operands are resolved. Never changes, so that all lanes share it.
class Predicate {
 public:
  // What does not fit (a name that no value has, an operand that is not of the value's type, an
  // order of values that have none) is an error with the tag "config" that says where in the file.
  [[nodiscard]] static Result<Predicate> make(const WhenRule& condition, const Plan& plan,
                                              const Resolve& resolve);

  // A value that is absent or null is `missing` and fits no other test. One that is there and not
  // of its type is an error with the remedy `park`.
  [[nodiscard]] Result<bool> holds(MessageValues& values) const;

  // Whether the answer may differ between the elements of an array.
  bool is_about_elements() const { return is_about_elements_; }

 private:
  Predicate() = default;
  Status take_operands(const WhenRule& condition, const Plan& plan);
  Result<bool> all_or_any(MessageValues& values) const;
  bool fits(const Cell& cell) const;

  WhenRule::Kind kind_ = WhenRule::Kind::all;
  std::vector<Predicate> parts_;
  bool is_about_elements_ = false;
  std::size_t value_ = 0;
  ValueType type_ = ValueType::text;
  std::vector<Cell> operands_;
};

}  // namespace once
