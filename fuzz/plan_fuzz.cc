// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "config/message_values.h"
#include "config/recipe.h"

namespace {

using namespace once;

void try_plan(const Plan& plan, std::string_view text) {
  Secrets secrets;
  plan.teach(secrets);
  ONCE_ASSERT(secrets.redacted("value of DB").find("value of DB") == std::string::npos ||
              !plan.variables.contains("DB"));
  for (const auto dialect : {SqlDialect::sqlite, SqlDialect::postgresql, SqlDialect::mysql}) {
    const auto recipe = Recipe::make(plan, {.sql = dialect, .redis_commands = true});
    if (!recipe) ONCE_ASSERT(recipe.error().text.starts_with("f:"));
  }
  for (const std::string_view body :
       {text, std::string_view(R"({"a/b":["2026-01-01T00:00:00Z"]})")}) {
    Delivery delivery;
    delivery.body = body;
    delivery.key = text.substr(text.size() / 2);
    if (plan.options.wanted)
      if (const auto wanted = plan.options.wanted(delivery); !wanted)
        ONCE_ASSERT(wanted.error().remedy == Remedy::park);
    MessageValues values(plan.values, delivery);
    for (const Step& step : plan.steps) {
      if (!step.each) continue;
      const auto count = values.open_array(*step.each);
      if (!count) ONCE_ASSERT(count.error().remedy == Remedy::park);
      if (!count || *count == 0) continue;
      if (const Status selected = values.select_element(*count - 1); !selected)
        ONCE_ASSERT(selected.error().remedy == Remedy::park);
    }
    for (std::size_t i = 0; i < plan.values.size(); ++i)
      if (const auto cell = values.cell(i); !cell) ONCE_ASSERT(cell.error().remedy == Remedy::park);
  }
}

}  // namespace

// Whatever a file says, it is a plan or an error that says where; the same text says the same
// again. Whatever a message says, each of its values is there or is a reason to park it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto environment = [](const std::string& name) -> std::optional<std::string> {
    if (name == "NONE") return std::nullopt;
    return "value of " + name;
  };
  const auto plans = parse_plans(text, "f", environment);
  const auto again = parse_plans(text, "f", environment);
  ONCE_ASSERT(plans.has_value() == again.has_value());
  if (!plans) {
    ONCE_ASSERT(plans.error() == again.error());
    ONCE_ASSERT(plans.error().tag == "config" && plans.error().remedy == Remedy::stop);
    return 0;
  }
  for (const Plan& plan : *plans) try_plan(plan, text);
  return 0;
}
