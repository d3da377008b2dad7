// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/transaction.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace once {

struct Blob {
  std::string_view bytes;
};

// A decimal number as its digits, "-12.30" or "3e8": it stays exact wherever the database can.
struct Decimal {
  std::string_view digits;
};

// A bound parameter. It only refers to its text: the transaction copies what it has to keep.
class Value {
 public:
  using Variant =
      std::variant<std::nullptr_t, std::int64_t, double, std::string_view, Blob, Decimal>;

  Value(std::nullptr_t) : value_(nullptr) {}
  template <std::integral T>
  Value(T number) : value_(static_cast<std::int64_t>(number)) {}
  Value(double number) : value_(number) {}
  Value(const char* text) : value_(std::string_view(text)) {}
  Value(std::string_view text) : value_(text) {}
  Value(const std::string& text) : value_(std::string_view(text)) {}
  Value(Blob blob) : value_(blob) {}
  Value(Decimal decimal) : value_(decimal) {}

  const Variant& variant() const { return value_; }

 private:
  Variant value_;
};

// A value read from the database; text and blobs are bytes.
using Field = std::variant<std::nullptr_t, std::int64_t, double, std::string>;
using Row = std::vector<Field>;
using Rows = std::vector<Row>;

// How many rows a statement must touch, and what becomes of the message if it does not: exactly
// what would happen if its handler had returned `otherwise`. The rest of the batch is not harmed.
struct Expect {
  std::int64_t rows = -1;  // -1: any number
  Outcome otherwise = parked("a statement touched another number of rows than expected");
  // Whose write it is. Unset: the message whose handler runs. A batch handler sets it.
  std::optional<std::size_t> message = std::nullopt;
};

inline Expect rows(std::int64_t count) {
  Expect expect;
  expect.rows = count;
  return expect;
}
inline Expect rows(std::int64_t count, Outcome otherwise) {
  return {count, std::move(otherwise), std::nullopt};
}

enum class SqlDialect : std::uint8_t { sqlite, postgresql, mysql };

// A transaction of an SQL store. Parameters are written as `?` in every dialect and always bound.
class SqlTransaction : public Transaction {
 public:
  // Queues a write. It returns without waiting; a failure, or an expectation that was not met,
  // comes back from a later call, at the latest from `commit`, and names its message.
  [[nodiscard]] virtual Status execute(std::string_view statement, std::span<const Value> values,
                                       const Expect& expect) = 0;

  // Writes at once, after all queued writes, and answers how many rows it touched: a round trip.
  [[nodiscard]] virtual Result<std::int64_t> run(std::string_view statement,
                                                 std::span<const Value> values) = 0;

  // Reads, after all queued writes: a round trip.
  [[nodiscard]] virtual Result<Rows> query(std::string_view statement,
                                           std::span<const Value> values) = 0;

  // Queues a statement that answers rows, a SELECT or one with RETURNING, and hands them to `then`
  // in a later call, at the latest in `flush` or `commit`; rows of several statements come in one
  // round trip where the server can. What `then` fails with is what that call fails with. `then`
  // must own what it writes to: it may be called while the transaction ends. Where nothing is
  // queued it is called at once.
  using Then = std::function<Status(Rows)>;
  [[nodiscard]] virtual Status fetch(std::string_view statement, std::span<const Value> values,
                                     const Expect& expect, const Then& then) {
    Rows found = ONCE_TRY(query(statement, values));
    const auto count = static_cast<std::int64_t>(found.size());
    if (expect.rows < 0 || count == expect.rows) return then(std::move(found));
    Error error{Remedy::park, "expect", "a statement answered another number of rows than expected",
                std::nullopt};
    const auto message = expect.message ? expect.message : message_;
    if (message) error.culprit = Culprit{*message, expect.otherwise};
    return fail(std::move(error));
  }

  // Waits for all that is queued.
  [[nodiscard]] virtual Status flush() { return {}; }

  [[nodiscard]] Status execute(std::string_view statement, std::initializer_list<Value> values = {},
                               const Expect& expect = {}) {
    return execute(statement, std::span(values.begin(), values.size()), expect);
  }
  [[nodiscard]] Result<Rows> query(std::string_view statement,
                                   std::initializer_list<Value> values = {}) {
    return query(statement, std::span(values.begin(), values.size()));
  }

  [[nodiscard]] Result<std::int64_t> run(std::string_view statement,
                                         std::initializer_list<Value> values = {}) {
    return run(statement, std::span(values.begin(), values.size()));
  }

  // What statements have to be written in; parameters are `?` in all of them.
  virtual SqlDialect dialect() const = 0;

  SqlTransaction* sql() final { return this; }
};

}  // namespace once
