// SPDX-License-Identifier: Apache-2.0
#include "config/wanted.h"

#include <memory>

#include "config/predicate.h"
#include "config/value_names.h"

namespace once {
namespace {

struct Wanted {
  std::vector<ValueRule> rules;
  std::optional<Predicate> when;
  bool skips_empty = false;

  Result<bool> operator()(const Delivery& delivery) const {
    if (skips_empty && delivery.body.empty()) return false;
    if (!when) return true;
    MessageValues values(rules, delivery);
    return when->holds(values);
  }
};

}  // namespace

Result<std::function<Result<bool>(const Delivery&)>> make_wanted(const Plan& plan,
                                                                 bool skips_empty) {
  auto wanted = std::make_shared<Wanted>();
  wanted->skips_empty = skips_empty;
  wanted->rules = plan.values;
  if (plan.source_when) {
    ValueNames names(plan);
    const auto resolve = [&](const ValueRef& ref) -> Result<std::size_t> {
      const std::size_t value = ONCE_TRY(names(ref));
      if (plan.values[value].from == ValueFrom::id)
        return fail(Remedy::stop, "config",
                    "source.when is asked before the id of a message is known");
      return value;
    };
    wanted->when = ONCE_TRY(Predicate::make(*plan.source_when, plan, resolve));
  }
  return [wanted](const Delivery& delivery) { return (*wanted)(delivery); };
}

}  // namespace once
