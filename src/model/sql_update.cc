// SPDX-License-Identifier: Apache-2.0
#include "model/sql_update.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <span>
#include <utility>

namespace once {
namespace {

enum class Kind : std::uint8_t { word, name, number, text, parameter, symbol };

struct Token {
  Kind kind = Kind::symbol;
  std::string text;
  std::string folded;   // a word or name as the server compares it
  bool spaced = false;  // there is a gap before it

  bool is(Kind other, std::string_view what) const { return kind == other && folded == what; }
};

template <std::size_t count>
bool is_one_of(std::string_view word, const std::array<std::string_view, count>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

constexpr std::array<std::string_view, 12> keywords{"and",  "or",   "not",  "is",  "null", "case",
                                                    "when", "then", "else", "end", "true", "false"};

// Of the same arguments they make the same result, and nothing else.
constexpr std::array<std::string_view, 4> functions{"coalesce", "greatest", "least", "abs"};

// What could be taken for the name of a column, because there is one that is called so and always
// quoted, and is something else.
constexpr std::array<std::string_view, 51> refused_words{
    "select",       "from",          "returning", "limit",  "order",     "join",    "default",
    "distinct",     "any",           "all",       "some",   "exists",    "in",      "like",
    "between",      "interval",      "collate",   "user",   "localtime", "values",  "using",
    "row",          "array",         "div",       "mod",    "xor",       "binary",  "rlike",
    "regexp",       "ilike",         "similar",   "escape", "overlaps",  "cast",    "convert",
    "over",         "union",         "for",       "set",    "where",     "update",  "as",
    "isnull",       "notnull",       "unknown",   "at",     "rownum",    "sysdate", "on",
    "session_user", "localtimestamp"};

constexpr std::array<std::string_view, 11> operators{"+", "-", "*",  "/",  "%", "=",
                                                     "<", ">", "<=", ">=", "<>"};

// Whatever its letters: a server may not care.
bool is_ours(std::string_view name) { return lower(name).starts_with("once_"); }

bool is_refused(std::string_view word) {
  return is_one_of(word, refused_words) || word.starts_with("current_") ||
         word.starts_with("utc_") || word.starts_with("system_");
}

// The statement as tokens; none if there is something in it that we do not know.
class Tokenizer {
 public:
  explicit Tokenizer(const SqlSyntax& syntax) : syntax_(syntax) {}

  void take(SqlPiece piece, std::string_view text) {
    if (piece == SqlPiece::other && std::isspace(static_cast<unsigned char>(text.front())) != 0) {
      spaced_ = true;
      return;
    }
    switch (piece) {
      case SqlPiece::quoted: take_quoted(text); break;
      case SqlPiece::word: take_word(text); break;
      case SqlPiece::parameter: push(Kind::parameter, text, {}); break;
      case SqlPiece::other: take_symbol(text); break;
      case SqlPiece::unclosed:
      case SqlPiece::question: known_ = false;
    }
    spaced_ = false;
  }

  std::optional<std::vector<Token>> tokens() const {
    if (!known_) return std::nullopt;
    return tokens_;
  }

 private:
  void push(Kind kind, std::string_view text, std::string folded) {
    tokens_.push_back({kind, std::string(text), std::move(folded), spaced_});
  }
  // The token that this one touches.
  Token* touched() { return spaced_ || tokens_.empty() ? nullptr : &tokens_.back(); }

  void take_quoted(std::string_view text) {
    const char quote = text.front();
    Token* const before = touched();
    if (quote == (syntax_.backticks ? '`' : '"')) {
      const std::string_view name = text.substr(1, text.size() - 2);
      known_ = known_ && (before == nullptr || before->kind == Kind::symbol) &&
               name.find(quote) == std::string_view::npos;
      push(Kind::name, text, syntax_.backticks ? lower(name) : std::string(name));
    } else if (quote == '\'' || quote == '"') {
      known_ = known_ && (before == nullptr || before->kind == Kind::symbol);
      push(Kind::text, text, {});
    } else {
      known_ = false;
    }
  }

  void take_word(std::string_view text) {
    const bool is_number = std::isdigit(static_cast<unsigned char>(text.front())) != 0;
    Token* const before = touched();
    const bool is_ascii =
        std::all_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x80; });
    known_ = known_ && is_ascii;
    if (!is_number) {
      known_ = known_ && (before == nullptr || before->kind == Kind::symbol);
      push(Kind::word, text, lower(text));
    } else if (before != nullptr && before->text == "." && tokens_.size() > 1 &&
               tokens_[tokens_.size() - 2].kind == Kind::number && !before->spaced) {
      tokens_.pop_back();
      tokens_.back().text += '.' + std::string(text);
    } else {
      push(Kind::number, text, {});
    }
  }

