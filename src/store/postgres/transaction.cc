// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/transaction.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/compact_id.h"
#include "model/ledger.h"
#include "model/message_row.h"
#include "store/postgres/statement_text.h"
#include "store/postgres/text.h"

namespace once {

Status PostgresTransaction::check_open() const {
  if (doom_) return fail(*doom_);
  if (committed_)
    return fail(Remedy::stop, "config", "the transaction was committed; begin another");
  return {};
}

// --- positions

Status PostgresTransaction::advance(std::string_view partition, const Position& from,
                                    std::int64_t to) {
  ONCE_TRY(check_open());
  ONCE_TRY(check_advance(partition, from, to));
  return keep(advance_now(partition, from, to));
}

Status PostgresTransaction::advance_now(std::string_view partition, const Position& from,
                                        std::int64_t to) {
  const std::int64_t number = ONCE_TRY(store_.number_of(partition));
  // A partition that nobody has taken has no row yet.
  const std::string_view statement =
      from == Position{}
          ? "INSERT INTO once_position VALUES ($1, $2, $3, 0) ON CONFLICT (scope, partition) "
            "DO UPDATE SET at_offset = excluded.at_offset "
            "WHERE once_position.at_offset = $4 AND once_position.fence = $5"
          : "UPDATE once_position SET at_offset = $3 "
            "WHERE scope = $1 AND partition = $2 AND at_offset = $4 AND fence = $5";
  unchecked_ = true;
  const auto check = [this, name = std::string(partition), from](Result<Answer> answer) -> Status {
    if (!answer) return fail(std::move(answer).error());
    if (answer->touched() == 1) return {};
    const Position actual = ONCE_TRY(store_.position(scope_, name));
    return fail(fenced_error(scope_, name, from, actual));
  };
  return connection().send(statement, {scope_number_, number, to, from.offset, from.fence}, check);
}

// --- outcomes

Status PostgresTransaction::settle(const Delivery& delivery, const Outcome& outcome) {
  ONCE_TRY(check_open());
  ONCE_TRY(check_settle(outcome));
  return keep(settle_now(delivery, outcome));
}

Status PostgresTransaction::settle_now(const Delivery& delivery, const Outcome& outcome) {
  const auto fresh = fresh_.find(std::string(delivery.id));
  if (fresh != fresh_.end() && fresh->second.offset == delivery.offset &&
      fresh->second.partition == ONCE_TRY(store_.number_of(delivery.partition))) {
    const CompactId id(delivery.id);
    if (outcome.kind == Outcome::Kind::no_effect) {
      settled_.freed.emplace_back(id.bytes());
      fresh_.erase(fresh);
    } else if (outcome.kind != Outcome::Kind::applied || !outcome.detail.empty()) {
      settled_.ids.emplace_back(id.bytes());
      settled_.outcomes.push_back(static_cast<std::int64_t>(outcome.kind));
      settled_.results.push_back(outcome.detail);
    }
  }
  if (outcome.kind == Outcome::Kind::parked) return park(delivery, outcome.detail);
  return {};
}

Status PostgresTransaction::park(const Delivery& delivery, const std::string& reason) {
  const std::string headers = encode_headers(delivery.headers);
  ONCE_TRY(connection().send(
      "INSERT INTO once_parked (scope, partition, at_offset, attempts, parked_ms, reason, id, key, "
      "body, headers, timestamp_ms) "
      "VALUES ($1, $2, $3, $4, " ONCE_PG_NOW_MS ", $5, $6, $7, $8, $9, $10)",
      {scope_number_, Blob{delivery.partition}, delivery.offset, delivery.attempt, Blob{reason},
       Blob{delivery.id}, Blob{delivery.key}, Blob{delivery.body}, Blob{headers},
       delivery.timestamp_ms}));
  return store_.log_operation(connection(), scope_number_, "park", delivery.id, reason);
}

// One statement for all outcomes, one for all ids that are free again.
Status PostgresTransaction::write_settled() {
  if (!settled_.ids.empty()) {
    Parameters parameters{scope_number_};
    parameters.add_array(views_of(settled_.ids));
    parameters.add_array(settled_.outcomes);
    parameters.add_array(views_of(settled_.results));
    ONCE_TRY(connection().send(
        "UPDATE once_ledger AS l SET outcome = u.outcome, result = u.result "
        "FROM unnest($2::bytea[], $3::bigint[], $4::bytea[]) AS u (id, outcome, result) "
        "WHERE l.scope = $1 AND l.id = u.id",
        parameters));
  }
  if (!settled_.freed.empty()) {
    Parameters parameters{scope_number_};
    parameters.add_array(views_of(settled_.freed));
    ONCE_TRY(connection().send(
        "DELETE FROM once_ledger WHERE scope = $1 AND id = ANY ($2::bytea[])", parameters));
  }
  settled_ = {};
  return {};
}

// --- outbox

Status PostgresTransaction::enqueue(std::string_view destination, const Message& message) {
  ONCE_TRY(check_open());
  ONCE_TRY(check_destination(destination));
  const auto number = keep(store_.number_of(destination));
  if (!number) return fail(number.error());
  const std::string headers = encode_headers(message.headers);
  return keep(connection().send(
      "INSERT INTO once_outbox (destination, id, key, body, headers, timestamp_ms) "
      "VALUES ($1, $2, $3, $4, $5, $6)",
      {*number, Blob{message.id}, Blob{message.key}, Blob{message.body}, Blob{headers},
       message.timestamp_ms}));
}

// --- commit

Status PostgresTransaction::commit() {
  ONCE_TRY(check_open());
  return keep(commit_now());
}

Status PostgresTransaction::commit_now() {
  ONCE_TRY(write_settled());
  // The server would commit before we could look: what has an expectation is looked at first. A
  // statement that fails needs no look: the server then runs nothing behind it.
  if (unchecked_) ONCE_TRY(connection().sync());
  const auto check = [this](Result<Answer> answer) -> Status {
    if (!answer) return fail(std::move(answer).error());
    if (answer->command() == "COMMIT") return {};
    return fail(Remedy::retry, "conflict",
                store_.where_ + ": the transaction was rolled back by the server");
  };
  ONCE_TRY(connection().send("COMMIT", {}, check, PostgresStage::commit));
  ONCE_TRY(connection().sync());
  committed_ = true;
  return {};
}

// --- SQL

Result<std::string> PostgresTransaction::translated(std::string_view statement,
                                                    std::span<const Value> values) {
  ONCE_TRY(check_handler_statement(statement));
  StatementText made = number_parameters(statement);
  if (made.parameters != values.size())
    return fail(Remedy::stop, "sql",
                fmt::format("{}: \"{}\" has {} parameters, {} values were given", store_.where_,
                            statement, made.parameters, values.size()));
  return std::move(made.text);
}

Status PostgresTransaction::execute(std::string_view statement, std::span<const Value> values,
                                    const Expect& expect) {
  ONCE_TRY(check_open());
  return keep(execute_now(statement, values, expect));
}

Status PostgresTransaction::execute_now(std::string_view statement, std::span<const Value> values,
                                        const Expect& expect) {
  const std::string text = ONCE_TRY(translated(statement, values));
  const auto message = expect.message ? expect.message : message_;
  if (expect.rows >= 0) unchecked_ = true;
  auto wanted = std::make_shared<Expect>(expect);
  wanted->message = message;
  const auto check = [this, wanted,
                      original = std::string(statement)](Result<Answer> answer) -> Status {
    if (!answer) return fail(blame(std::move(answer).error(), wanted->message));
    const std::int64_t rows = answer->touched();
    if (wanted->rows < 0 || rows == wanted->rows) return {};
    return fail(unmet(original, rows, *wanted));
  };
  auto sent = connection().send(text, Parameters(values), check);
  if (!sent) return fail(blame(std::move(sent).error(), message));
  return {};
}

Error PostgresTransaction::unmet(std::string_view statement, std::int64_t rows,
                                 const Expect& expect) const {
  Error error{Remedy::park, "expect",
              fmt::format("{}: \"{}\" touched {} rows, not {}", store_.where_, statement, rows,
                          expect.rows),
              std::nullopt};
  if (expect.message) error.culprit = Culprit{*expect.message, expect.otherwise};
  return error;
}

// A write that the database refuses belongs to the message on whose behalf it was made.
Error PostgresTransaction::blame(Error error, std::optional<std::size_t> message) const {
  if (error.remedy == Remedy::park && message && !error.culprit)
    error.culprit = Culprit{*message, parked(error.text)};
  return error;
}

Result<Answer> PostgresTransaction::ask(std::string_view statement, std::span<const Value> values) {
  const std::string text = ONCE_TRY(translated(statement, values));
  std::optional<Answer> kept;
  const auto message = message_;
  const auto take = [&](Result<Answer> answer) -> Status {
    if (!answer) return fail(blame(std::move(answer).error(), message));
    kept.emplace(std::move(*answer));
    return {};
  };
  auto sent = connection().send(text, Parameters(values), take);
  if (!sent) return fail(blame(std::move(sent).error(), message));
  ONCE_TRY(connection().sync());
  return std::move(*kept);
}

Result<std::int64_t> PostgresTransaction::run(std::string_view statement,
                                              std::span<const Value> values) {
  ONCE_TRY(check_open());
  const auto answer = keep(ask(statement, values));
  if (!answer) return fail(answer.error());
  return answer->touched();
}

Result<Rows> PostgresTransaction::query(std::string_view statement, std::span<const Value> values) {
  ONCE_TRY(check_open());
  const auto answer = keep(ask(statement, values));
  if (!answer) return fail(answer.error());
  Rows found;
  found.reserve(static_cast<std::size_t>(answer->rows()));
  for (int i = 0; i < answer->rows(); ++i) found.push_back(answer->row(i));
  return found;
}

}  // namespace once
