// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <once/identity.h>
#include <once/key_value.h>

#include <charconv>
#include <cstdlib>
#include <map>
#include <string>

#include "strategy/field.h"
#include "strategy/guarded_row.h"

// A row is kept under the tuple (table, value of the key, ...) as the tuple (column, value, ...).
// A value begins with its type: `n`, `i1`, `d0x1p+0`, `stext`.

namespace once {
namespace {

// Grows with every lock, so that two who lock the same row cannot both commit.
constexpr std::string_view lock_column = "once_lock";

std::string encode(const Field& field) {
  struct Encoder {
    std::string operator()(std::nullptr_t) const { return "n"; }
    std::string operator()(std::int64_t number) const { return fmt::format("i{}", number); }
    std::string operator()(double number) const { return fmt::format("d{:a}", number); }
    std::string operator()(const std::string& text) const { return "s" + text; }
  };
  return std::visit(Encoder{}, field);
}

tl::unexpected<Error> corrupt() {
  return fail(Remedy::stop, "corrupt",
              "a value under the name of a table is not a row that a strategy has written");
}

Result<Field> decode(std::string_view text) {
  if (text.empty()) return corrupt();
  const std::string rest(text.substr(1));
  const char* end = rest.data() + rest.size();
  switch (text[0]) {
    case 'n': return rest.empty() ? Result<Field>(nullptr) : corrupt();
    case 's': return Field(rest);
    case 'd': return Field(std::strtod(rest.c_str(), nullptr));
    case 'i': break;
    default: return corrupt();
  }
  std::int64_t number = 0;
  const auto read = std::from_chars(rest.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end) return corrupt();
  return Field(number);
}

bool holds(const Condition& condition, const Field& field) {
  for (const Value& value : condition.values) {
    const Field other = field_of(value);
    // Null and values of another type are neither equal nor smaller nor larger, as in SQL.
    if (field.index() != other.index() || std::holds_alternative<std::nullptr_t>(field)) continue;
    switch (condition.kind) {
      case Condition::Kind::equals:
      case Condition::Kind::one_of:
        if (field == other) return true;
        break;
      case Condition::Kind::at_most: return !comes_before(other, field);
      case Condition::Kind::above: return comes_before(other, field);
    }
  }
  return false;
}

class KeyValueRow final : public GuardedRow {
 public:
  KeyValueRow(KeyValueTransaction& transaction, std::string_view table, Columns key)
      : GuardedRow(key), transaction_(transaction), place_(place_of(table, key)) {}

 private:
  using Named = std::map<std::string, Field, std::less<>>;

  static std::string place_of(std::string_view table, Columns key) {
    std::vector<std::string> texts;
    for (const Column& column : key) texts.push_back(encode(field_of(column.value)));
    std::vector<std::string_view> parts{table};
    parts.insert(parts.end(), texts.begin(), texts.end());
    return encode_tuple(parts);
  }

  Result<bool> do_insert(Columns rest) override {
    if (ONCE_TRY(transaction_.get(place_))) return false;
    Named row;
    for (const Columns& columns : {key_, rest})
      for (const Column& column : columns) row[std::string(column.name)] = field_of(column.value);
    ONCE_TRY(save(row));
    return true;
  }

  Result<std::optional<Row>> do_read(std::span<const std::string_view> columns,
                                     Freshness) override {
    const auto named = ONCE_TRY(load());
    if (!named) return std::nullopt;
    return columns_of(*named, columns);
  }

  Result<bool> do_update(std::span<const Condition> conditions, Columns changes) override {
    auto row = ONCE_TRY(load());
    if (!row) return false;
    for (const Condition& condition : conditions) {
      const auto found = row->find(condition.column);
      if (found == row->end() || !holds(condition, found->second)) return false;
    }
    for (const Column& column : changes) (*row)[std::string(column.name)] = field_of(column.value);
    ONCE_TRY(save(*row));
    return true;
  }

  Result<LockAnswer> do_lock(std::span<const std::string_view> columns, Row& row) override {
    auto named = ONCE_TRY(load());
    if (!named) return LockAnswer::missing;
    row = columns_of(*named, columns);
    Field& count = (*named)[std::string(lock_column)];
    const auto* before = std::get_if<std::int64_t>(&count);
    count = before == nullptr ? std::int64_t{1} : *before + 1;
    ONCE_TRY(save(*named));
    return LockAnswer::locked;
  }

  static Row columns_of(const Named& named, std::span<const std::string_view> columns) {
    Row row;
    for (const std::string_view column : columns) {
      const auto found = named.find(column);
      row.push_back(found == named.end() ? Field(nullptr) : found->second);
    }
    return row;
  }

  Result<std::optional<Named>> load() {
    const auto bytes = ONCE_TRY(transaction_.get(place_));
    if (!bytes) return std::nullopt;
    auto parts = ONCE_TRY(decode_tuple(*bytes));
    if (parts.size() % 2 != 0) return corrupt();
    Named row;
    for (std::size_t i = 0; i < parts.size(); i += 2)
      row.emplace(std::move(parts[i]), ONCE_TRY(decode(parts[i + 1])));
    return row;
  }

  Status save(const Named& row) {
    std::vector<std::string> texts;
    for (const auto& [name, field] : row) {
      texts.push_back(name);
      texts.push_back(encode(field));
    }
    const std::vector<std::string_view> parts(texts.begin(), texts.end());
    return transaction_.put(place_, encode_tuple(parts));
  }

  KeyValueTransaction& transaction_;
  const std::string place_;
};

}  // namespace

std::unique_ptr<GuardedRow> key_value_row(KeyValueTransaction& transaction, std::string_view table,
                                          Columns key) {
  return std::make_unique<KeyValueRow>(transaction, table, key);
}

}  // namespace once
