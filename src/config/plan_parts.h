// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "config/plan.h"
#include "config/toml_reader.h"

namespace once {

// The parts of a file, each read by a function of its own (plan_values.cc, plan_steps.cc,
// plan_emits.cc).

[[nodiscard]] bool is_value_name(std::string_view name);

[[nodiscard]] Result<std::vector<ValueRule>> parse_values(const TomlTable& root);

// `when` of a step or a message. One that does not name a value brings a value of its own.
[[nodiscard]] Result<std::optional<Filter>> parse_filter(const TomlTable& of,
                                                         std::vector<ValueRule>& values);

[[nodiscard]] Result<std::vector<Step>> parse_steps(const TomlTable& root,
                                                    std::vector<ValueRule>& values);

[[nodiscard]] Result<std::vector<EmitRule>> parse_emits(const TomlTable& root,
                                                        const std::string& scope, bool has_id,
                                                        std::vector<ValueRule>& values);

// A string that names a value.
[[nodiscard]] Result<Use> use_of(TomlFile& file, const toml::node& node, std::string_view what);

}  // namespace once
