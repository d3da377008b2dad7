// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "config/plan.h"
#include "config/toml_reader.h"

namespace once {

// The parts of a file, each read by a function of its own (plan_values.cc, plan_when.cc,
// plan_steps.cc, plan_emits.cc).

[[nodiscard]] bool is_value_name(std::string_view name);

[[nodiscard]] Result<std::vector<ValueRule>> parse_values(const TomlTable& root);

// Where a value comes from: exactly one key of the table says so. Has neither name nor place.
[[nodiscard]] Result<ValueRule> parse_origin(const TomlTable& table, std::string_view what);
// The keys that parse_origin knows.
[[nodiscard]] std::span<const std::string_view> origin_keys();
// How the file writes a type.
[[nodiscard]] std::string_view word_of(ValueType type);
// `type`, if it is there.
[[nodiscard]] Result<std::optional<ValueType>> parse_type(const TomlTable& table);

// `when`. A test that does not name a value brings a value of its own.
[[nodiscard]] Result<std::optional<WhenRule>> parse_when(const TomlTable& of,
                                                         std::vector<ValueRule>& values);

// `each`: a pointer to an array of the body.
[[nodiscard]] Result<std::optional<std::string>> parse_each(const TomlTable& of);
// `into` of a step: values for the columns that it reads, in the order of the file. Returns their
// names.
[[nodiscard]] Result<std::vector<ValueRef>> parse_into(const TomlTable& of, std::size_t step,
                                                       std::vector<ValueRule>& values);
// Whether a value is one of an element.
[[nodiscard]] bool is_of_element(const ValueRule& rule);

[[nodiscard]] Result<std::vector<Step>> parse_steps(const TomlTable& root,
                                                    std::vector<ValueRule>& values);

// The destination of this URL in the scope; `what` names the key in errors.
[[nodiscard]] Result<EmitTarget> parse_target(TomlFile& file, const toml::node& node,
                                              std::string_view what, const std::string& scope);

// Fills `emits` and `undirected` of the plan, whose other parts are read.
[[nodiscard]] Status parse_emits(const TomlTable& root, Plan& plan);

// A string that names a value, or a value that is declared in its place: { constant = "eu" }.
[[nodiscard]] Result<ValueRef> ref_of(TomlFile& file, const toml::node& node, std::string_view what,
                                      std::vector<ValueRule>& values);

}  // namespace once
