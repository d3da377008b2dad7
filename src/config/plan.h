// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/pipeline.h>
#include <once/strategies.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/secrets.h"

namespace once {

// A pipeline as it is written in a file: what `once run` reads. All of it is plain values; that
// the parts fit together is found out when a Recipe is made of it. docs/run.md explains each key.

// Where something stands in the file, counted from 1.
struct Place {
  std::uint32_t line = 0;
  std::uint32_t column = 0;

  bool operator==(const Place&) const = default;
};

enum class ValueFrom : std::uint8_t {
  json,
  header,
  key,
  body,
  id,
  partition,
  offset,
  timestamp,
  constant,
  element,        // of the array that `each` names
  element_index,  // counted from 0
  result,         // of a step that reads
};
enum class ValueType : std::uint8_t {
  text,
  integer,
  number,
  decimal,
  boolean,
  bytes,
  json,
  timestamp,     // a moment, as the database keeps moments
  milliseconds,  // a moment as an integer
};

// A typed value of a message.
struct ValueRule {
  std::string name;
  ValueFrom from = ValueFrom::json;
  std::string field = {};  // JSON pointer, name of a header, or the constant itself
  std::size_t step = 0;    // of a result: which step reads it ...
  std::size_t column = 0;  // ... and in which column
  ValueType type = ValueType::text;
  bool nullable = false;                     // absent or null is null, and no fault
  std::optional<std::string> fallback = {};  // of an absent one
  Place place = {};
};

// A value by its name.
struct ValueRef {
  std::string value;
  Place place = {};
};
struct ColumnRef {
  std::string column;
  ValueRef use;
};

// What must be true of a message for a step, an emit or the whole pipeline: a tree whose leaves
// test one value each.
struct WhenRule {
  enum class Kind : std::uint8_t {
    all,
    any,
    negation,
    is,  // one of the operands
    exists,
    missing,
    below,
    at_most,
    above,
    at_least,
    prefix,  // begins with one of the operands
  };

  Kind kind = Kind::all;
  Place place = {};
  std::vector<WhenRule> parts = {};        // of all, any and negation
  ValueRef ref = {};                       // of a test
  std::vector<std::string> operands = {};  // of a test, as the file has them
};

struct SqlStep {
  std::string statement;
  std::int64_t rows = -1;  // -1: any number
  Outcome otherwise = {};
  std::size_t number = 0;           // which step it is
  std::vector<ValueRef> into = {};  // the values that are read, one for each column
};
struct UniqueStep {
  std::string table;
  std::vector<ColumnRef> key;
  std::vector<ColumnRef> set;
  Outcome present = {};
};
struct VersionStep {
  std::string table;
  std::vector<ColumnRef> key;
  ValueRef expected;
  std::vector<ColumnRef> set;
  Outcome contended = {};
  Outcome missing = {};
};
struct StateStep {
  std::string table;
  std::vector<ColumnRef> key;
  ValueRef to;
  std::vector<ColumnRef> set;
  std::vector<std::string> states;
  std::vector<Transition> transitions;
  StateMachineOptions options;
  EarlyPolicy early;
  std::string on_reached = {};  // a statement for each state that was reached
};

// A text with values in it.
struct TemplatePiece {
  std::string literal;
  std::optional<ValueRef> use = {};  // comes after the literal
};

struct RedisStep {
  std::vector<std::vector<TemplatePiece>> words;
  std::optional<std::int64_t> reply_is = {};
  std::optional<std::int64_t> reply_min = {};
  Outcome otherwise = {};
};

struct Step {
  Place place;
  std::optional<std::string> each = {};  // once for each element of the array at this pointer
  std::optional<WhenRule> when = {};
  std::variant<SqlStep, UniqueStep, VersionStep, StateStep, RedisStep> action = {};
};

// Where messages go.
struct EmitTarget {
  Place place = {};
  std::string to = {};           // a URL
  std::string destination = {};  // its name in the outbox: the same as long as the file is
};

struct EmitRule : EmitTarget {
  std::optional<std::string> each = {};  // as in a step
  std::optional<WhenRule> when = {};
  std::vector<ValueRef> id = {};
  std::optional<ValueRef> key = {};
  std::optional<ValueRef> body = {};          // its bytes as they are ...
  std::vector<TemplatePiece> json_body = {};  // ... or a JSON object
  std::vector<std::pair<std::string, ValueRef>> headers = {};
  bool passes_headers = false;                   // those of the cause ...
  std::vector<std::string> passed_headers = {};  // ... with these names; empty: all
  bool is_tombstone = false;                     // has no body
  std::optional<ValueRef> timestamp = {};        // instead of that of the cause
};

// An emit whose destination is chosen by a value is one EmitRule for each choice. A message for
// which this holds has none, and is parked.
struct UndirectedRule {
  Place place;
  std::optional<std::string> each = {};
  std::optional<WhenRule> when = {};
  ValueRef ref = {};  // the value that chooses
};

// What `${NAME}` stands for, a variable of the environment, and `${file:PATH}`, what a file holds
// (its name here is "file:PATH"); unset if there is none.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

struct Plan {
  std::string file;       // for errors
  std::string name = {};  // of a [[pipeline]]; empty: the file is one pipeline
  std::string source_url;
  std::string store_url;
  PipelineOptions options;
  std::optional<WhenRule> source_when = {};  // is part of `options.wanted`
  std::vector<ValueRule> values;
  std::vector<Step> steps;
  std::vector<EmitRule> emits;
  std::vector<UndirectedRule> undirected;
  std::optional<EmitTarget> park = {};  // gets a copy of each parked message
  std::string relay_name;
  std::map<std::string, std::string> variables;  // those that were used, with their values

  // A place for people: file, line and column; only the file where the place is not known.
  [[nodiscard]] std::string text_of(Place place) const;

  // An error that says where in the file. The remedy is always `stop`.
  [[nodiscard]] Error error_at(Place place, std::string_view tag, std::string_view text) const;

  // All destinations, each once.
  [[nodiscard]] std::vector<EmitTarget> destinations() const;

  // Whether a step may put a message off until later.
  bool may_put_off() const;

  // What must not be shown: values that came from the environment, and passwords of URLs.
  void teach(Secrets& secrets) const;
};

// A description is a small file, and so is a secret.
constexpr std::size_t plan_bytes_max = 1 << 20;
constexpr std::size_t plans_max = 64;
constexpr std::size_t secret_bytes_max = 64 << 10;

// Reads a file's text: a list of pipelines, [[pipeline]], or the keys of a single one. Scopes and
// names differ. Unknown keys, wrong types and values out of range are errors with the tag "config"
// that say where; nothing is opened.
[[nodiscard]] Result<std::vector<Plan>> parse_plans(std::string_view text, const std::string& file,
                                                    const Environment& environment);

}  // namespace once
