// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/sql_update.h"
#include "store/postgres/parameters.h"
#include "store/sql/waves.h"

namespace once {

// A type that the server has given to a parameter.
struct ParameterType {
  std::string name;
  bool is_bigint = false;
  bool is_bytes = false;
};

// A condition of the update that the server lets us tell rows apart by.
struct SetKey {
  std::size_t parameter = 0;
  KeyKind kind = KeyKind::number;
};

// An array as the server reads it.
std::string array_literal(const std::vector<Value>& values);

// One statement that does what an update does for each of many rows of values. It answers the
// number of the row of values, from 1 on, for each row of the table that was changed by it. The
// values of a parameter travel as an array of its type, so each becomes what it becomes alone.
std::string set_update(const KeyedUpdate& update, std::span<const ParameterType> types);

using ValueRows = std::span<const std::span<const Value>>;

// Unset: one of the values cannot travel in an array, or no key tells many of the rows apart.
std::optional<Waves> waves_of(ValueRows rows, std::span<const ParameterType> types,
                              std::span<const SetKey> keys);
Parameters set_parameters(ValueRows rows, std::span<const std::size_t> wave,
                          std::span<const ParameterType> types);

}  // namespace once
