// SPDX-License-Identifier: Apache-2.0
#include "model/sql_tables.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

namespace once {
namespace {

constexpr std::size_t names_max = 256;

using Words = std::span<const std::string_view>;

bool is_one_of(std::string_view word, Words words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Between a verb and the table.
constexpr std::array<std::string_view, 10> modifiers{
    "low_priority", "high_priority", "delayed", "ignore", "quick",
    "into",         "only",          "table",   "or",     "from"};
// UPDATE behind these is another's: FOR UPDATE, ON DUPLICATE KEY UPDATE, ON CONFLICT DO UPDATE.
constexpr std::array<std::string_view, 4> not_before_update{"for", "key", "do", "on"};
// What ends the list of tables.
constexpr std::array<std::string_view, 8> ends{"set",   "where",     "order",  "limit",
                                               "value", "returning", "values", "select"};

// Words before a bracket that are no routines. Others would only cost a look.
constexpr std::array<std::string_view, 35> not_called{
    "all",       "and",    "any",    "as",     "between", "by",    "case",   "conflict", "distinct",
    "else",      "elsif",  "except", "exists", "from",    "group", "having", "if",       "in",
    "intersect", "into",   "join",   "key",    "like",    "not",   "on",     "or",       "over",
    "returning", "select", "some",   "then",   "union",   "using", "when",   "where"};

struct Piece {
  std::string text;
  std::string word;  // in small letters; empty if it is quoted or a sign
  std::string name;  // without quotes, folded; empty if it cannot be one
};

std::vector<Piece> pieces_of(std::string_view text, const SqlSyntax& syntax) {
  std::vector<Piece> pieces;
  split_sql(text, syntax, [&](SqlPiece piece, std::string_view part) {
    if (piece == SqlPiece::word) {
      const std::string small = lower(part);
      pieces.push_back({std::string(part), small, syntax.folds_names ? small : std::string(part)});
      return;
    }
    const std::string_view name = name_in(part, syntax);
    const bool is_comment = part.starts_with("--") || part.starts_with("/*") ||
                            (part.starts_with("#") && syntax.hash_comments);
    const bool is_blank = part.find_first_not_of(" \t\r\n") == std::string_view::npos;
    if (!is_blank && !(piece == SqlPiece::quoted && is_comment))
      pieces.push_back({std::string(part), {}, std::string(name)});
  });
  return pieces;
}

// Walks through the pieces, from verb to verb.
class Finder {
 public:
  explicit Finder(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {}

  std::vector<SqlName> find() && {
    for (; at_ < pieces_.size() && found_.size() < names_max; ++at_) {
      const std::string& verb = pieces_[at_].word;
      if (verb == "insert" || verb == "replace" || verb == "truncate" || verb == "merge")
        take_one();
      else if (verb == "call")
        take_one(/*is_routine=*/true);
      else if (verb == "delete" || (verb == "update" && !belongs_to_another()))
        take_many();
      else
        take_called();
    }
    return std::move(found_);
  }

 private:
  bool belongs_to_another() const {
    return at_ > 0 && is_one_of(pieces_[at_ - 1].word, not_before_update);
  }
  const Piece* next() const { return at_ + 1 < pieces_.size() ? &pieces_[at_ + 1] : nullptr; }

  void skip_modifiers() {
    while (next() != nullptr && is_one_of(next()->word, modifiers)) ++at_;
  }

  void take_one(bool is_routine = false) {
    skip_modifiers();
    if (auto name = take_name()) {
      name->is_routine = is_routine;
      add(std::move(*name));
    }
  }

  // A name before a bracket, which begins here.
  void take_called() {
    const Piece& first = pieces_[at_];
    if (first.name.empty() || is_one_of(first.word, not_called) || is_one_of(first.word, ends))
      return;
    SqlName name = name_here();
    name.is_routine = stands_before_bracket();
    if (name.is_routine) add(std::move(name));
  }

  bool stands_before_bracket() const { return next() != nullptr && next()->text == "("; }

  void take_many() {
    while (next() != nullptr && next()->text != ";" && !is_one_of(next()->word, ends)) {
      skip_modifiers();
      if (auto name = take_name()) {
        name->is_routine = stands_before_bracket();
        add(std::move(*name));
      } else if (next() != nullptr && next()->text != ";" && !is_one_of(next()->word, ends))
        ++at_;
    }
  }

  std::optional<SqlName> take_name() {
    if (next() == nullptr || next()->name.empty() || is_one_of(next()->word, ends))
      return std::nullopt;
    ++at_;
    return name_here();
  }

  // The name that begins here, and those that follow it behind points.
  SqlName name_here() {
    SqlName name;
    for (;;) {
      name.text += pieces_[at_].text;
      name.path.push_back(pieces_[at_].name);
      const bool goes_on = at_ + 2 < pieces_.size() && pieces_[at_ + 1].text == "." &&
                           !pieces_[at_ + 2].name.empty();
      if (!goes_on) return name;
      name.text += '.';
      at_ += 2;
    }
  }

  void add(SqlName name) {
    if (name.path.size() <= 2 && std::find(found_.begin(), found_.end(), name) == found_.end())
      found_.push_back(std::move(name));
  }

  const std::vector<Piece> pieces_;
  std::size_t at_ = 0;
  std::vector<SqlName> found_;
};

}  // namespace

std::vector<SqlName> written_tables(std::string_view text, const SqlSyntax& syntax) {
  return Finder(pieces_of(text, syntax)).find();
}

}  // namespace once
