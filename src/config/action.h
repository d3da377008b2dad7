// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/handler.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/message_values.h"
#include "config/plan.h"

namespace once {

// Finds the place of a value by its name; a name that no value has is an error.
using Resolve = std::function<Result<std::size_t>(const ValueRef&)>;

// A statement by which the database can be asked whether it knows what an action needs.
struct Probe {
  std::string statement;
  // The values that its parameters are; unset: a text of the action itself.
  std::vector<std::optional<std::size_t>> parameters = {};
  // The values that its columns are written with; those behind them belong to the action itself.
  std::vector<std::size_t> written = {};
  std::optional<std::size_t> columns = {};  // that its rows must have
};

// One step, ready to be run: its names are resolved. Never changes.
class Action {
 public:
  virtual ~Action() = default;

  // Unset: the next step may go on. An outcome ends the message.
  [[nodiscard]] virtual Result<std::optional<Outcome>> run(MessageValues& values,
                                                           Transaction& transaction) const = 0;
  virtual std::vector<Probe> probes() const { return {}; }
  // The words of a command, without what comes from a message; none: it is not a command.
  virtual std::vector<std::string> command() const { return {}; }
};

// Errors of all of these have the tag "config" or "sql" and do not yet say where in the file.
[[nodiscard]] Result<std::unique_ptr<Action>> make_action(const SqlStep& step,
                                                          const Resolve& resolve,
                                                          SqlDialect dialect);
[[nodiscard]] Result<std::unique_ptr<Action>> make_action(const UniqueStep& step,
                                                          const Resolve& resolve,
                                                          SqlDialect dialect);
[[nodiscard]] Result<std::unique_ptr<Action>> make_action(const VersionStep& step,
                                                          const Resolve& resolve,
                                                          SqlDialect dialect);
[[nodiscard]] Result<std::unique_ptr<Action>> make_action(const StateStep& step,
                                                          const Resolve& resolve,
                                                          SqlDialect dialect);
[[nodiscard]] Result<std::unique_ptr<Action>> make_action(const RedisStep& step,
                                                          const Resolve& resolve,
                                                          SqlDialect dialect);

}  // namespace once
