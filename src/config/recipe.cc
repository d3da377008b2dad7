// SPDX-License-Identifier: Apache-2.0
#include "config/recipe.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/url.h"
#include "config/message_values.h"
#include "config/value_names.h"

namespace once {

namespace {

bool runs_sql(const Step& step) {
  const auto* states = std::get_if<StateStep>(&step.action);
  return std::holds_alternative<SqlStep>(step.action) ||
         (states != nullptr && !states->on_reached.empty());
}

bool runs_command(const Step& step) { return std::holds_alternative<RedisStep>(step.action); }

// SQL is for SQL stores, and commands are for Redis.
Status check_steps_fit_store(const Plan& plan, const StoreLanguage& language) {
  for (const Step& step : plan.steps) {
    if (!language.sql && runs_sql(step))
      return fail(plan.error_at(
          step.place, "config",
          fmt::format("the store {} runs no SQL; {}use an SQL store", shown_url(plan.store_url),
                      language.redis_commands ? "write redis = [\"INCRBY\", …], or " : "")));
    if (!language.redis_commands && runs_command(step))
      return fail(plan.error_at(step.place, "config",
                                "commands of Redis need a store on Redis: store.url = "
                                "\"redis://…\""));
  }
  return {};
}

Result<std::optional<Predicate>> predicate_of(const std::optional<WhenRule>& when, const Plan& plan,
                                              ValueNames& names) {
  if (!when) return std::nullopt;
  return ONCE_TRY(Predicate::make(*when, plan, std::ref(names)));
}

// The error of a message that spoils its batch, and what to settle for it. All that the batch wrote
// is rolled back, so that nothing of it is left.
tl::unexpected<Error> blame(const Work& work, Outcome instead) {
  std::string text = instead.detail;
  return fail(
      Error{Remedy::retry, "message", std::move(text), Culprit{work.message, std::move(instead)}});
}

Result<bool> holds(const std::optional<Predicate>& when, MessageValues& values) {
  if (!when) return true;
  return when->holds(values);
}

// Once, or once for each element of an array, as the condition says; an outcome ends it.
using Repeated = std::function<Result<std::optional<Outcome>>()>;
Result<std::optional<Outcome>> repeat(const std::optional<std::string>& each,
                                      const std::optional<Predicate>& when, MessageValues& values,
                                      const Repeated& work) {
  const bool asks_each = when && when->is_about_elements();
  if (!asks_each && !ONCE_TRY(holds(when, values))) return std::nullopt;
  if (!each) return work();
  const std::size_t count = ONCE_TRY(values.open_array(*each));
  const auto run = [&]() -> Result<std::optional<Outcome>> {
    for (std::size_t i = 0; i < count; ++i) {
      ONCE_TRY(values.select_element(i));
      if (asks_each && !ONCE_TRY(holds(when, values))) continue;
      if (auto outcome = ONCE_TRY(work())) return outcome;
    }
    return std::nullopt;
  };
  auto ended = run();
  if (!ended && ended.error().remedy == Remedy::park)
    ended.error().text = values.of_element(ended.error().text);
  if (ended && *ended) **ended = values.of_element(std::move(**ended));
  values.leave_element();
  return ended;
}

bool has_to_roll_back(const Outcome& outcome, bool after_writes) {
  switch (outcome.kind) {
    case Outcome::Kind::retry:
    case Outcome::Kind::later:
    case Outcome::Kind::parked: return true;
    case Outcome::Kind::rejected: return after_writes;
    case Outcome::Kind::applied:
    case Outcome::Kind::no_effect: break;
  }
  return false;
}

}  // namespace

Result<Recipe::Emit> Recipe::resolved(const EmitRule& rule, ValueNames& names) {
  Emit made;
  made.each = rule.each;
  made.destination = rule.destination;
  for (const ValueRef& part : rule.id) made.id.push_back(ONCE_TRY(names(part)));
  if (rule.key) made.key = ONCE_TRY(names(*rule.key));
  if (rule.body) made.body = ONCE_TRY(names(*rule.body));
  for (const TemplatePiece& piece : rule.json_body) {
    std::optional<std::size_t> value;
    if (piece.use) value = ONCE_TRY(names(*piece.use));
    made.json_body.emplace_back(piece.literal, value);
  }
  for (const auto& [name, ref] : rule.headers) {
    const std::size_t value = ONCE_TRY(names(ref));
    made.headers.emplace_back(name, value);
  }
  if (rule.timestamp) made.timestamp = ONCE_TRY(names(*rule.timestamp));
  made.is_tombstone = rule.is_tombstone;
  made.passes_headers = rule.passes_headers;
  made.passed_headers = rule.passed_headers;
  return made;
}

Result<std::shared_ptr<const Recipe>> Recipe::make(Plan plan, const StoreLanguage& language) {
  ONCE_TRY(check_steps_fit_store(plan, language));
  const SqlDialect dialect = language.sql.value_or(SqlDialect::sqlite);
  std::shared_ptr<Recipe> recipe(new Recipe(dialect));
  ValueNames names(plan);
  if (plan.source_when) ONCE_TRY(predicate_of(plan.source_when, plan, names));
  const auto at = [&](Place place, Error error) {
    return fail(plan.error_at(place, error.tag, error.text));
  };
  for (const Step& step : plan.steps) {
    Part part{step.place, step.each, {}, {}};
    names.inside_each(step.each.has_value());
    names.before_step(recipe->parts_.size());
    part.when = ONCE_TRY(predicate_of(step.when, plan, names));
    auto action = std::visit(
        [&](const auto& of) { return make_action(of, std::ref(names), dialect); }, step.action);
    if (!action) return at(step.place, std::move(action).error());
    part.action = std::move(*action);
    const auto* reads = std::get_if<SqlStep>(&step.action);
    recipe->reads_rows_ = recipe->reads_rows_ || (reads != nullptr && !reads->into.empty());
    recipe->needs_keys_ = recipe->needs_keys_ || runs_command(step);
    recipe->needs_sql_ = recipe->needs_sql_ || runs_sql(step);
    recipe->parts_.push_back(std::move(part));
  }
  names.before_step(plan.steps.size());
  for (const EmitRule& rule : plan.emits) {
    names.inside_each(rule.each.has_value());
    auto emit = resolved(rule, names);
    if (!emit) return at(rule.place, std::move(emit).error());
    emit->when = ONCE_TRY(predicate_of(rule.when, plan, names));
    recipe->emits_.push_back(std::move(*emit));
  }
  for (const UndirectedRule& rule : plan.undirected) {
    names.inside_each(rule.each.has_value());
    Undirected made{.each = rule.each, .when = {}, .line = rule.place.line};
    made.when = ONCE_TRY(predicate_of(rule.when, plan, names));
    made.value = ONCE_TRY(names(rule.ref));
    recipe->undirected_.push_back(std::move(made));
  }
  ONCE_TRY(names.check_all_used());
  recipe->plan_ = std::move(plan);
  return recipe;
}

Result<std::optional<Outcome>> Recipe::run_steps(MessageValues& values, Transaction& transaction,
                                                 bool& wrote) const {
  for (const Part& part : parts_) {
    const auto work = [&]() -> Result<std::optional<Outcome>> {
      auto outcome = ONCE_TRY(part.action->run(values, transaction));
      if (!outcome) wrote = true;
      return outcome;
    };
    if (auto outcome = ONCE_TRY(repeat(part.each, part.when, values, work))) return outcome;
  }
  return std::nullopt;
}

Status Recipe::run_emits(MessageValues& values, Transaction& transaction, bool& wrote) const {
  for (const Undirected& undirected : undirected_)
    ONCE_TRY(
        repeat(undirected.each, undirected.when, values, [&]() -> Result<std::optional<Outcome>> {
          return fail_value(fmt::format("the message of line {} has no destination for \"{}\"",
                                        undirected.line,
                                        ONCE_TRY(values.text_or_empty(undirected.value))));
        }));
  for (const Emit& emit : emits_) {
    const auto work = [&]() -> Result<std::optional<Outcome>> {
      ONCE_TRY(transaction.enqueue(emit.destination, ONCE_TRY(message_of(emit, values))));
      wrote = true;
      return std::nullopt;
    };
    ONCE_TRY(repeat(emit.each, emit.when, values, work));
  }
  return {};
}

// Those that the emit does not set itself. Headers of ours say something about the cause only.
void Recipe::pass_headers(const Emit& emit, const Delivery& cause, Message& message) {
  const auto is_set = [&](std::string_view name) {
    return std::any_of(emit.headers.begin(), emit.headers.end(),
                       [&](const auto& header) { return header.first == name; });
  };
  const auto is_passed = [&](std::string_view name) {
    const auto& names = emit.passed_headers;
    return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
  };
  if (!emit.passes_headers) return;
  for (const HeaderView& header : cause.headers) {
    if (header.name.starts_with("once-") || is_set(header.name) || !is_passed(header.name))
      continue;
    std::optional<std::string> value;
    if (header.has_value()) value = std::string(header.value);
    message.headers.push_back({std::string(header.name), std::move(value)});
  }
}

Result<Message> Recipe::message_of(const Emit& emit, MessageValues& values) const {
  Message message;
  std::vector<std::string> parts;
  for (const std::size_t part : emit.id) parts.push_back(ONCE_TRY(values.text(part)));
  const std::vector<std::string_view> views(parts.begin(), parts.end());
  message.id = parts.size() == 1 ? parts.front() : encode_tuple(views);
  if (message.id.empty()) return fail(Remedy::park, "no_id", "the message to emit has an empty id");
  if (emit.key) message.key = ONCE_TRY(values.part(*emit.key));
  if (emit.body) message.body = ONCE_TRY(values.part(*emit.body));
  for (const auto& [literal, value] : emit.json_body) {
    *message.body += literal;
    if (value) ONCE_TRY(values.append_json(*message.body, *value));
  }
  if (emit.is_tombstone) message.body = std::nullopt;
  pass_headers(emit, values.delivery(), message);
  for (const auto& [name, value] : emit.headers) {
    auto part = ONCE_TRY(values.part(value));
    message.headers.push_back({name, std::move(part)});
  }
  // That of its cause: the same however often this runs.
  message.timestamp_ms = values.delivery().timestamp_ms;
  if (emit.timestamp) message.timestamp_ms = ONCE_TRY(values.time_ms(*emit.timestamp));
  return message;
}

// What went wrong with a message, as the lane wants to know it.
Status Recipe::conclude(Work& work, Result<Outcome> done, bool after_writes) {
  if (!done) {
    const Error& error = done.error();
    if (error.culprit || error.remedy != Remedy::park) {
      Error of_message = error;
      if (!error.message && error.cause == Cause::other) of_message.message = work.message;
      return fail(std::move(of_message));
    }
    return blame(work, parked(error.text));
  }
  if (has_to_roll_back(*done, after_writes)) return blame(work, std::move(*done));
  work.outcome = std::move(*done);
  return {};
}

// One message: its steps, and what it emits if they do not end it.
Status Recipe::run_one(Work& work, Transaction& transaction) const {
  transaction.on_behalf_of(work.message);
  MessageValues values(plan_.values, *work.delivery, dialect_);
  bool wrote = false;
  const auto done = [&]() -> Result<Outcome> {
    if (auto outcome = ONCE_TRY(run_steps(values, transaction, wrote))) return std::move(*outcome);
    ONCE_TRY(run_emits(values, transaction, wrote));
    // Its id stays free: what fits no step may be followed by a message about the same that does.
    return wrote ? applied() : no_effect();
  };
  auto outcome = done();
  return conclude(work, std::move(outcome), wrote);
}

// Rows that are read come back for a whole batch at once, unless a step needs them before: first
// the steps of all messages, in their order, then what they emit. An emit writes nothing but the
// outbox, so that no step can see the difference.
Status Recipe::run_reading(std::span<Work> batch, SqlTransaction& transaction) const {
  struct Running {
    Work* work;
    std::unique_ptr<MessageValues> values;
    bool wrote = false;
  };
  std::vector<Running> waiting;
  for (Work& work : batch) {
    transaction.on_behalf_of(work.message);
    Running one{&work, std::make_unique<MessageValues>(plan_.values, *work.delivery, dialect_)};
    one.values->on_wait([&transaction] { return transaction.flush(); });
    auto ended = run_steps(*one.values, transaction, one.wrote);
    if (ended && !*ended) {
      waiting.push_back(std::move(one));
      continue;
    }
    Result<Outcome> outcome = ended ? Result<Outcome>(std::move(**ended)) : fail(ended.error());
    ONCE_TRY(conclude(work, std::move(outcome), one.wrote));
  }
  ONCE_TRY(transaction.flush());
  for (Running& one : waiting) {
    transaction.on_behalf_of(one.work->message);
    one.values->resume();
    const Status emitted = run_emits(*one.values, transaction, one.wrote);
    Result<Outcome> outcome = one.wrote ? applied() : no_effect();
    if (!emitted) outcome = fail(emitted.error());
    ONCE_TRY(conclude(*one.work, std::move(outcome), one.wrote));
  }
  return {};
}

Status Recipe::run(std::span<Work> batch, Transaction& transaction) const {
  if (reads_rows_) return run_reading(batch, *transaction.sql());
  for (Work& work : batch) ONCE_TRY(run_one(work, transaction));
  return {};
}

Handler handler_of(std::shared_ptr<const Recipe> recipe) {
  if (recipe->needs_sql())
    return batch([recipe](std::span<Work> work, SqlTransaction& transaction) {
      return recipe->run(work, transaction);
    });
  if (recipe->needs_key_value())
    return batch([recipe](std::span<Work> work, KeyValueTransaction& transaction) {
      return recipe->run(work, transaction);
    });
  return batch([recipe](std::span<Work> work, Transaction& transaction) {
    return recipe->run(work, transaction);
  });
}

}  // namespace once
