// SPDX-License-Identifier: Apache-2.0
// The values travel as JSON, texts and bytes as hexadecimal digits in it. They reach the write as
// parameters of a prepared statement, not as variables of the block: a variable would have a
// collation of its own, and could find other rows than the value itself.
#include "store/mysql/loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/assert.h"
#include "base/hex.h"
#include "store/mysql/render.h"

namespace once {
namespace {

// Longer texts are read as LONGTEXT, which the server keeps in a temporary file. A row of short
// ones has to fit into the 64 KiB that the server takes for one.
constexpr std::size_t short_digits_max = 512;
constexpr std::size_t row_digits_max = 32'000;

struct JsonValue {
  std::string& into;

  void operator()(std::nullptr_t) const { into += "null"; }
  void operator()(std::int64_t number) const { into += fmt::format_int(number).c_str(); }
  void operator()(double number) const { append_number(into, number); }
  void operator()(std::string_view text) const { quote(text); }
  void operator()(Blob blob) const { quote(blob.bytes); }
  void operator()(Decimal) const { ONCE_ASSERT(false); }  // RowTypes takes none

  void quote(std::string_view bytes) const {
    into += '"';
    append_hex(into, bytes);
    into += '"';
  }
};

// How a parameter is read from the JSON, and made what it was.
struct Column {
  std::string type;
  std::string use;
};

Column column_of(enum_field_types type, const std::string& name, std::size_t digits,
                 bool is_short) {
  switch (type) {
    case MYSQL_TYPE_LONGLONG: return {"BIGINT", name};
    case MYSQL_TYPE_DOUBLE: return {"DOUBLE", name};
    default: break;
  }
  const std::string text =
      (is_short ? fmt::format("VARCHAR({})", std::max<std::size_t>(digits, 1)) : "LONGTEXT") +
      " CHARACTER SET ascii";
  if (type == MYSQL_TYPE_BLOB) return {text, fmt::format("UNHEX({})", name)};
  return {text, fmt::format("CONVERT(UNHEX({}) USING utf8mb4)", name)};
}

}  // namespace

JsonRows json_rows(std::string_view alias, const RowTypes& types,
                   std::span<const std::span<const Value>> rows) {
  const std::size_t count = rows.front().size();
  std::string json = "[";
  std::vector<std::size_t> digits(count);
  for (const std::span<const Value> row : rows) {
    json += json.size() == 1 ? "[" : ",[";
    for (std::size_t i = 0; i < count; ++i) {
      if (i > 0) json += ',';
      digits[i] = std::max(digits[i], 2 * bytes_of(row[i]).size());
      std::visit(JsonValue{json}, row[i].variant());
    }
    json += ']';
  }
  json += ']';
  JsonRows made;
  std::string columns;
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_short = digits[i] <= std::min(short_digits_max, row_digits_max / count);
    const Column column =
        column_of(types.of(i), fmt::format("{}.once_p{}", alias, i), digits[i], is_short);
    columns += fmt::format("{}once_p{} {} PATH '$[{}]'", i > 0 ? ", " : "", i, column.type, i);
    made.uses.push_back(column.use);
  }
  made.table = fmt::format("JSON_TABLE('{}', '$[*]' COLUMNS ({}))", json, columns);
  return made;
}

std::string loop_block(std::string_view statement, const RowTypes& types,
                       std::span<const std::span<const Value>> rows) {
  const JsonRows values = json_rows("r", types, rows);
  std::string hex;
  append_hex(hex, statement);
  return fmt::format(
      "BEGIN NOT ATOMIC DECLARE counts LONGTEXT DEFAULT ''; SET @once_statement = _utf8mb4 x'{}'; "
      "PREPARE once_each FROM @once_statement; FOR r IN (SELECT * FROM {} AS j) DO "
      "EXECUTE once_each USING {}; SET counts = CONCAT(counts, ROW_COUNT(), ' '); END FOR; "
      "SELECT counts; END",
      hex, values.table, fmt::join(values.uses, ", "));
}

std::optional<std::vector<std::int64_t>> counts_of_loop(std::string_view text, std::size_t rows) {
  std::vector<std::int64_t> counts;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    std::int64_t count = 0;
    const auto [next, error] = std::from_chars(at, end, count);
    if (error != std::errc() || next == end || *next != ' ') return std::nullopt;
    counts.push_back(count);
    at = next + 1;
  }
  if (counts.size() != rows) return std::nullopt;
  return counts;
}

}  // namespace once
