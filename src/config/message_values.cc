// SPDX-License-Identifier: Apache-2.0
#include "config/message_values.h"

#include <fmt/format.h>

#include "config/plan_parts.h"
#include "config/timestamp.h"
#include "model/schema_frame.h"

namespace once {
namespace {

std::string origin_of(const ValueRule& rule) {
  switch (rule.from) {
    case ValueFrom::json: return fmt::format("{} in the body", rule.field);
    case ValueFrom::header: return fmt::format("the header {}", rule.field);
    case ValueFrom::key: return "the key";
    case ValueFrom::body: return "the body";
    case ValueFrom::id: return "the id";
    case ValueFrom::partition: return "the partition";
    case ValueFrom::offset: return "the offset";
    case ValueFrom::timestamp: return "the timestamp";
    case ValueFrom::constant: return "the file";
    case ValueFrom::element: return fmt::format("{} in the element", rule.field);
    case ValueFrom::element_index: return "the index of the element";
    case ValueFrom::result: return fmt::format("column {} of a step", rule.column + 1);
  }
  return "?";
}

Result<std::optional<Cell>> present(Result<Cell> cell) {
  if (!cell) return fail(std::move(cell).error());
  return std::move(*cell);
}

}  // namespace

Result<std::optional<Cell>> MessageValues::look_in_json(const ValueRule& rule) {
  if (!json_) json_ = ONCE_TRY(JsonBody::parse(delivery_.body));
  return json_->at(rule.field, rule.type);
}

// Unset if the step was not run.
Result<std::optional<Cell>> MessageValues::look_in_row(const ValueRule& rule) {
  const auto found = fetched_.find(rule.step);
  if (found == fetched_.end()) return std::nullopt;
  if (!found->second->row) ONCE_TRY(wait_());
  const std::optional<Row>& row = found->second->row;
  if (!row) return fail(Remedy::retry, "sql", "a statement has not answered");
  return present(cell_from_field((*row)[rule.column], rule.type));
}

void MessageValues::expect_row(std::size_t step, std::shared_ptr<const FetchedRow> row) {
  fetched_[step] = std::move(row);
}

void MessageValues::resume() {
  json_.reset();
  element_.reset();
  array_.reset();
  in_element_ = false;
}

std::string MessageValues::of_element(std::string reason) const {
  if (!in_element_ || reason.empty()) return reason;
  return fmt::format("element {} of {}: {}", element_index_, *array_, reason);
}

Outcome MessageValues::of_element(Outcome outcome) const {
  if (outcome.kind != Outcome::Kind::applied)
    outcome.detail = of_element(std::move(outcome.detail));
  return outcome;
}

Result<std::size_t> MessageValues::open_array(const std::string& pointer) {
  if (array_ == pointer) return elements_.size();
  const auto explain = [&](std::string_view what) {
    return fail_value(fmt::format("each = \"{}\": {}", pointer, what));
  };
  if (!json_) json_ = ONCE_TRY(JsonBody::parse(delivery_.body));
  auto found = json_->elements(pointer);
  if (!found) return explain(found.error().text);
  if (!*found) return explain("it is not there");
  elements_ = std::move(**found);
  array_ = pointer;
  return elements_.size();
}

Status MessageValues::select_element(std::size_t index) {
  element_ = ONCE_TRY(JsonBody::parse_element(elements_[index]));
  element_index_ = index;
  in_element_ = true;
  for (std::size_t i = 0; i < rules_.size(); ++i)
    if (is_of_element(rules_[i])) cells_[i].reset();
  return {};
}

Result<std::optional<Cell>> MessageValues::look(const ValueRule& rule) {
  switch (rule.from) {
    case ValueFrom::json: return look_in_json(rule);
    case ValueFrom::header: {
      const std::string_view* header = delivery_.header(rule.field);
      if (header == nullptr || header->data() == nullptr) return std::nullopt;
      return present(cell_from_text(*header, rule.type));
    }
    case ValueFrom::key:
      if (!delivery_.has_key()) return std::nullopt;
      return present(cell_from_text(delivery_.key, rule.type));
    case ValueFrom::body:
      if (!delivery_.has_body()) return std::nullopt;
      return present(cell_from_text(
          rule.type == ValueType::json ? without_schema_frame(delivery_.body) : delivery_.body,
          rule.type));
    case ValueFrom::id:
      if (delivery_.id.empty()) return std::nullopt;
      return present(cell_from_text(delivery_.id, rule.type));
    case ValueFrom::partition: return present(cell_from_text(delivery_.partition, rule.type));
    case ValueFrom::offset:
      return present(cell_from_text(fmt::format("{}", delivery_.offset), rule.type));
    case ValueFrom::timestamp:
      return present(cell_from_text(fmt::format("{}", delivery_.timestamp_ms), rule.type));
    case ValueFrom::constant: return present(cell_from_text(rule.field, rule.type));
    case ValueFrom::element:
      if (!element_) return std::nullopt;
      return element_->at(rule.field, rule.type);
    case ValueFrom::result: return look_in_row(rule);
    case ValueFrom::element_index:
      return present(cell_from_text(fmt::format("{}", element_index_), rule.type));
  }
  return std::nullopt;
}

Result<std::optional<Cell>> MessageValues::look_and_explain(const ValueRule& rule) {
  auto cell = look(rule);
  if (cell) return cell;
  Error error = std::move(cell).error();
  error.text = fmt::format("the value \"{}\" ({}): {}", rule.name, origin_of(rule), error.text);
  return fail(std::move(error));
}

// JSON has a word for "no value"; there a fallback does not step in for what is there and null.
Result<Cell> MessageValues::found(const ValueRule& rule) {
  auto cell = ONCE_TRY(look_and_explain(rule));
  if (cell && !is_null(*cell)) return std::move(*cell);
  if (rule.nullable) return Cell(nullptr);
  if (!cell && rule.fallback) return cell_from_text(*rule.fallback, rule.type);
  return fail_value(fmt::format("the value \"{}\" ({}) is {}", rule.name, origin_of(rule),
                                cell ? "null" : "not there"));
}

Result<const Cell*> MessageValues::cell_or_null(std::size_t index) {
  static const Cell null(nullptr);
  if (cells_[index]) return &*cells_[index];
  const ValueRule& rule = rules_[index];
  // A message without a body has no member of it.
  if (rule.from == ValueFrom::json && delivery_.body.empty()) return &null;
  auto cell = ONCE_TRY(look_and_explain(rule));
  if (!cell && rule.fallback) cell = ONCE_TRY(cell_from_text(*rule.fallback, rule.type));
  if (!cell || is_null(*cell)) return &null;
  cells_[index] = std::move(*cell);
  return &*cells_[index];
}

Result<const Cell*> MessageValues::cell(std::size_t index) {
  if (!cells_[index]) cells_[index] = ONCE_TRY(found(rules_[index]));
  return &*cells_[index];
}

Result<Value> MessageValues::value(std::size_t index) {
  const Cell& known = *ONCE_TRY(cell(index));
  const auto* moment = std::get_if<std::int64_t>(&known);
  const bool is_moment = rules_[index].type == ValueType::timestamp && moment != nullptr;
  if (!is_moment || dialect_ == SqlDialect::sqlite) return value_of(known, rules_[index].type);
  // A server gives a text the type of its place. The sessions of Once are in UTC.
  bound_.resize(rules_.size());
  bound_[index] = timestamp_text(*moment);
  if (dialect_ == SqlDialect::postgresql) bound_[index] += "+00";
  return Value(bound_[index]);
}

Result<std::string> MessageValues::text(std::size_t index) {
  return text_of(*ONCE_TRY(cell(index)), rules_[index].type);
}

Result<std::string> MessageValues::present_text(std::size_t index) {
  const Cell& known = *ONCE_TRY(cell(index));
  if (!is_null(known)) return text_of(known, rules_[index].type);
  return fail_value(
      fmt::format("the value \"{}\" ({}) is null", rules_[index].name, origin_of(rules_[index])));
}

Result<std::string> MessageValues::text_or_empty(std::size_t index) {
  return text_of(*ONCE_TRY(cell_or_null(index)), rules_[index].type);
}

Result<std::int64_t> MessageValues::time_ms(std::size_t index) {
  const auto* time = std::get_if<std::int64_t>(ONCE_TRY(cell(index)));
  if (time != nullptr)
    return rules_[index].type == ValueType::timestamp ? timestamp_ms_of_us(*time) : *time;
  return fail_value(fmt::format("the value \"{}\" ({}) is not a time", rules_[index].name,
                                origin_of(rules_[index])));
}

// Only where the file does not say more about it: a value that is declared says what it may be.
bool MessageValues::is_absent_part(const ValueRule& rule) const {
  if (rule.place != Place{}) return false;
  return (rule.from == ValueFrom::key && !delivery_.has_key()) ||
         (rule.from == ValueFrom::body && !delivery_.has_body());
}

Result<std::optional<std::string>> MessageValues::part(std::size_t index) {
  if (is_absent_part(rules_[index])) return std::nullopt;
  const Cell& known = *ONCE_TRY(cell(index));
  if (is_null(known)) return std::nullopt;
  return text_of(known, rules_[index].type);
}

Status MessageValues::append_json(std::string& out, std::size_t index) {
  once::append_json(out, *ONCE_TRY(cell(index)), rules_[index].type);
  return {};
}

}  // namespace once
