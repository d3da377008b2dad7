// SPDX-License-Identifier: Apache-2.0
#include "model/handler_statement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "model/sql_text.h"

namespace once {
namespace {

using Words = std::span<const std::string_view>;

bool is_one_of(std::string_view word, Words words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// What ends a transaction, or leaves the protocol of queued and prepared statements.
constexpr std::array<std::string_view, 15> refused_words{
    "begin",   "commit",  "rollback", "savepoint", "abort",     "end",     "prepare",   "start",
    "release", "discard", "copy",     "xa",        "delimiter", "execute", "deallocate"};

// Those of MySQL that leave the transaction open; all others commit it, or may.
constexpr std::array<std::string_view, 14> mysql_words{
    "select", "insert", "update",  "delete",   "replace", "with", "values",
    "call",   "do",     "explain", "describe", "desc",    "show", "set"};

// SET of these ends a transaction or decides how a commit works ...
constexpr std::array<std::string_view, 2> mysql_refused_settings{"autocommit", "completion_type"};
// ... and SET STATEMENT ... FOR runs another statement.
constexpr std::array<std::string_view, 4> mysql_refused_sets{"statement", "password", "transaction",
                                                             "role"};

// With these another table of the same name would be found, or none.
constexpr std::array<std::string_view, 5> postgres_refused_settings{"search_path", "schema", "role",
                                                                    "authorization", "transaction"};

constexpr std::array<std::string_view, 7> plain_words{"select",  "insert", "update", "delete",
                                                      "replace", "with",   "values"};

// Functions that change the session.
constexpr std::array<std::string_view, 4> session_functions{
    "set_config", "get_lock", "pg_advisory_lock", "pg_try_advisory_lock"};

// The counters of segment ids are drawn through a handler's transaction.
bool is_book(std::string_view word) { return word.starts_with("once_") && word != "once_counter"; }

// What of a statement decides whether a handler may run it.
struct Summary {
  std::vector<std::string> words;  // in small letters, without what is quoted and variables
  bool names_books = false;
  bool has_variables = false;  // @name, @@name
  bool names_search_path = false;

  bool has(std::string_view word) const {
    return std::find(words.begin(), words.end(), word) != words.end();
  }
  bool has_one_of(Words some) const {
    return std::any_of(some.begin(), some.end(), [this](auto word) { return has(word); });
  }
  std::string_view word(std::size_t place) const {
    return place < words.size() ? std::string_view(words[place]) : std::string_view();
  }
};

Summary summary_of(std::string_view statement, SqlDialect dialect) {
  const SqlSyntax& syntax = syntax_of(dialect);
  Summary made;
  std::size_t signs = 0;  // @ in a row, just before
  split_sql(statement, syntax, [&](SqlPiece piece, std::string_view text) {
    const bool is_variable = signs == 1;
    signs = text == "@" ? signs + 1 : 0;
    made.has_variables = made.has_variables || signs > 0;
    if (is_variable && piece == SqlPiece::word) return;
    if (piece == SqlPiece::quoted || piece == SqlPiece::unclosed) {
      made.names_books = made.names_books || is_book(lower(name_in(text, syntax)));
      made.names_search_path = made.names_search_path || lower(text) == "'search_path'";
    } else if (piece == SqlPiece::word) {
      made.words.push_back(lower(text));
      made.names_books = made.names_books || is_book(made.words.back());
    }
  });
  return made;
}

// CREATE [OR REPLACE] TEMPORARY TABLE, DROP TEMPORARY TABLE
bool is_temporary(const Summary& it) {
  const std::size_t at = it.word(0) == "create" && it.word(1) == "or" ? 3 : 1;
  return (it.word(0) == "create" || it.word(0) == "drop") && it.word(at) == "temporary" &&
         it.word(at + 1) == "table";
}

// What is set: the word behind SET, SET SESSION or SET LOCAL.
std::string_view setting_of(const Summary& it) {
  return it.word(it.word(1) == "session" || it.word(1) == "local" ? 2 : 1);
}

bool may_commit_on_mysql(const Summary& it) {
  if (it.word(0) == "set")
    return it.has_one_of(mysql_refused_settings) || is_one_of(setting_of(it), mysql_refused_sets);
  return !is_one_of(it.word(0), mysql_words) && !is_temporary(it);
}

bool hides_books_on_postgres(const Summary& it) {
  if (it.has("set_config") && it.names_search_path) return true;
  if (it.word(0) != "set" && it.word(0) != "reset") return false;
  return is_one_of(setting_of(it), postgres_refused_settings);
}

bool writes_books(const Summary& it) {
  return it.names_books && (it.word(0) != "select" || it.has("into"));
}

tl::unexpected<Error> refuse(std::string_view statement, std::string_view why) {
  return fail(Remedy::stop, "sql", fmt::format("\"{}\": {}", statement, why));
}

}  // namespace

std::string first_keyword(std::string_view statement, SqlDialect dialect) {
  return std::string(summary_of(statement, dialect).word(0));
}

Status check_handler_statement(std::string_view statement, SqlDialect dialect) {
  const Summary it = summary_of(statement, dialect);
  if (it.words.empty()) return refuse(statement, "this is not a statement");
  if (is_one_of(it.word(0), refused_words) || writes_books(it))
    return refuse(statement,
                  "a handler may neither end the transaction nor change the books of Once");
  if (dialect == SqlDialect::mysql && may_commit_on_mysql(it))
    return refuse(statement,
                  "on MySQL and MariaDB this commits the transaction, or may; a handler may "
                  "SELECT, INSERT, UPDATE, DELETE, REPLACE, CALL, DO, SET and use temporary "
                  "tables; change the schema from outside");
  if (dialect == SqlDialect::postgresql && hides_books_on_postgres(it))
    return refuse(statement,
                  "with it the tables of Once may not be found; write the schema before the "
                  "names of your tables, or set it for the user");
  return {};
}

bool may_change_session(std::string_view statement, SqlDialect dialect) {
  const Summary it = summary_of(statement, dialect);
  if (it.word(0) == "set" && it.word(1) == "local") return false;  // until the transaction ends
  return !is_one_of(it.word(0), plain_words) || it.has_one_of(session_functions) ||
         (dialect == SqlDialect::mysql && it.has_variables) ||
         (it.word(0) == "select" && it.has("into"));
}

}  // namespace once
