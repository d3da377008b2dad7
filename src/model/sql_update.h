// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/sql_text.h"

namespace once {

// UPDATE table SET column = expression, ... WHERE column = ? AND ..., of which nothing but the row
// itself and the parameters decide what becomes of a row. Two such updates with different values
// for a key have no row in common, so it does not matter which of them is run first.
//
// Names of columns are as the server keeps them: PostgreSQL in small letters unless they are
// quoted, MySQL (which does not care) always in small letters.
struct KeyedUpdate {
  // A condition `column = ?` that must hold; the column itself is not changed.
  struct Key {
    std::string column;
    std::size_t parameter = 0;
    bool operator==(const Key&) const = default;
  };
  // Writes something in the place of a parameter.
  using NameOf = std::function<std::string(std::size_t parameter)>;

  std::string table;              // as it is written
  std::vector<std::string> path;  // the same without quotes: a schema, if there is one, and a name
  std::set<std::string> assigned;
  std::set<std::string> computed;  // those of them that are not just set to a parameter or literal
  std::set<std::string> read;      // in expressions and conditions
  // An assigned column is read to compute another one: which value that sees depends on the server.
  bool reads_assigned = false;
  std::vector<Key> keys;       // at least one
  std::vector<bool> is_plain;  // for each parameter: a column is set to it, and that is all

  std::string set_with(const NameOf& name_of) const;
  std::string where_with(const NameOf& name_of) const;

  std::vector<std::string> set_pieces;    // between the parameters
  std::vector<std::string> where_pieces;  // the same; parameters count on
};

// Unset: it is something else, or nobody can be sure. Names that begin with `once_` are ours.
std::optional<KeyedUpdate> keyed_update(std::string_view statement, const SqlSyntax& syntax);

// What was found out about a table may not be true any more after it: it makes or changes one, or
// nobody can be sure that it does not.
bool may_change_tables(std::string_view statement);

}  // namespace once
