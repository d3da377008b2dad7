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

// What changes the session, or the transaction as a whole. SET of MySQL also gives values to user
// variables, which is no such change.
constexpr std::array<std::string_view, 3> sqlite_session_words{"pragma", "attach", "detach"};
constexpr std::array<std::string_view, 3> postgres_session_words{"set", "reset", "load"};
constexpr std::array<std::string_view, 2> mysql_session_words{"set", "use"};

Words session_words(SqlDialect dialect) {
  switch (dialect) {
    case SqlDialect::postgresql: return postgres_session_words;
    case SqlDialect::mysql: return mysql_session_words;
    case SqlDialect::sqlite: break;
  }
  return sqlite_session_words;
}

// With these another table of the same name would be found, or none.
constexpr std::array<std::string_view, 3> postgres_hiding_settings{"'search_path'", "'role'",
                                                                   "'session_authorization'"};

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
  bool has_variables = false;          // @name, @@name
  bool sets_only_variables = false;    // SET @name = ..., @other = ...
  bool names_hiding_setting = false;   // as a text
  bool has_statement_comment = false;  // /*! ... */, which MySQL runs
  bool has_escaped_name = false;       // U&"...", whose table nobody looks up

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

// Whether SET gives values to nothing but user variables. A target stands behind SET and behind
// every comma outside of brackets; @@name is a setting.
class SetTargets {
 public:
  void take(SqlPiece piece, std::string_view text) {
    if (is_blank(piece, text)) return;
    if (text == "(") ++depth_;
    if (text == ")") --depth_;
    switch (expected_) {
      case Expected::set:
        is_set_ = lower(text) == "set";
        expected_ = Expected::sign;
        break;
      case Expected::sign:
        only_variables_ = only_variables_ && text == "@";
        expected_ = Expected::name;
        break;
      case Expected::name:
        only_variables_ = only_variables_ && text != "@";
        expected_ = Expected::comma;
        break;
      case Expected::comma:
        if (text == "," && depth_ == 0) expected_ = Expected::sign;
        break;
    }
  }
  bool are_variables() const { return is_set_ && only_variables_ && expected_ == Expected::comma; }

 private:
  enum class Expected : std::uint8_t { set, sign, name, comma };
  static bool is_blank(SqlPiece piece, std::string_view text) {
    const bool is_comment = piece == SqlPiece::quoted &&
                            (text.starts_with("/*") || text.starts_with("--") || text[0] == '#');
    return is_comment || text.find_first_not_of(" \t\r\n") == std::string_view::npos;
  }

  Expected expected_ = Expected::set;
  int depth_ = 0;
  bool is_set_ = false;
  bool only_variables_ = true;
};

bool is_statement_comment(std::string_view quoted, SqlDialect dialect) {
  return dialect == SqlDialect::mysql && (quoted.starts_with("/*!") || quoted.starts_with("/*M!"));
}

Summary summary_of(std::string_view statement, SqlDialect dialect) {
  const SqlSyntax& syntax = syntax_of(dialect);
  Summary made;
  SetTargets targets;
  std::size_t signs = 0;  // @ in a row, just before
  std::string before;     // the last two pieces
  split_sql(statement, syntax, [&](SqlPiece piece, std::string_view text) {
    targets.take(piece, text);
    made.has_escaped_name = made.has_escaped_name || (before.ends_with("u&") && text[0] == '"');
    before = lower(text.size() == 1
                       ? before.substr(before.empty() ? 0 : before.size() - 1) + std::string(text)
                       : std::string());
    const bool is_variable = signs == 1;
    signs = text == "@" ? signs + 1 : 0;
    made.has_variables = made.has_variables || signs > 0;
    if (is_variable && piece == SqlPiece::word) return;
    if (piece == SqlPiece::quoted || piece == SqlPiece::unclosed) {
      made.names_books = made.names_books || is_book(lower(name_in(text, syntax)));
      made.names_hiding_setting =
          made.names_hiding_setting || is_one_of(lower(text), postgres_hiding_settings);
      made.has_statement_comment =
          made.has_statement_comment || is_statement_comment(text, dialect);
    } else if (piece == SqlPiece::word) {
      made.words.push_back(lower(text));
      made.names_books = made.names_books || is_book(made.words.back());
    }
  });
  made.sets_only_variables = dialect == SqlDialect::mysql && targets.are_variables();
  return made;
}

