// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/each_function.h"

#include <fmt/format.h>

#include "store/postgres/statement_text.h"
#include "store/sql/connection.h"

namespace once {
namespace {

// Before the counts, in a field of the error that nobody is shown.
constexpr std::string_view mark = "once";

// Casts are in the write and not in the loop: a value that does not fit its type is an error of its
// own row. The one subtransaction of a call is for the handler of errors, which raises them again:
// so what is queued behind the call is not run, as behind any statement that fails.
constexpr std::string_view body_form = R"(
#variable_conflict use_column
DECLARE
  {variables};
  once_count bigint;
  once_counts bigint[] := '{{}}';
  once_row integer := 1;
  once_state text;
  once_message text;
  once_detail text;
  once_hint text;
  once_context text;
BEGIN
  FOR {targets} IN SELECT * FROM unnest({arguments}) LOOP
    {loop}
    ;
    GET DIAGNOSTICS once_count = ROW_COUNT;
    once_counts[once_row] := once_count;
    once_row := once_row + 1;
  END LOOP;
  RETURN once_counts;
EXCEPTION WHEN OTHERS OR assert_failure THEN
  GET STACKED DIAGNOSTICS once_state = RETURNED_SQLSTATE, once_message = MESSAGE_TEXT,
    once_detail = PG_EXCEPTION_DETAIL, once_hint = PG_EXCEPTION_HINT,
    once_context = PG_EXCEPTION_CONTEXT;
  RAISE EXCEPTION USING ERRCODE = once_state, MESSAGE = once_message, DETAIL = once_detail,
    HINT = once_hint, SCHEMA = once_context, COLUMN = '{mark}' || once_counts::text;
END
)";

// `form` with the number of each parameter.
std::string list(std::string_view form, std::size_t count, std::string_view separator = ", ") {
  std::string made;
  for (std::size_t i = 1; i <= count; ++i) {
    if (i > 1) made += separator;
    made += fmt::format(fmt::runtime(form), i);
  }
  return made;
}

// The statement with the variables of the loop. `$` outside of quotes may be a parameter, which
// would be one of the function's.
std::optional<std::string> loop_of(std::string_view statement, std::span<const std::string> types) {
  std::string made;
  std::size_t parameters = 0;
  bool is_plain = true;
  split_sql(statement, postgres_syntax, [&](SqlPiece piece, std::string_view text) {
    switch (piece) {
      case SqlPiece::parameter:
        ++parameters;
        if (parameters <= types.size())
          made += fmt::format("(once_p{}::{})", parameters, types[parameters - 1]);
        break;
      case SqlPiece::question: made += '?'; break;
      case SqlPiece::unclosed: is_plain = false; break;
      case SqlPiece::other: is_plain = is_plain && text != "$"; [[fallthrough]];
      case SqlPiece::quoted:
      case SqlPiece::word: made += text;
    }
  });
  if (!is_plain || parameters != types.size()) return std::nullopt;
  return made;
}

std::string quoted(const std::string& body) {
  std::string tag = "$once$";
  for (int i = 1; body.find(tag) != std::string::npos; ++i) tag = fmt::format("$once_{}$", i);
  return tag + body + tag;
}

std::string_view field(const PGresult* result, int code) {
  const char* const text = PQresultErrorField(result, code);
  return text == nullptr ? std::string_view() : std::string_view(text);
}

}  // namespace

std::optional<EachFunction> each_function(std::string_view name, std::string_view statement,
                                          std::span<const std::string> types) {
  std::optional<std::string> loop = loop_of(statement, types);
  if (!loop) return std::nullopt;
  const std::size_t count = types.size();
  const std::string body = fmt::format(
      fmt::runtime(body_form), fmt::arg("variables", list("once_p{} text", count, "; ")),
      fmt::arg("targets", list("once_p{}", count)), fmt::arg("arguments", list("once_a{}", count)),
      fmt::arg("loop", *loop), fmt::arg("mark", mark));
  return EachFunction{
      fmt::format(
          "CREATE OR REPLACE FUNCTION pg_temp.{}({}) RETURNS bigint[] LANGUAGE plpgsql AS {}", name,
          list("once_a{} text[]", count), quoted(body)),
      fmt::format("SELECT pg_temp.{}({})", name, list("${}", count)), std::move(*loop)};
}

std::vector<std::int64_t> counts_in(std::string_view array) {
  std::vector<std::int64_t> counts;
  while (array.size() > 2) {  // a bracket or comma, a number, and what is behind it
    const std::size_t end = array.find_first_of(",}", 1);
    if (end == std::string_view::npos) break;
    counts.push_back(number_in<std::int64_t>(array.substr(1, end - 1)));
    array.remove_prefix(end);
  }
  return counts;
}

EachFailure failure_in(const PGresult* result, const EachFunction& function) {
  const std::string_view counts = field(result, PG_DIAG_COLUMN_NAME);
  if (!counts.starts_with(mark)) return {{}, PQresultErrorMessage(result)};
  EachFailure failure{counts_in(counts.substr(mark.size())), ""};
  // As the library writes it, without the function: its lines are the last of the context.
  std::string_view context = field(result, PG_DIAG_SCHEMA_NAME);
  context = context.substr(0, context.rfind("SQL statement \"" + function.loop.substr(0, 20)));
  const auto add = [&](std::string_view label, std::string_view text) {
    if (!text.empty()) failure.native += fmt::format("{}:  {}\n", label, text);
  };
  add(field(result, PG_DIAG_SEVERITY), field(result, PG_DIAG_MESSAGE_PRIMARY));
  add("DETAIL", field(result, PG_DIAG_MESSAGE_DETAIL));
  add("HINT", field(result, PG_DIAG_MESSAGE_HINT));
  add("CONTEXT", context);
  return failure;
}

}  // namespace once
