// SPDX-License-Identifier: Apache-2.0
#include "assemble/plans.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "operate/failure.h"

namespace once::assemble {
namespace {

std::optional<std::string> content_of(const std::string& path) {
  auto content = read_file(system_files(), path, secret_bytes_max);
  if (!content) return std::nullopt;
  if (content->ends_with('\n')) content->pop_back();
  if (content->ends_with('\r')) content->pop_back();
  return std::move(*content);
}

std::optional<std::string> variable(const std::string& name) {
  if (name.starts_with("file:")) return content_of(name.substr(5));
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

}  // namespace

Environment system_environment() { return variable; }

Result<std::vector<Plan>> plans_in(const std::string& path) {
  return parse_plans(ONCE_TRY(read_file(system_files(), path, plan_bytes_max)), path, variable);
}

Result<std::vector<Plan>> chosen(std::vector<Plan> plans, const std::string& name) {
  if (name.empty()) return plans;
  std::vector<std::string_view> known;
  for (const Plan& plan : plans) {
    if (plan.name == name) return std::vector<Plan>{plan};
    known.push_back(plan.name);
  }
  if (plans.front().name.empty())
    return operate::fail_usage(fmt::format(
        "--pipeline {}: {} has no [[pipeline]]: it is one pipeline", name, plans.front().file));
  return operate::fail_usage(fmt::format("{} has no pipeline \"{}\"; it has {}", plans.front().file,
                                         name, fmt::join(known, ", ")));
}

}  // namespace once::assemble