  void take_symbol(std::string_view text) {
    constexpr std::string_view operator_letters = "+-*/%|<>=!";
    constexpr std::string_view alone = "(),.";
    Token* const before = touched();
    const bool is_operator = operator_letters.find(text) != std::string_view::npos;
    known_ = known_ && (is_operator || alone.find(text) != std::string_view::npos);
    if (is_operator && before != nullptr && before->kind == Kind::symbol &&
        operator_letters.find(before->text.front()) != std::string_view::npos) {
      before->text += text;
      before->folded = before->text;
    } else {
      push(Kind::symbol, text, std::string(text));
    }
  }

  const SqlSyntax& syntax_;
  std::vector<Token> tokens_;
  bool known_ = true;
  bool spaced_ = false;
};

using Tokens = std::span<const Token>;

// Cut at the parameters. These get room: one may touch a word.
std::vector<std::string> pieces_of(Tokens tokens) {
  std::vector<std::string> pieces(1);
  for (const Token& token : tokens) {
    if (token.kind == Kind::parameter)
      pieces.emplace_back();
    else
      pieces.back() += (token.spaced ? " " : "") + token.text;
  }
  return pieces;
}

std::size_t parameters_in(Tokens tokens) {
  return static_cast<std::size_t>(std::count_if(
      tokens.begin(), tokens.end(), [](const Token& t) { return t.kind == Kind::parameter; }));
}

class Parser {
 public:
  Parser(Tokens tokens, const SqlSyntax& syntax) : tokens_(tokens), syntax_(syntax) {}

  std::optional<KeyedUpdate> parse() {
    if (!take(Kind::word, "update") || !take_table() || !take(Kind::word, "set"))
      return std::nullopt;
    const std::size_t set = at_;
    if (!take_assignments()) return std::nullopt;
    const std::size_t where = at_;
    if (!take(Kind::word, "where") || !take_conditions()) return std::nullopt;
    std::erase_if(made_.keys, [this](const auto& key) { return is_assigned(key.column); });
    if (made_.keys.empty()) return std::nullopt;
    made_.set_pieces = pieces_of(tokens_.subspan(set, where - set));
    made_.where_pieces = pieces_of(tokens_.subspan(where + 1));
    return made_;
  }

 private:
  enum class Part : std::uint8_t { set, where };

  bool is_assigned(const std::string& column) const { return made_.assigned.contains(column); }

  bool take(Kind kind, std::string_view what) {
    if (at_ == tokens_.size() || !tokens_[at_].is(kind, what)) return false;
    ++at_;
    return true;
  }

  // A name of a table or column; null if there is none.
  const Token* take_name() {
    if (at_ == tokens_.size()) return nullptr;
    const Token& token = tokens_[at_];
    const bool is_word =
        token.kind == Kind::word && !is_one_of(token.folded, keywords) && !is_refused(token.folded);
    if ((token.kind != Kind::name && !is_word) || is_ours(token.folded)) return nullptr;
    ++at_;
    return &token;
  }

  bool take_table() {
    do {
      const Token* const name = take_name();
      if (name == nullptr) return false;
      const bool is_quoted = name->kind == Kind::name;
      made_.path.push_back(is_quoted ? name->text.substr(1, name->text.size() - 2) : name->text);
      made_.table += (made_.path.size() > 1 ? "." : "") + name->text;
    } while (take(Kind::symbol, "."));
    return made_.path.size() <= 2;
  }

  bool take_assignments() {
    std::vector<std::pair<std::string, std::set<std::string>>> all;
    do {
      const Token* const column = take_name();
      if (column == nullptr || !take(Kind::symbol, "=")) return false;
      reads_.clear();
      const auto expression = take_expression(Part::set);
      if (!expression || !made_.assigned.insert(column->folded).second) return false;
      const bool is_plain = expression->size() == 1 && reads_.empty();
      if (!is_plain) made_.computed.insert(column->folded);
      made_.is_plain.insert(made_.is_plain.end(), parameters_in(*expression), is_plain);
      made_.read.insert(reads_.begin(), reads_.end());
      all.emplace_back(column->folded, reads_);
    } while (take(Kind::symbol, ","));
    for (const auto& one : all)
      for (const std::string& column : one.second)
        made_.reads_assigned = made_.reads_assigned || (column != one.first && is_assigned(column));
    return true;
  }

