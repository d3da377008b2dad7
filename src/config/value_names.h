// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "config/plan.h"

namespace once {

// Turns names of values into their places in the plan, and remembers which were asked for. The plan
// outlives it.
class ValueNames {
 public:
  explicit ValueNames(const Plan& plan) : plan_(plan), used_(plan.values.size()) {}

  // Whether what is resolved from now on is used once for each element of an array.
  void inside_each(bool inside) { inside_each_ = inside; }

  // Which step uses what is resolved from now on: it may use what earlier ones have read.
  void before_step(std::size_t step) { step_ = step; }

  // A name that no value has, and a value of an element outside of `each`, is an
  // error with the tag "config" that does not yet say where.
  [[nodiscard]] Result<std::size_t> operator()(const ValueRef& ref);

  // A value that was declared and never asked for is an error that says where in the file.
  [[nodiscard]] Status check_all_used() const;

 private:
  const Plan& plan_;
  std::vector<bool> used_;
  bool inside_each_ = false;
  std::size_t step_ = 0;
};

}  // namespace once
