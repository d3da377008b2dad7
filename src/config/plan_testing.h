// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "config/plan.h"
#include "config/recipe.h"

// What the tests of this folder share.
namespace once::testing {

inline Environment environment(std::map<std::string, std::string> variables = {}) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

// A file with one pipeline.
inline Result<Plan> parsed(std::string_view text,
                           std::map<std::string, std::string> variables = {}) {
  return parse_plans(text, "p.toml", environment(std::move(variables)))
      .map([](std::vector<Plan> plans) { return std::move(plans.front()); });
}

// The error of a file, or nothing.
inline std::string complaint_about(std::string_view text) {
  const auto plan = parsed(text);
  if (!plan) return plan.error().tag == "config" ? plan.error().text : "not a config error";
  const auto recipe = Recipe::make(*plan, {.sql = SqlDialect::sqlite, .redis_commands = true});
  return recipe ? "" : recipe.error().text;
}

// Refers to the body.
inline Delivery delivery_of(std::string_view body) {
  Delivery delivery;
  delivery.partition = "0";
  delivery.body = body;
  return delivery;
}

}  // namespace once::testing
