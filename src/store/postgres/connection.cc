// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/connection.h"

#include <fmt/format.h>

#include <utility>

#include "base/failpoint.h"
#include "base/hex.h"
#include "base/secrets.h"
#include "store/postgres/error.h"
#include "store/postgres/statement_text.h"

namespace once {
namespace {

constexpr Oid bool_type = 16, bytea_type = 17, int8_type = 20, int2_type = 21, int4_type = 23,
              oid_type = 26, float4_type = 700, float8_type = 701;

// As the server prints bytes: \x and two digits for each.
std::string decode_hex(std::string_view text) {
  std::string bytes;
  if (!text.starts_with("\\x")) return bytes;
  bytes.reserve(text.size() / 2 - 1);
  for (std::size_t i = 2; i + 1 < text.size(); i += 2)
    bytes += static_cast<char>(hex_byte(text[i], text[i + 1]));
  return bytes;
}

}  // namespace

std::int64_t PgAnswer::touched() const {
  const std::string_view count = PQcmdTuples(result_.get());
  return count.empty() ? 0 : number_in<std::int64_t>(count);
}

std::string_view PgAnswer::text(int row, int column) const {
  return {PQgetvalue(result_.get(), row, column),
          static_cast<std::size_t>(PQgetlength(result_.get(), row, column))};
}

std::string PgAnswer::bytes(int row, int column) const {
  if (PQftype(result_.get(), column) == bytea_type) return decode_hex(text(row, column));
  return std::string(text(row, column));
}

Row PgAnswer::row(int row) const {
  Row made;
  const int columns = PQnfields(result_.get());
  made.reserve(static_cast<std::size_t>(columns));
  for (int column = 0; column < columns; ++column) {
    if (is_null(row, column)) {
      made.emplace_back(nullptr);
      continue;
    }
    switch (PQftype(result_.get(), column)) {
      case int2_type:
      case int4_type:
      case int8_type:
      case oid_type: made.emplace_back(number_in<std::int64_t>(text(row, column))); break;
      case bool_type: made.emplace_back(std::int64_t{text(row, column) == "t" ? 1 : 0}); break;
      case float4_type:
      case float8_type: made.emplace_back(number_in<double>(text(row, column))); break;
      default: made.emplace_back(bytes(row, column));
    }
  }
  return made;
}

Result<std::unique_ptr<PgConnection>> PgConnection::open(const std::string& url,
                                                         std::string where) {
  // What the URL says wins over these; a server that has gone away is noticed in half a minute.
  const char* const names[] = {"connect_timeout",
                               "keepalives_idle",
                               "tcp_user_timeout",
                               "fallback_application_name",
                               "client_encoding",
                               "dbname",
                               nullptr};
  const char* const values[] = {"10", "10", "30000", "once", "UTF8", url.c_str(), nullptr};
  PGconn* handle = PQconnectdbParams(names, values, /*expand_dbname=*/1);
  std::unique_ptr<PgConnection> connection(new PgConnection(handle, std::move(where)));
  if (PQstatus(handle) != CONNECTION_OK) {
    Secrets secrets;
    secrets.learn(url);
    return fail(error_from_connect(connection->where_, secrets.redacted(PQerrorMessage(handle))));
  }
  PQsetNoticeReceiver(handle, note, connection.get());
  if (PQenterPipelineMode(handle) != 1)
    return fail(Remedy::stop, "config", connection->where_ + ": no pipeline mode");
  ONCE_TRY(connection->configure());
  ONCE_TRY(connection->sync());
  return connection;
}

PgConnection::~PgConnection() { PQfinish(handle_); }

Error PgConnection::error(std::string_view state, SqlStage stage, std::string_view statement,
                          const char* native, bool goes_on) const {
  return error_from_postgres(state, stage, where_,
                             stage == SqlStage::commit
                                 ? std::string("commit")
                                 : fmt::format("run \"{}\"", shortened(statement)),
                             native, goes_on);
}

// A server that goes says FATAL or PANIC. Both it and the client have to think that this session
// goes on.
Error PgConnection::refusal(const PGresult* result, SqlStage stage, std::string_view statement) {
  const char* const state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* const severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
  if (PQstatus(handle_) != CONNECTION_OK) broken_ = true;
  const bool goes_on = !broken_ && severity != nullptr && std::string_view(severity) == "ERROR";
  return error(state == nullptr ? "" : state, stage, statement, PQresultErrorMessage(result),
               goes_on);
}

Error PgConnection::broken(SqlStage stage, std::string_view statement) {
  broken_ = true;
  return error("", stage, statement, PQerrorMessage(handle_));
}

Status PgConnection::prepare(const std::string& statement, std::string& name, Then then) {
  const auto found = prepared_.find(statement);
  if (found != prepared_.end()) {
    name = found->second;
    return {};
  }
  name = fmt::format("once_{}", ++names_);
  if (PQsendPrepare(handle_, name.c_str(), statement.c_str(), 0, nullptr) != 1)
    return fail(broken(SqlStage::statement, statement));
  prepared_.emplace(statement, name);
  pending_.push_back({statement, std::move(then), SqlStage::statement, /*is_preparation=*/true});
  return {};
}

const PgConnection::Known& PgConnection::known(std::string_view statement) {
  const std::string original(statement);
  if (const auto found = known_.find(original); found != known_.end()) return found->second;
  if (known_.size() >= prepared_max) known_.clear();
  Known made{.text = number_parameters(statement)};
  if (auto update = keyed_update(statement, postgres_syntax))
    made.update = std::make_shared<const KeyedUpdate>(std::move(*update));
  made.may_change_tables = may_change_tables(statement);
  return known_.emplace(original, std::move(made)).first->second;
}

Status PgConnection::send(std::string_view statement, std::span<const Value> values, Then then,
                          SqlStage stage) {
  const bool goes_on = stage == SqlStage::statement && writes_.are(statement, values);
  if (!goes_on) flush();
  if (broken_) return fail(broken(SqlStage::statement, statement));
  if (has_zero_in_text(values))
    return fail(error("22021", stage, statement, "a text with a zero byte; bind it as bytes"));
  if (goes_on) return keep(values, std::move(then));
  const Known& one = known(statement);
  // The server would take it for a breach of the protocol, which looks as if it were away.
  if (one.text.parameters != values.size())
    return fail(Remedy::stop, "sql",
                fmt::format("{}: \"{}\" has {} parameters, {} values were given", where_, statement,
                            one.text.parameters, values.size()));
  if (one.may_change_tables) sets_.clear();
  if (!in_transaction_ || stage != SqlStage::statement || !one.update)
    return send_native(one.text.text, Parameters(values), std::move(then), stage);
  writes_ = EqualWrites(statement, one.text.text, one.update);
  return keep(values, std::move(then));
}

Status PgConnection::send_native(std::string_view statement, const Parameters& parameters,
                                 Then then, SqlStage stage) {
  flush();
  if (!first_) return {};  // behind one that failed: not run
  return queue({std::string(statement), std::move(then), stage}, parameters);
}

Status PgConnection::queue(Pending pending, const Parameters& parameters) {
  const std::string& text = pending.statement;
  if (broken_) return fail(broken(SqlStage::statement, text));
  const bool is_plain = parameters.count() == 0;  // BEGIN, COMMIT and the like
  const bool has_room = prepared_.size() < prepared_max || prepared_.contains(text);
  int sent = 0;
  if (!is_plain && has_room) {
    std::string name;
    ONCE_TRY(prepare(text, name, pending.then));
    sent = PQsendQueryPrepared(handle_, name.c_str(), parameters.count(), parameters.values(),
                               parameters.lengths(), parameters.formats(), 0);
  } else {
    sent = PQsendQueryParams(handle_, text.c_str(), parameters.count(), nullptr,
                             parameters.values(), parameters.lengths(), parameters.formats(), 0);
  }
  if (sent != 1) return fail(broken(SqlStage::statement, text));
  if (pending.stage == SqlStage::begin) in_transaction_ = true;
  pending_.push_back(std::move(pending));
  return {};
}

// The answer to one statement: one result, then none.
Status PgConnection::receive(const Pending& pending) {
  PGresult* const first = PQgetResult(handle_);
  if (first == nullptr) return fail(broken(pending.stage, pending.statement));
  auto answer = std::make_unique<PgAnswer>(first);
  const ExecStatusType status = PQresultStatus(first);
  while (PGresult* more = PQgetResult(handle_)) PQclear(more);
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) {
    // A transaction that failed answers a commit with a rollback.
    if (pending.stage == SqlStage::commit && std::string_view(PQcmdStatus(first)) != "COMMIT")
      return fail(Remedy::retry, "conflict",
                  where_ + ": the transaction was rolled back by the server");
    if (pending.stage == SqlStage::commit) {
      in_transaction_ = false;
      if (std::exchange(committed_nothing_, false))
        return fail(transaction_lost(where_, "a statement before the commit"));
    }
    const bool is_told = pending.then && !pending.is_preparation;
    return is_told ? pending.then(std::move(answer)) : Status();
  }
  if (pending.is_preparation) prepared_.erase(pending.statement);
  if (status == PGRES_PIPELINE_ABORTED)
    return fail(Remedy::retry, "aborted", where_ + ": a statement before this one failed");
  Error failed = refusal(first, pending.stage, pending.statement);
  return pending.then ? pending.then(fail(std::move(failed))) : Status(fail(std::move(failed)));
}

