// SPDX-License-Identifier: Apache-2.0
#include "config/predicate.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/cell.h"
#include "config/plan_parts.h"

namespace once {
namespace {

using Kind = WhenRule::Kind;

// Why a value of this type cannot be tested so; empty if it can.
std::string_view objection(Kind kind, ValueType type) {
  if (kind == Kind::prefix && type != ValueType::text) return "only text has a prefix";
  const bool is_ordered =
      type != ValueType::boolean && type != ValueType::bytes && type != ValueType::json;
  const bool asks_order =
      kind == Kind::below || kind == Kind::at_most || kind == Kind::above || kind == Kind::at_least;
  if (asks_order && !is_ordered) return "values of this type have no order";
  return {};
}

bool is_null(const Cell& cell) { return std::holds_alternative<std::nullptr_t>(cell); }

}  // namespace

Result<Predicate> Predicate::make(const WhenRule& condition, const Plan& plan,
                                  const Resolve& resolve) {
  Predicate made;
  made.kind_ = condition.kind;
  for (const WhenRule& part : condition.parts) {
    made.parts_.push_back(ONCE_TRY(make(part, plan, resolve)));
    made.is_about_elements_ |= made.parts_.back().is_about_elements_;
  }
  if (!condition.parts.empty()) return made;
  const auto value = resolve(condition.ref);
  if (!value)
    return fail(plan.error_at(condition.ref.place, value.error().tag, value.error().text));
  made.value_ = *value;
  made.type_ = plan.values[*value].type;
  made.is_about_elements_ = is_of_element(plan.values[*value]);
  ONCE_TRY(made.take_operands(condition, plan));
  return made;
}

Status Predicate::take_operands(const WhenRule& condition, const Plan& plan) {
  if (const std::string_view why = objection(kind_, type_); !why.empty())
    return fail(plan.error_at(condition.place, "config",
                              fmt::format("{} ({}); declare another type", why, name_of(type_))));
  for (const std::string& operand : condition.operands) {
    auto cell = cell_from_text(operand, type_);
    if (!cell) return fail(plan.error_at(condition.place, "config", cell.error().text));
    operands_.push_back(std::move(*cell));
  }
  return {};
}

Result<bool> Predicate::holds(MessageValues& values) const {
  if (kind_ == Kind::all || kind_ == Kind::any) return all_or_any(values);
  if (kind_ == Kind::negation) return !ONCE_TRY(parts_.front().holds(values));
  const Cell& cell = *ONCE_TRY(values.cell_or_null(value_));
  if (kind_ == Kind::missing) return is_null(cell);
  return !is_null(cell) && fits(cell);
}

Result<bool> Predicate::all_or_any(MessageValues& values) const {
  const bool decisive = kind_ == Kind::any;  // the answer that ends it
  for (const Predicate& part : parts_)
    if (ONCE_TRY(part.holds(values)) == decisive) return decisive;
  return !decisive;
}

bool Predicate::fits(const Cell& cell) const {
  const auto any_operand = [&](const auto& test) {
    return std::any_of(operands_.begin(), operands_.end(), test);
  };
  switch (kind_) {
    case Kind::is:
      return any_operand([&](const Cell& operand) { return compare(cell, operand, type_) == 0; });
    case Kind::prefix:
      return any_operand([&](const Cell& operand) {
        return std::get<std::string>(cell).starts_with(std::get<std::string>(operand));
      });
    case Kind::below: return compare(cell, operands_.front(), type_) < 0;
    case Kind::at_most: return compare(cell, operands_.front(), type_) <= 0;
    case Kind::above: return compare(cell, operands_.front(), type_) > 0;
    case Kind::at_least: return compare(cell, operands_.front(), type_) >= 0;
    case Kind::exists:
    case Kind::missing:
    case Kind::all:
    case Kind::any:
    case Kind::negation: break;
  }
  return true;
}

}  // namespace once
