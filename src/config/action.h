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
  std::size_t parameters = 0;
};

// One step, ready to be run: its names are resolved. Never changes.
class Action {
 public:
  virtual ~Action() = default;

  // Unset: the next step may go on. An outcome ends the message.
  [[nodiscard]] virtual Result<std::optional<Outcome>> run(MessageValues& values,
                                                           Transaction& transaction) const = 0;
  virtual std::vector<Probe> probes() const = 0;
  // Whether the store takes it, without a message; the transaction is never committed.
  [[nodiscard]] virtual Status try_in(Transaction&) const { return {}; }
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