void PgConnection::receive_sync() {
  PGresult* const result = PQgetResult(handle_);
  broken_ = result == nullptr || PQresultStatus(result) != PGRES_PIPELINE_SYNC;
  PQclear(result);
}

Status PgConnection::sync() {
  flush();
  if (broken_ && first_) first_ = fail(broken(SqlStage::statement, "sync"));
  if (!broken_) remember(take_answers());
  return std::exchange(first_, Status());
}

void PgConnection::remember(const Status& done) {
  if (done) return;
  // Of several, the one that leaves something unknown counts.
  const bool unknown = done.error().remedy == Remedy::recheck;
  if (first_ || (unknown && first_.error().remedy != Remedy::recheck)) first_ = done;
}

Status PgConnection::take_answers() {
  if (pending_.empty()) return {};
  Status first;
  const std::string last = pending_.back().statement;
  // Sent and unanswered: whether a commit among them was run is not known.
  const bool sent = PQpipelineSync(handle_) == 1;
  if (!sent) broken_ = true;
  if (pending_.back().stage == SqlStage::commit) ONCE_POINT(store_after_commit_sent);
  while (!pending_.empty()) {
    const Pending pending = std::move(pending_.front());
    pending_.pop_front();
    const Status done =
        broken_ ? Status(fail(broken(pending.stage, pending.statement))) : receive(pending);
    if (done) continue;
    if (first || (first.error().remedy != Remedy::recheck && !done &&
                  done.error().remedy == Remedy::recheck))
      first = done;  // of several, the one that leaves something unknown counts
  }
  // All answers are here: a connection that is lost now only cannot be used again.
  if (!broken_) receive_sync();
  if (first && in_transaction_ && !broken_ && PQtransactionStatus(handle_) == PQTRANS_IDLE)
    first = fail(transaction_lost(where_, last));
  return first;
}

Status PgConnection::script(const std::string& statements) {
  if (PQexitPipelineMode(handle_) != 1) return fail(broken(SqlStage::statement, "script"));
  PGresult* const result = PQexec(handle_, statements.c_str());
  const ExecStatusType status = PQresultStatus(result);
  Status done;
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
    const char* const state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    done = fail(error(state == nullptr ? "" : state, SqlStage::statement, shortened(statements),
                      PQresultErrorMessage(result)));
  }
  PQclear(result);
  if (PQenterPipelineMode(handle_) != 1) broken_ = true;
  return done;
}

}  // namespace once
