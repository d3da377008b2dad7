// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/testing.h>

#include <map>
#include <string>
#include <vector>

#include "testing/world.h"

namespace once::testing {

// Compares what happened with what should have, id by id: loss, duplication, content, order.
class Judge {
 public:
  Judge(const Plan& plan, const std::vector<std::string>& ids);

  // The run without a fault: from now on this is what should happen. Answers what is wrong with
  // it by itself.
  std::vector<Finding> expect(const Run& plain);
  std::vector<Finding> compare(const Run& run) const;

 private:
  // What each id did, in order.
  using Books = std::map<std::string, std::vector<std::string>>;
  static Books books_of(const std::vector<Effect>& effects);

  void compare_counts(const Books& books, std::vector<Finding>& findings) const;
  void compare_order(const std::vector<Effect>& effects, std::vector<Finding>& findings) const;
  void find_strays(const Books& books, std::vector<Finding>& findings) const;
  std::map<std::string, std::vector<Effect>> by_group(const std::vector<Effect>& effects) const;

  const bool any_order_;
  std::map<std::string, std::string> group_of_;  // by id: effects of one group keep their order
  std::vector<Effect> expected_;
};

}  // namespace once::testing
