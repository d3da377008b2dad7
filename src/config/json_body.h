// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/cell.h"

namespace once {

struct JsonParser;

// Reads typed values out of one body, all of which must be JSON. Uses a parser of its thread: the
// latest body, and the latest element, are the only ones that may be used.
class JsonBody {
 public:
  [[nodiscard]] static Result<JsonBody> parse(std::string_view body);
  // One element of an array, to be looked into by pointers that may be empty.
  [[nodiscard]] static Result<JsonBody> parse_element(std::string_view text);

  // What is at this pointer; unset if there is nothing, nullptr for null. Another type of JSON than
  // this one can be made of is an error with the tag "value", and so is a member that stands twice
  // in an object on the way.
  [[nodiscard]] Result<std::optional<Cell>> at(std::string_view pointer, ValueType type) const;

  // The elements of the array at this pointer (empty: of the document itself) as their texts; unset
  // if there is nothing. What is not an array, or is too long, is an error.
  [[nodiscard]] Result<std::optional<std::vector<std::string>>> elements(
      std::string_view pointer) const;

  static constexpr std::size_t elements_max = 10'000;

 private:
  enum class Part : std::uint8_t { body, element };
  explicit JsonBody(Part part) : part_(part) {}
  static JsonParser& thread_parser(Part part);

  Part part_;
};

}  // namespace once
