// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
#include <once/outcome.h>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/cell.h"
#include "config/json_body.h"

namespace once {

// A row that a step reads: it is there once the database has answered.
struct FetchedRow {
  std::optional<Row> row;
};

// The values of one message, each found out when it is asked for and not before: a message need
// not have what no step of its own needs. The body is parsed at most once. Used by one thread, and
// only one at a time.
class MessageValues {
 public:
  // `dialect` is that of the statements to which values are bound.
  MessageValues(std::span<const ValueRule> rules, const Delivery& delivery,
                SqlDialect dialect = SqlDialect::sqlite)
      : rules_(rules), delivery_(delivery), dialect_(dialect), cells_(rules.size()) {}

  // Stays valid as long as this does. An absent value, or one that does not fit its type, is an
  // error with the remedy `park` that names the value and where it comes from.
  [[nodiscard]] Result<const Cell*> cell(std::size_t index);
  // The same for a condition: null where the value is absent, whatever its rule says about that.
  [[nodiscard]] Result<const Cell*> cell_or_null(std::size_t index);
  // To be bound to a statement, as the dialect has it; refers to this until another element is
  // selected.
  [[nodiscard]] Result<Value> value(std::size_t index);
  [[nodiscard]] Result<std::string> text(std::size_t index);
  // The same for a place that cannot be null: null is an error with the remedy `park`.
  [[nodiscard]] Result<std::string> present_text(std::size_t index);
  // Empty where the value is null or absent.
  [[nodiscard]] Result<std::string> text_or_empty(std::size_t index);
  // A timestamp, or an integer that is one, in milliseconds since 1970.
  [[nodiscard]] Result<std::int64_t> time_ms(std::size_t index);
  // For a key, body or header to be emitted: unset where the value is null, and where the file
  // names the message's own key or body and the message has none.
  [[nodiscard]] Result<std::optional<std::string>> part(std::size_t index);
  [[nodiscard]] Status append_json(std::string& out, std::size_t index);
  [[nodiscard]] bool is_null(const Cell& cell) const {
    return std::holds_alternative<std::nullptr_t>(cell);
  }

  // The array at this pointer of the body, whose elements are selected next: how many there are.
  // One that is absent or null is an error with the remedy `park`.
  [[nodiscard]] Result<std::size_t> open_array(const std::string& pointer);
  // Values of an element are those of this one until another is selected.
  [[nodiscard]] Status select_element(std::size_t index);
  void leave_element() { in_element_ = false; }
  // The reason names the element that is selected, by its :element_index; without one it stays.
  [[nodiscard]] std::string of_element(std::string reason) const;
  [[nodiscard]] Outcome of_element(Outcome outcome) const;

  // Results of a step are the columns of this row. If it is asked for before it is there, `wait` is
  // called.
  void expect_row(std::size_t step, std::shared_ptr<const FetchedRow> row);
  void on_wait(std::function<Status()> wait) { wait_ = std::move(wait); }
  // Other messages had the parser meanwhile.
  void resume();

  const Delivery& delivery() const { return delivery_; }

 private:
  bool is_absent_part(const ValueRule& rule) const;
  Result<Cell> found(const ValueRule& rule);
  Result<std::optional<Cell>> look(const ValueRule& rule);
  Result<std::optional<Cell>> look_and_explain(const ValueRule& rule);
  Result<std::optional<Cell>> look_in_json(const ValueRule& rule);
  Result<std::optional<Cell>> look_in_row(const ValueRule& rule);

  std::span<const ValueRule> rules_;
  const Delivery& delivery_;
  const SqlDialect dialect_;
  std::vector<std::optional<Cell>> cells_;
  std::vector<std::string> bound_;  // texts that are bound instead of cells, if there are any
  std::optional<JsonBody> json_;
  std::optional<std::string> array_;  // where `elements_` are from
  std::vector<std::string> elements_;
  std::size_t element_index_ = 0;
  bool in_element_ = false;
  std::map<std::size_t, std::shared_ptr<const FetchedRow>> fetched_;  // by step
  std::function<Status()> wait_;
  std::optional<JsonBody> element_;
};

}  // namespace once
