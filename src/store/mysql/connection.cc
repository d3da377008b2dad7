// SPDX-License-Identifier: Apache-2.0
#include "store/mysql/connection.h"

#include <errmsg.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/failpoint.h"
#include "store/mysql/error.h"
#include "store/mysql/render.h"

namespace once {
namespace {

// What is queued is sent at once when it is larger: servers take packets of 16 MiB and more, and
// texts double in hexadecimal.
constexpr std::size_t queued_bytes_goal = 1 << 20;
constexpr std::size_t queued_count_goal = 20'000;
constexpr unsigned long version_with_json_table = 100'600;  // of MariaDB
constexpr std::size_t statements_kept_max = 200;
constexpr std::size_t statement_kept_bytes_max = 4096;

}  // namespace

MysqlAnswer::MysqlAnswer(MYSQL_RES* result, std::int64_t touched)
    : result_(result), touched_(touched) {
  if (result == nullptr) return;
  const unsigned columns = mysql_num_fields(result);
  while (MYSQL_ROW values = mysql_fetch_row(result)) {
    const unsigned long* lengths = mysql_fetch_lengths(result);
    rows_.push_back({values, {lengths, lengths + columns}});
  }
  touched_ = static_cast<std::int64_t>(rows_.size());
}

bool MysqlAnswer::is_null(int row, int column) const {
  return rows_[static_cast<std::size_t>(row)].values[column] == nullptr;
}

std::string MysqlAnswer::bytes(int row, int column) const {
  const Cells& cells = rows_[static_cast<std::size_t>(row)];
  if (cells.values[column] == nullptr) return {};
  return {cells.values[column], cells.lengths[static_cast<std::size_t>(column)]};
}

Row MysqlAnswer::row(int row) const {
  Row made;
  const unsigned columns = mysql_num_fields(result_.get());
  const MYSQL_FIELD* fields = mysql_fetch_fields(result_.get());
  for (unsigned i = 0; i < columns; ++i) {
    const int column = static_cast<int>(i);
    if (is_null(row, column)) {
      made.emplace_back(nullptr);
      continue;
    }
    std::string text = bytes(row, column);
    switch (fields[i].type) {
      case MYSQL_TYPE_TINY:
      case MYSQL_TYPE_SHORT:
      case MYSQL_TYPE_INT24:
      case MYSQL_TYPE_LONG:
      case MYSQL_TYPE_LONGLONG:
      case MYSQL_TYPE_YEAR: made.emplace_back(number_in<std::int64_t>(text)); break;
      case MYSQL_TYPE_FLOAT:
      case MYSQL_TYPE_DOUBLE: made.emplace_back(number_in<double>(text)); break;
      default: made.emplace_back(std::move(text));
    }
  }
  return made;
}

Result<std::unique_ptr<MysqlConnection>> MysqlConnection::open(const MysqlAddress& address) {
  std::unique_ptr<MysqlConnection> connection(new MysqlConnection(address.where()));
  MYSQL* const handle = &connection->handle_;
  mysql_init(handle);
  connection->initialised_ = true;
  const unsigned seconds = 10;
  mysql_options(handle, MYSQL_OPT_CONNECT_TIMEOUT, &seconds);
  const unsigned wait_seconds = 60;
  mysql_options(handle, MYSQL_OPT_READ_TIMEOUT, &wait_seconds);
  mysql_options(handle, MYSQL_OPT_WRITE_TIMEOUT, &wait_seconds);
  mysql_options(handle, MYSQL_SET_CHARSET_NAME, "utf8mb4");
  const my_bool enforce = address.ssl == "require" || address.ssl == "verify";
  const my_bool verify = address.ssl == "verify";
  mysql_options(handle, MYSQL_OPT_SSL_ENFORCE, &enforce);
  mysql_options(handle, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
  const auto file = [](const std::string& path) { return path.empty() ? nullptr : path.c_str(); };
  if (address.ssl != "off")
    mysql_ssl_set(handle, file(address.ssl_key), file(address.ssl_cert), file(address.ssl_ca),
                  nullptr, nullptr);
  // Rows that a WHERE found count as touched, also when they were what they were set to.
  constexpr unsigned long flags = CLIENT_MULTI_STATEMENTS | CLIENT_FOUND_ROWS;
  if (mysql_real_connect(handle, address.socket.empty() ? address.host.c_str() : nullptr,
                         address.user.c_str(), address.password.c_str(), address.database.c_str(),
                         address.port, file(address.socket), flags) == nullptr)
    return fail(error_from_mysql({mysql_errno(handle), mysql_sqlstate(handle), mysql_error(handle)},
                                 SqlStage::open, connection->where_, "connect"));
  // The library goes on in plain text with a server that cannot encrypt.
  if (enforce && mysql_get_ssl_cipher(handle) == nullptr)
    return fail(error_from_mysql(
        {CR_SSL_CONNECTION_ERROR, {}, "SSL is required, and the server does not offer it"},
        SqlStage::open, connection->where_, "connect"));
  connection->knows_bulk_ = BulkStatement::is_known_to(*handle);
  connection->knows_loops_ =
      connection->knows_bulk_ && mysql_get_server_version(handle) >= version_with_json_table;
  ONCE_TRY(connection->configure());
  return connection;
}

// The server would close the connection, which looks as if it were away: a message that is too
// large would be tried for ever.
Status MysqlConnection::check_fits(std::string_view statement, std::size_t bytes) const {
  if (bytes <= packet_bytes_max_) return {};
  return fail(Remedy::park, "too_large",
              fmt::format("{}: \"{}\" needs {} bytes with its values, the server takes {}; raise "
                          "its max_allowed_packet",
                          where_, shortened(statement), bytes, packet_bytes_max_));
}

MysqlConnection::~MysqlConnection() {
  bulk_.clear();
  if (initialised_) mysql_close(&handle_);
}

Error MysqlConnection::error(SqlStage stage, std::string_view statement) {
  const unsigned code = mysql_errno(&handle_);
  if (code == 0) broken_ = true;
  if (code == 0)
    return error(stage, statement, {.code = CR_SERVER_LOST, .text = "the connection is closed"});
  return error(stage, statement, {code, mysql_sqlstate(&handle_), mysql_error(&handle_)});
}

// Of what sounds as if the connection were gone, only the server can tell whether it is.
bool MysqlConnection::goes_on(unsigned code) {
  if (broken_) return false;
  return !is_about_connection(code) || mysql_ping(&handle_) == 0;
}

Error MysqlConnection::error(SqlStage stage, std::string_view statement,
                             const MysqlFailure& failure) {
  const std::string state(failure.state), text(failure.text);  // the library writes over them
  const bool goes_on = stage == SqlStage::statement && this->goes_on(failure.code);
  if (failure.code >= 2000 && failure.code < 2100 && !goes_on) broken_ = true;
  return error_from_mysql({failure.code, state, text, goes_on}, stage, where_,
                          stage == SqlStage::commit
                              ? std::string("commit")
                              : fmt::format("run \"{}\"", shortened(statement)));
}

Result<MysqlConnection::Pieces> MysqlConnection::pieces_of(std::string_view statement) {
  const std::string key(statement);
  if (const auto found = pieces_.find(key); found != pieces_.end()) return found->second;
  auto pieces = std::make_shared<const StatementPieces>(ONCE_TRY(StatementPieces::cut(statement)));
  if (statement.size() > statement_kept_bytes_max) return pieces;  // rarely comes again
  if (pieces_.size() >= statements_kept_max) pieces_.clear();
  return pieces_.emplace(key, std::move(pieces)).first->second;
}

Status MysqlConnection::send(std::string_view statement, std::span<const Value> values, Then then,
                             SqlStage stage) {
  return queue(statement, values, std::move(then), stage, true);
}

Status MysqlConnection::send_uncounted(std::string_view statement, std::span<const Value> values,
                                       Then then) {
  return queue(statement, values, std::move(then), SqlStage::statement, false);
}

Status MysqlConnection::queue(std::string_view statement, std::span<const Value> values, Then then,
                              SqlStage stage, bool is_counted) {
  if (broken_) return fail(error(SqlStage::statement, statement));
  Pieces pieces = ONCE_TRY(pieces_of(statement));
  ONCE_TRY(pieces->check(values));
  KeptValues kept(values);
  // Every byte of a value becomes two digits, with some letters around them.
  constexpr std::size_t around_bytes = 16;
  const std::size_t bytes =
      statement.size() + 2 * kept.bytes() + around_bytes * (1 + values.size());
  ONCE_TRY(check_fits(statement, bytes));
  if (2 * pending_bytes_ + bytes > packet_bytes_max_) flush();
  pending_.push_back({std::string(statement), std::move(pieces), std::move(kept), std::move(then),
                      stage, is_counted});
  pending_bytes_ += statement.size() + pending_.back().values.bytes();
  const bool is_full = pending_bytes_ >= queued_bytes_goal || pending_.size() >= queued_count_goal;
  if (is_full && stage != SqlStage::commit) flush();
  return {};
}

void MysqlConnection::remember(const Status& done) {
  if (done) return;
  // Of several, the one that leaves something unknown counts.
  const bool unknown = done.error().remedy == Remedy::recheck;
  if (first_ || (unknown && first_.error().remedy != Remedy::recheck)) first_ = done;
}

void MysqlConnection::flush() {
  const auto queued = std::exchange(pending_, {});
  pending_bytes_ = 0;
  const std::span<const Pending> pending = queued;
  // After an error nothing is run: what was queued behind it belongs to a transaction that is lost.
  for (std::size_t at = 0; at < pending.size() && first_;) {
    std::size_t together = equal_run(pending.subspan(at));
    std::size_t end = at + together;
    if (together >= equal_rows_min) {
      flush_equal(pending.subspan(at, together));
    } else {
      while (end < pending.size() && (together = equal_run(pending.subspan(end))) < equal_rows_min)
        end += together;
      flush_packet(pending.subspan(at, end - at));
    }
    at = end;
  }
}

std::size_t MysqlConnection::equal_run(std::span<const Pending> pending) const {
  const Pending& first = pending.front();
  const std::size_t columns = first.values.values().size();
  const bool is_known = first.is_counted ? knows_loops_ : knows_bulk_;
  if (!is_known || columns == 0 || !first.pieces->is_joinable()) return 1;
  RowTypes types(columns);
  std::size_t count = 0;
  while (count < pending.size() && pending[count].is_counted == first.is_counted &&
         pending[count].pieces == first.pieces && types.take(pending[count].values.values()))
    ++count;
  return std::max<std::size_t>(count, 1);
}

void MysqlConnection::flush_packet(std::span<const Pending> pending) {
  std::string packet;
  for (const Pending& one : pending) {
    if (one.pieces->may_change_tables()) sets_.clear();
    if (!packet.empty()) packet += "\n;\n";
    one.pieces->render(one.values.values(), packet);
  }
  bool failed = broken_ || mysql_send_query(&handle_, packet.data(), packet.size()) != 0;
  if (pending.back().stage == SqlStage::commit) ONCE_POINT(store_after_commit_sent);
  failed = failed || mysql_read_query_result(&handle_) != 0;
  for (std::size_t i = 0; i < pending.size(); ++i) {
    if (i > 0 && !failed) failed = mysql_next_result(&handle_) != 0;
    if (receive(pending[i], failed)) continue;
    // Not run, unless nobody can say: a commit behind a connection that broke.
    if (broken_ && pending.back().stage == SqlStage::commit && i + 1 < pending.size())
      remember(fail(error(SqlStage::commit, "COMMIT")));
    return;
  }
  if (!mysql_more_results(&handle_)) return;
  // Whose answer was whose is not certain then, not even that of a commit.
  broken_ = true;
  remember(fail(Remedy::stop, "protocol",
                fmt::format("{}: the server gave more answers than {} statements have, the last of "
                            "them \"{}\"",
                            where_, pending.size(), shortened(pending.back().statement))));
}

bool MysqlConnection::command(std::string_view statement) {
  return mysql_real_query(&handle_, statement.data(), statement.size()) == 0;
}

BulkStatement* MysqlConnection::bulk_statement(const std::string& statement) {
  auto found = bulk_.find(statement);
  if (found == bulk_.end()) {
    if (bulk_.size() >= statements_kept_max) bulk_.clear();
    found = bulk_.emplace(statement, BulkStatement::prepare(handle_, statement)).first;
  }
  return found->second.get();
}

// If one of them fails, nobody says which: all are undone, and run again one by one.
void MysqlConnection::flush_equal(std::span<const Pending> pending) {
  BulkStatement* const bulk = bulk_statement(pending.front().pieces->prepared());
  if (bulk == nullptr) return flush_packet(pending);
  if (!command("SAVEPOINT once_bulk"))
    return tell(pending.front(), error(SqlStage::statement, "SAVEPOINT"));
  std::optional<Error> failed =
      pending.front().is_counted ? run_counted(pending) : run_bulk(*bulk, pending);
  if (!failed) return;
  // A store that is away, or a rival: no message is to blame, and there may be nothing to undo.
  // What takes too long together may not one by one.
  if (is_transient(failed->remedy) && failed->tag != "timeout") {
    if (failed->cause == Cause::statement) failed->cause = Cause::joined;
    return tell(pending.front(), std::move(*failed));
  }
  if (!command("ROLLBACK TO SAVEPOINT once_bulk"))
    return tell(pending.front(), error(SqlStage::statement, "ROLLBACK TO SAVEPOINT"));
  flush_packet(pending);
}

std::optional<Error> MysqlConnection::run_bulk(BulkStatement& bulk,
                                               std::span<const Pending> pending) {
  std::vector<Value> values;
  for (const Pending& one : pending)
    values.insert(values.end(), one.values.values().begin(), one.values.values().end());
  if (bulk.run(values, pending.size())) {
    watch(SqlStage::statement, pending.front().statement);
    return std::nullopt;
  }
  return error(SqlStage::statement, pending.front().statement, bulk.failure());
}

std::optional<std::string> MysqlConnection::text_of_command(std::string_view statement) {
  if (!command(statement)) return std::nullopt;
  std::optional<std::string> text;
  if (MYSQL_RES* const result = mysql_store_result(&handle_)) {
    const MysqlAnswer answer(result, 0);
    if (answer.rows() == 1) text = answer.bytes(0, 0);
  }
  // What the block as a whole answers follows.
  if (!discard_answers()) return std::nullopt;
  return text;
}

bool MysqlConnection::discard_answers() {
  while (mysql_more_results(&handle_)) {
    if (mysql_next_result(&handle_) != 0) return false;
    if (MYSQL_RES* const result = mysql_store_result(&handle_)) mysql_free_result(result);
    if (mysql_errno(&handle_) != 0) return false;
  }
  return true;
}

Result<std::int64_t> MysqlConnection::run_bulk(const std::string& statement,
                                               std::span<const Value> values, std::size_t rows) {
  ONCE_TRY(sync());
  if (broken_) return fail(error(SqlStage::statement, statement));
  BulkStatement* const bulk = bulk_statement(statement);
  if (bulk == nullptr) return fail(error(SqlStage::statement, statement));
  const auto touched = bulk->run(values, rows);
  if (!touched) return fail(error(SqlStage::statement, statement, bulk->failure()));
  return *touched;
}

// Every query of a procedure answers with its rows; what the call itself answers has none, and is
// the last. The first of them counts.
std::unique_ptr<MysqlAnswer> MysqlConnection::take_answer(const StatementPieces& pieces) {
  std::unique_ptr<MysqlAnswer> first;
  bool is_last = false;
  while (!is_last) {
    MYSQL_RES* const result = mysql_store_result(&handle_);
    // The client forgets that there were to be rows when the connection breaks among them.
    if (result == nullptr && (mysql_field_count(&handle_) != 0 || mysql_errno(&handle_) != 0))
      return nullptr;
    is_last = result == nullptr || !pieces.is_call();
    auto answer = std::make_unique<MysqlAnswer>(
        result, static_cast<std::int64_t>(mysql_affected_rows(&handle_)));
    if (!first) first = std::move(answer);
    if (!is_last && mysql_next_result(&handle_) != 0) return nullptr;
  }
  return first;
}

bool MysqlConnection::receive(const Pending& pending, bool failed) {
  auto answer = failed ? nullptr : take_answer(*pending.pieces);
  if (!answer) {
    tell(pending, error(pending.stage, pending.statement));
    return false;
  }
  watch(pending.stage, pending.statement);
  if (pending.then && pending.is_counted) remember(pending.then(std::move(answer)));
  return true;
}

void MysqlConnection::tell(const Pending& pending, Error error) {
  remember(pending.then ? pending.then(fail(std::move(error))) : Status(fail(std::move(error))));
}

Status MysqlConnection::sync() {
  flush();
  return std::exchange(first_, Status());
}

}  // namespace once