// CREATE [OR REPLACE] TEMPORARY TABLE, DROP TEMPORARY TABLE
bool is_temporary(const Summary& it) {
  const std::size_t at = it.word(0) == "create" && it.word(1) == "or" ? 3 : 1;
  return (it.word(0) == "create" || it.word(0) == "drop") && it.word(at) == "temporary" &&
         it.word(at + 1) == "table";
}

bool may_commit_on_mysql(const Summary& it) {
  return !is_one_of(it.word(0), mysql_words) && !is_temporary(it);
}

bool changes_session(const Summary& it, SqlDialect dialect) {
  return is_one_of(it.word(0), session_words(dialect)) && !it.sets_only_variables;
}

// VACUUM, CREATE DATABASE, ALTER SYSTEM, CREATE INDEX CONCURRENTLY and the like: prepared without a
// complaint, and refused each time they are run.
bool needs_no_transaction(const Summary& it, SqlDialect dialect) {
  constexpr std::array<std::string_view, 2> outside{"database", "tablespace"};
  constexpr std::array<std::string_view, 3> concurrent{"index", "unique", "table"};
  if (it.word(0) == "vacuum") return dialect != SqlDialect::mysql;
  if (dialect != SqlDialect::postgresql) return false;
  const bool defines = it.word(0) == "create" || it.word(0) == "drop";
  if (defines && is_one_of(it.word(1), outside)) return true;
  if (it.word(0) == "alter" && it.word(1) == "system") return true;
  return it.has("concurrently") &&
         (it.word(0) == "reindex" ||
          ((defines || it.word(0) == "alter") && is_one_of(it.word(1), concurrent)));
}

bool writes_books(const Summary& it) {
  return it.names_books && (it.word(0) != "select" || it.has("into"));
}

std::string_view instead_of_settings(SqlDialect dialect) {
  switch (dialect) {
    case SqlDialect::postgresql:
      return "set it for the role (ALTER ROLE ... SET) or in the URL (options=); a value for the "
             "statements of one message is given by set_config('app.name', ?, true)";
    case SqlDialect::mysql:
      return "set it from outside; a value for the statements of one message is given by SET "
             "@name = ...";
    case SqlDialect::sqlite: break;
  }
  return "set it from outside";
}

// Why a handler may not run a statement; empty: it may.
std::string reason_to_refuse(const Summary& it, SqlDialect dialect) {
  if (it.has_statement_comment)
    return "the server would run what is in the comment; write it outside of a comment";
  if (it.words.empty()) return "this is not a statement";
  if (is_one_of(it.word(0), refused_words) || writes_books(it))
    return "a handler may neither end the transaction nor change the books of Once";
  if (needs_no_transaction(it, dialect))
    return "it cannot run inside a transaction, and a message is handled in one; do it from "
           "outside";
  if (changes_session(it, dialect))
    return fmt::format(
        "it changes the session or the whole transaction, and with that how other messages of the "
        "batch are handled; {}",
        instead_of_settings(dialect));
  if (dialect == SqlDialect::mysql && may_commit_on_mysql(it))
    return "on MySQL and MariaDB a handler may only SELECT, INSERT, UPDATE, DELETE, REPLACE, CALL, "
           "DO, SET user variables and use temporary tables: most of the rest commits the "
           "transaction; do it from outside";
  if (dialect == SqlDialect::postgresql && it.has_escaped_name)
    return "names with Unicode escapes (U&\"...\") are not looked up; write the characters";
  if (dialect == SqlDialect::postgresql && it.has("set_config") && it.names_hiding_setting)
    return "with it the tables of Once may not be found; write the schema before the names of "
           "your tables, or set it for the role";
  return {};
}

}  // namespace

std::string first_keyword(std::string_view statement, SqlDialect dialect) {
  return std::string(summary_of(statement, dialect).word(0));
}

Status check_handler_statement(std::string_view statement, SqlDialect dialect) {
  const std::string reason = reason_to_refuse(summary_of(statement, dialect), dialect);
  if (reason.empty()) return {};
  return fail(Remedy::stop, "sql", fmt::format("\"{}\": {}", statement, reason));
}

bool may_change_session(std::string_view statement, SqlDialect dialect) {
  const Summary it = summary_of(statement, dialect);
  return !is_one_of(it.word(0), plain_words) || it.has_one_of(session_functions) ||
         (dialect == SqlDialect::mysql && it.has_variables) ||
         (it.word(0) == "select" && it.has("into"));
}

}  // namespace once
