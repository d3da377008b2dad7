// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/sql.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace once {

// Text, bytes or digits of a value; nothing for a number.
std::string_view bytes_of(const Value& value);

// Values with copies of the bytes that they refer to.
class KeptValues {
 public:
  explicit KeptValues(std::span<const Value> values);
  std::span<const Value> values() const { return values_; }
  std::size_t bytes() const { return bytes_.size() + values_.size() * sizeof(std::int64_t); }

 private:
  std::vector<char> bytes_;  // stays where it is when this is moved
  std::vector<Value> values_;
};

}  // namespace once
