// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <limits>
#include <utility>

#include "config/plan_parts.h"

namespace once {
namespace {

constexpr std::array<std::string_view, 11> step_keys{"sql",    "rows",    "otherwise",     "into",
                                                     "unique", "version", "state_machine", "redis",
                                                     "reply",  "each",    "when"};
constexpr std::array<std::string_view, 1> reply_keys{"at_least"};
constexpr std::int64_t reply_max = 1LL << 53;  // scripts of Redis count in doubles
constexpr std::array<std::string_view, 4> unique_keys{"table", "key", "set", "present"};
constexpr std::array<std::string_view, 6> version_keys{"table", "key",       "expected",
                                                       "set",   "contended", "missing"};
constexpr std::array<std::string_view, 10> state_keys{
    "table", "key", "to", "set", "column", "states", "transitions", "hold", "early", "on_reached"};
constexpr std::array<std::string_view, 2> early_keys{"attempts", "after"};
constexpr std::array<std::string_view, 4> reaction_words{"retry", "park", "reject", "stale"};
constexpr std::array<std::string_view, 7> reaction_keys{"retry", "park",     "reject", "stale",
                                                        "later", "attempts", "reason"};
constexpr std::int64_t later_attempts_max = 1'000'000;

Outcome outcome_of_word(std::size_t word, std::string reason) {
  switch (word) {
    case 0: return retry(std::move(reason));
    case 1: return parked(std::move(reason));
    case 2: return rejected(std::move(reason));
    default: return rejected("stale: " + reason);
  }
}

// { later = "5m", attempts = 12, reason = "the rate is not there yet" }
Result<Outcome> parse_later(const TomlTable& reaction, std::string reason) {
  Outcome outcome = later(std::move(reason), *ONCE_TRY(reaction.duration_ms("later")));
  if (const auto attempts = ONCE_TRY(reaction.integer("attempts", 1, later_attempts_max)))
    outcome.attempts_max = static_cast<std::uint32_t>(*attempts);
  if (auto text = ONCE_TRY(reaction.text("reason"))) outcome.detail = std::move(*text);
  return outcome;
}

// "park", or { park = "no such account" }.
Result<std::optional<Outcome>> parse_reaction(const TomlTable& step, std::string_view key,
                                              const std::string& reason) {
  if (!step.has(key)) return std::nullopt;
  if (step.native().get(key)->is_string())
    return outcome_of_word(*ONCE_TRY(step.word(key, reaction_words)), reason);
  const auto table = ONCE_TRY(step.table(key, reaction_keys));
  std::optional<Outcome> found;
  if (table->has("later"))
    found = ONCE_TRY(parse_later(*table, reason));
  else if (table->has("attempts") || table->has("reason"))
    return step.refuse(key, "has attempts and a reason only with later: { later = \"5m\", ... }");
  for (std::size_t word = 0; word < reaction_words.size(); ++word) {
    const auto text = ONCE_TRY(table->text(reaction_words[word]));
    if (!text) continue;
    if (found) return step.refuse(key, "says two things; drop one");
    found = outcome_of_word(word, *text);
  }
  if (!found)
    return step.refuse(key, "is retry, park, reject or stale with a reason, or later with a delay");
  return found;
}

Result<std::vector<ColumnRef>> parse_columns(const TomlTable& step, std::string_view key,
                                             bool required, std::vector<ValueRule>& values) {
  std::vector<ColumnRef> columns;
  const toml::table* table = ONCE_TRY(step.free_table(key));
  if (table != nullptr)
    for (const auto& [column, node] : *table) {
      ValueRef use = ONCE_TRY(ref_of(step.file(), node, "a column", values));
      columns.push_back({std::string(column.str()), std::move(use)});
    }
  if (columns.empty() && required)
    return step.refuse(key, "is missing: columns and the values they have, { order_id = \"id\" }");
  return columns;
}

Result<ValueRef> parse_ref(const TomlTable& step, std::string_view key,
                           std::vector<ValueRule>& values) {
  if (!step.has(key)) return step.refuse(key, "is missing: it is the name of a value of [values]");
  return ref_of(step.file(), *step.native().get(key), key, values);
}

Result<SqlStep> parse_sql(const TomlTable& table, std::size_t number,
                          std::vector<ValueRule>& values) {
  SqlStep step;
  // Nothing of the environment gets into a statement: what varies is a parameter.
  step.statement = *ONCE_TRY(table.literal_text("sql"));
  if (step.statement.empty()) return table.refuse("sql", "is empty");
  const auto rows = ONCE_TRY(table.integer("rows", 0, std::numeric_limits<std::int32_t>::max()));
  step.number = number;
  step.into = ONCE_TRY(parse_into(table, number, values));
  if (!step.into.empty()) {
    if (rows && *rows != 1) return table.refuse("rows", "is 1 where into reads a row");
    if (table.has("each")) return table.refuse("into", "reads one row; drop each");
    step.rows = 1;
  }
  if (rows) step.rows = *rows;
  const auto reason = fmt::format("the statement at line {} touched another number of rows than {}",
                                  table.place("sql").line, step.rows);
  const auto otherwise = ONCE_TRY(parse_reaction(table, "otherwise", reason));
  if (otherwise && step.rows < 0)
    return table.refuse("otherwise", "needs rows: how many rows the statement must touch");
  step.otherwise = otherwise.value_or(parked(reason));
  return step;
}

// "points:{account}", ":points"; doubled, a brace and a leading colon stand for themselves.
Result<std::vector<TemplatePiece>> parse_word(const TomlTable& step, std::string_view text,
                                              Place place) {
  std::vector<TemplatePiece> pieces;
  std::string literal;
  const auto add_value = [&](std::string_view name) {
    pieces.push_back({std::exchange(literal, {}), ValueRef{std::string(name), place}});
  };
  if (text.starts_with("::")) {
    text.remove_prefix(1);
  } else if (text.starts_with(':') && is_value_name(text.substr(1))) {
    add_value(text.substr(1));
    return pieces;
  }
  while (!text.empty()) {
    const char c = text[0];
    if ((c == '{' || c == '}') && text.size() > 1 && text[1] == c) {
      literal += c;
      text.remove_prefix(2);
      continue;
    }
    const std::size_t end = text.find('}');
    if (c == '{' && (end == std::string_view::npos || !is_value_name(text.substr(1, end - 1))))
      return step.refuse("redis", "names a value as {name}; write {{ for a brace");
    if (c == '{') {
      add_value(text.substr(1, end - 1));
      text.remove_prefix(end + 1);
      continue;
    }
    literal += c;
    text.remove_prefix(1);
  }
  pieces.push_back({std::move(literal), std::nullopt});
  return pieces;
}

Result<RedisStep> parse_redis(const TomlTable& table) {
  RedisStep step;
  const toml::array* words = table.native()["redis"].as_array();
  if (words == nullptr || words->empty())
    return table.refuse(
        "redis", "is a command, for example [\"INCRBY\", \"points:{account}\", \":points\"]");
  // Nothing of the environment gets into a command, as into a statement.
  for (const toml::node& word : *words) {
    const auto text = word.is_string() ? std::optional(word.as_string()->get())
                                       : ONCE_TRY(scalar_of(table.file(), word));
    if (!text) return table.refuse("redis", "is a list of strings and numbers");
    step.words.push_back(ONCE_TRY(parse_word(table, *text, place_of(word))));
  }
  if (table.has("reply") && table.native().get("reply")->is_table()) {
    const auto reply = ONCE_TRY(table.table("reply", reply_keys));
    step.reply_min = ONCE_TRY(reply->integer("at_least", -reply_max, reply_max));
  } else {
    step.reply_is = ONCE_TRY(table.integer("reply", -reply_max, reply_max));
  }
  const auto reason = fmt::format("the command at line {} had another reply than expected",
                                  table.place("redis").line);
  const auto otherwise = ONCE_TRY(parse_reaction(table, "otherwise", reason));
  if (otherwise && !step.reply_is && !step.reply_min)
    return table.refuse("otherwise", "needs reply: what the command must answer");
  step.otherwise = otherwise.value_or(parked(reason));
  return step;
}

Result<UniqueStep> parse_unique(const TomlTable& table, std::vector<ValueRule>& values) {
  UniqueStep step;
  step.table = ONCE_TRY(table.required_text("table", "the name of the table"));
  step.key = ONCE_TRY(parse_columns(table, "key", true, values));
  step.set = ONCE_TRY(parse_columns(table, "set", false, values));
  const auto reason = fmt::format("{} has a row with this key", step.table);
  step.present =
      ONCE_TRY(parse_reaction(table, "present", reason)).value_or(rejected("stale: " + reason));
  return step;
}

Result<VersionStep> parse_version(const TomlTable& table, std::vector<ValueRule>& values) {
  VersionStep step;
  step.table = ONCE_TRY(table.required_text("table", "the name of the table"));
  step.key = ONCE_TRY(parse_columns(table, "key", true, values));
  step.expected = ONCE_TRY(parse_ref(table, "expected", values));
  step.set = ONCE_TRY(parse_columns(table, "set", true, values));
  const auto contended = fmt::format("the row of {} has another version", step.table);
  step.contended = ONCE_TRY(parse_reaction(table, "contended", contended))
                       .value_or(rejected("stale: " + contended));
  const auto missing = fmt::format("{} has no such row", step.table);
  step.missing = ONCE_TRY(parse_reaction(table, "missing", missing)).value_or(parked(missing));
  return step;
}

// "created -> paid", and chains of these.
Result<std::vector<Transition>> parse_transitions(const TomlTable& table) {
  std::vector<Transition> transitions;
  for (const std::string& chain : ONCE_TRY(table.texts("transitions"))) {
    std::vector<std::string> states;
    for (std::string_view rest = chain; !rest.empty();) {
      const std::size_t arrow = rest.find("->");
      std::string_view state = rest.substr(0, arrow);
      while (state.starts_with(' ')) state.remove_prefix(1);
      while (state.ends_with(' ')) state.remove_suffix(1);
      states.emplace_back(state);
      rest = arrow == std::string_view::npos ? std::string_view() : rest.substr(arrow + 2);
    }
    if (states.size() < 2)
      return table.refuse("transitions",
                          fmt::format("are written \"created -> paid\", not \"{}\"", chain));
    for (std::size_t i = 1; i < states.size(); ++i)
      transitions.push_back({states[i - 1], states[i]});
  }
  return transitions;
}

Result<StateStep> parse_state_machine(const TomlTable& table, std::vector<ValueRule>& values) {
  StateStep step;
  step.table = ONCE_TRY(table.required_text("table", "the name of the table"));
  step.key = ONCE_TRY(parse_columns(table, "key", true, values));
  step.to = ONCE_TRY(parse_ref(table, "to", values));
  step.set = ONCE_TRY(parse_columns(table, "set", false, values));
  step.states = ONCE_TRY(table.texts("states"));
  step.transitions = ONCE_TRY(parse_transitions(table));
  if (const auto column = ONCE_TRY(table.text("column"))) step.options.column = *column;
  if (const auto hold = ONCE_TRY(table.text("hold"))) step.options.hold_table = *hold;
  if (const auto early = ONCE_TRY(table.table("early", early_keys))) {
    if (const auto attempts = ONCE_TRY(early->integer("attempts", 1, 1'000'000)))
      step.early.attempts_max = static_cast<std::uint32_t>(*attempts);
    if (const auto after = ONCE_TRY(early->duration_ms("after"))) step.early.after_ms = *after;
  }
  if (const auto statement = ONCE_TRY(table.literal_text("on_reached")))
    step.on_reached = *statement;
  return step;
}

Status check_belonging(const TomlTable& table) {
  const bool is_sql = table.has("sql");
  const bool is_redis = table.has("redis");
  if (!is_sql && (table.has("rows") || table.has("into")))
    return table.file().refuse(table.place(), "rows and into belong to sql");
  if (!is_redis && table.has("reply"))
    return table.file().refuse(table.place(), "reply belongs to redis");
  if (!is_sql && !is_redis && table.has("otherwise"))
    return table.file().refuse(table.place(), "otherwise belongs to sql and redis");
  return {};
}

Result<Step> parse_step(const TomlTable& table, std::size_t number,
                        std::vector<ValueRule>& values) {
  Step step;
  step.place = table.place();
  const int actions = int{table.has("sql")} + int{table.has("unique")} + int{table.has("version")} +
                      int{table.has("state_machine")} + int{table.has("redis")};
  if (actions != 1)
    return table.file().refuse(
        step.place,
        "a step of [[do]] does one thing: sql, unique, version, state_machine or redis");
  ONCE_TRY(check_belonging(table));
  step.each = ONCE_TRY(parse_each(table));
  step.when = ONCE_TRY(parse_when(table, values));
  if (table.has("sql")) {
    step.place = table.place("sql");
    step.action = ONCE_TRY(parse_sql(table, number, values));
  } else if (table.has("redis")) {
    step.place = table.place("redis");
    step.action = ONCE_TRY(parse_redis(table));
  } else if (const auto unique = ONCE_TRY(table.table("unique", unique_keys))) {
    step.action = ONCE_TRY(parse_unique(*unique, values));
  } else if (const auto version = ONCE_TRY(table.table("version", version_keys))) {
    step.action = ONCE_TRY(parse_version(*version, values));
  } else {
    const auto machine = ONCE_TRY(table.table("state_machine", state_keys));
    step.action = ONCE_TRY(parse_state_machine(*machine, values));
  }
  return step;
}

}  // namespace

Result<std::vector<Step>> parse_steps(const TomlTable& root, std::vector<ValueRule>& values) {
  std::vector<Step> steps;
  for (const TomlTable& table : ONCE_TRY(root.tables("do", step_keys)))
    steps.push_back(ONCE_TRY(parse_step(table, steps.size(), values)));
  return steps;
}

}  // namespace once
