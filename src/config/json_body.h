// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "config/cell.h"

namespace once {

// Reads typed values out of one JSON document, and only looks at what it needs for that. Uses the
// parser of its thread: the latest one parsed is the only one that may be used.
class JsonBody {
 public:
  [[nodiscard]] static Result<JsonBody> parse(std::string_view body);

  // What is at this pointer; unset if there is nothing, nullptr for null. Another type of JSON than
  // this one can be made of is an error with the tag "value", and so is a member that stands twice
  // in an object on the way.
  [[nodiscard]] Result<std::optional<Cell>> at(std::string_view pointer, ValueType type) const;

 private:
  JsonBody() = default;
};

}  // namespace once
