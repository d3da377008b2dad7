// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/sql.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/sql_text.h"

namespace once {

// A statement, cut at its parameters, so that it can be used for many values. One that is several,
// or whose quotes or comments are not closed, is refused: it would run into the next.
class StatementPieces {
 public:
  [[nodiscard]] static Result<StatementPieces> cut(std::string_view statement);

  // Refuses values that do not fit: another number of them, or one that cannot be written.
  [[nodiscard]] Status check(std::span<const Value> values) const;
  // The statement with its values in it, so that many can be sent in one packet. Texts and bytes
  // are written in hexadecimal: whatever they hold, they cannot end what they stand in. The values
  // were checked.
  void render(std::span<const Value> values, std::string& into) const;
  bool is_joinable() const { return is_joinable_; }
  // It runs a procedure, whose queries all answer.
  bool is_call() const { return is_call_; }
  bool may_change_tables() const { return may_change_tables_; }
  // With one `?` for each parameter, as a server prepares it.
  std::string prepared() const;

 private:
  std::string statement_;
  std::vector<std::string> pieces_;  // before, between and behind the parameters
  bool is_joinable_ = false;
  bool is_call_ = false;
  bool may_change_tables_ = false;
};

// The digits of a decimal as an exact number is written, without an exponent; empty if it is not
// one, or has more digits than the server computes with.
std::string decimal_literal(std::string_view digits);

// With all its digits, and so that no parser takes it for a decimal.
void append_number(std::string& into, double number);

[[nodiscard]] Result<std::string> render(std::string_view statement, std::span<const Value> values);

}  // namespace once
