// SPDX-License-Identifier: Apache-2.0
#include "config/value_names.h"

#include <fmt/format.h>

#include "base/url.h"
#include "config/plan_parts.h"

namespace once {

Result<std::size_t> ValueNames::operator()(const ValueRef& ref) {
  std::vector<std::string_view> known;
  for (std::size_t i = 0; i < plan_.values.size(); ++i) {
    if (plan_.values[i].name == ref.value) {
      used_[i] = true;
      if (!inside_each_ && is_of_element(plan_.values[i]))
        return fail(Remedy::stop, "config",
                    fmt::format("the value \"{}\" is one of an element: say of which array, for "
                                "example each = \"/lines\"",
                                ref.value));
      if (plan_.values[i].from == ValueFrom::result && plan_.values[i].step >= step_)
        return fail(Remedy::stop, "config",
                    fmt::format("the value \"{}\" is not read yet: only later steps and messages "
                                "to emit can use it",
                                ref.value));
      return i;
    }
    known.push_back(plan_.values[i].name);
  }
  const std::string_view guess = nearest(ref.value, known);
  return fail(Remedy::stop, "config",
              fmt::format("there is no value \"{}\" in [values]{}", ref.value,
                          guess.empty() ? "" : fmt::format(", did you mean \"{}\"?", guess)));
}

Status ValueNames::check_all_used() const {
  for (std::size_t i = 0; i < used_.size(); ++i) {
    const ValueRule& rule = plan_.values[i];
    // What is there without having been declared need not be used.
    if (used_[i] || rule.place == Place{}) continue;
    return fail(plan_.error_at(rule.place, "config",
                               fmt::format("the value \"{}\" is used by nobody", rule.name)));
  }
  return {};
}

}  // namespace once
