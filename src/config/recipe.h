// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/handler.h>
#include <once/store.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "config/action.h"
#include "config/plan.h"
#include "config/predicate.h"
#include "model/store_language.h"

namespace once {

class ValueNames;

// What a message does, ready to be run: the steps of a plan with all names resolved. Never changes,
// so that all lanes share it.
//
// The steps of one message run in the order of the file, and before those of the next message:
// statements of different messages need not commute (one inserts the row that another updates), and
// only the user could know that they do. It is fast because plain SQL waits for no answer: the
// store sends the statements of a whole batch together, and those with the same text, one after
// another when there is one step, as it does best.
class Recipe {
 public:
  // A name that no value has and a value that nobody uses are errors with the tag "config", a
  // statement that cannot be one is an error with the tag "sql"; both say where in the file.
  [[nodiscard]] static Result<std::shared_ptr<const Recipe>> make(Plan plan,
                                                                  const StoreLanguage& language);

  // The new messages of a batch. What goes wrong with a message names it in the error.
  [[nodiscard]] Status run(std::span<Work> batch, Transaction& transaction) const;

  // Lets the store look at every statement, table, column and command without running anything, and
  // compares types. What can never run is an error that says where in the file. Answers what could
  // not be looked at, for people.
  [[nodiscard]] Result<std::vector<std::string>> check(Store& store) const;

  bool needs_sql() const { return needs_sql_; }
  bool needs_key_value() const { return needs_keys_; }
  const Plan& plan() const { return plan_; }

 private:
  // A step and a message to emit, with places of values instead of names.
  struct Part {
    Place place;
    std::optional<std::string> each;
    std::optional<Predicate> when;
    std::unique_ptr<Action> action;
  };
  struct Emit {
    std::optional<std::string> each;
    std::optional<Predicate> when;
    std::string destination;
    std::vector<std::size_t> id;
    std::optional<std::size_t> key;
    std::optional<std::size_t> body;
    std::vector<std::pair<std::string, std::optional<std::size_t>>> json_body;
    std::vector<std::pair<std::string, std::size_t>> headers;
    std::optional<std::size_t> timestamp;
    bool is_tombstone = false;
    bool passes_headers = false;
    std::vector<std::string> passed_headers;
  };
  struct Undirected {
    std::optional<std::string> each;
    std::optional<Predicate> when;
    std::size_t value = 0;
    std::uint32_t line = 0;
  };
  explicit Recipe(SqlDialect dialect) : dialect_(dialect) {}

  static Result<Emit> resolved(const EmitRule& rule, ValueNames& names);
  Result<std::optional<Outcome>> run_steps(MessageValues& values, Transaction& transaction,
                                           bool& wrote) const;
  Status run_emits(MessageValues& values, Transaction& transaction, bool& wrote) const;
  static Status conclude(Work& work, Result<Outcome> done, bool after_writes);
  Status run_one(Work& work, Transaction& transaction) const;
  Status run_reading(std::span<Work> batch, SqlTransaction& transaction) const;
  static void pass_headers(const Emit& emit, const Delivery& cause, Message& message);
  Result<Message> message_of(const Emit& emit, MessageValues& values) const;
  // Empty, or why it could not be looked at.
  Result<std::string> look_at(const Probe& probe, StatementChecker& checker) const;
  Status check_types(const Probe& probe, const StatementShape& shape) const;

  const SqlDialect dialect_;
  Plan plan_;
  std::vector<Part> parts_;
  std::vector<Emit> emits_;
  std::vector<Undirected> undirected_;
  bool needs_sql_ = false;
  bool needs_keys_ = false;
  bool reads_rows_ = false;
};

// The handler that runs a recipe, and keeps it.
[[nodiscard]] Handler handler_of(std::shared_ptr<const Recipe> recipe);

}  // namespace once