  bool take_conditions() {
    do {
      reads_.clear();
      const std::size_t number = made_.is_plain.size();
      const auto condition = take_expression(Part::where);
      if (!condition) return false;
      made_.is_plain.insert(made_.is_plain.end(), parameters_in(*condition), false);
      made_.read.insert(reads_.begin(), reads_.end());
      const bool compares_one = condition->size() == 3 && (*condition)[1].is(Kind::symbol, "=") &&
                                reads_.size() == 1 && made_.is_plain.size() == number + 1;
      if (compares_one) made_.keys.push_back({*reads_.begin(), number});
    } while (take(Kind::word, "and"));
    return at_ == tokens_.size();
  }

  // Up to what ends it, outside of brackets and CASE.
  std::optional<Tokens> take_expression(Part part) {
    const std::size_t begin = at_;
    int brackets = 0;
    int cases = 0;
    for (; at_ < tokens_.size(); ++at_) {
      const Token& token = tokens_[at_];
      const bool is_outside = brackets == 0 && cases == 0;
      if (is_outside && ends(token, part)) break;
      if (!is_allowed(token) || (is_outside && token.is(Kind::word, "or") && part == Part::where))
        return std::nullopt;
      if (token.is(Kind::symbol, ",") && brackets == 0) return std::nullopt;
      brackets += token.is(Kind::symbol, "(") ? 1 : token.is(Kind::symbol, ")") ? -1 : 0;
      cases += token.is(Kind::word, "case") ? 1 : token.is(Kind::word, "end") ? -1 : 0;
      if (brackets < 0 || cases < 0) return std::nullopt;
    }
    if (brackets != 0 || cases != 0 || at_ == begin) return std::nullopt;
    return tokens_.subspan(begin, at_ - begin);
  }

  static bool ends(const Token& token, Part part) {
    if (part == Part::where) return token.is(Kind::word, "and");
    return token.is(Kind::symbol, ",") || token.is(Kind::word, "where");
  }

  // Remembers which columns are read.
  bool is_allowed(const Token& token) {
    const bool is_called = at_ + 1 < tokens_.size() && tokens_[at_ + 1].is(Kind::symbol, "(");
    switch (token.kind) {
      case Kind::number:
      case Kind::text:
      case Kind::parameter: return !is_called;
      case Kind::symbol: return is_known(token.text);
      case Kind::word:
        if (is_one_of(token.folded, keywords)) return true;
        if (is_called) return is_one_of(token.folded, functions);
        if (is_refused(token.folded)) return false;
        break;
      case Kind::name:
        if (is_called) return false;
    }
    reads_.insert(token.folded);
    return !is_ours(token.folded);
  }

  // In MySQL || is another OR.
  bool is_known(std::string_view symbol) const {
    if (symbol == "||") return !syntax_.backticks;
    return symbol == "(" || symbol == ")" || symbol == "," || symbol == "!=" ||
           is_one_of(symbol, operators);
  }

  const Tokens tokens_;
  const SqlSyntax& syntax_;
  std::size_t at_ = 0;
  std::set<std::string> reads_;
  KeyedUpdate made_;
};

std::string joined(const std::vector<std::string>& pieces, std::size_t first,
                   const KeyedUpdate::NameOf& name_of) {
  std::string text = pieces.front();
  for (std::size_t i = 1; i < pieces.size(); ++i)
    text += ' ' + name_of(first + i - 1) + ' ' + pieces[i];
  return text;
}

}  // namespace

std::string KeyedUpdate::set_with(const NameOf& name_of) const {
  return joined(set_pieces, 0, name_of);
}

std::string KeyedUpdate::where_with(const NameOf& name_of) const {
  return joined(where_pieces, set_pieces.size() - 1, name_of);
}

std::optional<KeyedUpdate> keyed_update(std::string_view statement, const SqlSyntax& syntax) {
  if (first_word(statement) != "update") return std::nullopt;
  Tokenizer tokenizer(syntax);
  split_sql(statement, syntax,
            [&](SqlPiece piece, std::string_view text) { tokenizer.take(piece, text); });
  const auto tokens = tokenizer.tokens();
  if (!tokens) return std::nullopt;
  return Parser(*tokens, syntax).parse();
}

bool may_change_tables(std::string_view statement) {
  constexpr std::array<std::string_view, 10> harmless{"select",    "insert", "update", "delete",
                                                      "replace",   "with",   "begin",  "commit",
                                                      "savepoint", "release"};
  return !is_one_of(first_word(statement), harmless);
}

}  // namespace once
