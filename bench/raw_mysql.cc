// SPDX-License-Identifier: Apache-2.0
#include "raw_mysql.h"

#include <fmt/format.h>
#include <mysql.h>

#include <array>
#include <cstdlib>
#include <map>
#include <set>
#include <string_view>

#include "base/hex.h"
#include "harness.h"
#include "model/compact_id.h"
#include "store/mysql/address.h"

namespace once::bench {
namespace {

constexpr std::uint64_t fill_rows_per_statement = 10'000;

void append_literal(std::string& into, std::string_view bytes) {
  into += "x'";
  append_hex(into, bytes);
  into += '\'';
}

[[noreturn]] void give_up_on(MYSQL* connection) {
  give_up(std::string("raw MySQL: ") + mysql_error(connection));
}

// What is left of the answers of a packet.
void take_answers(MYSQL* connection) {
  while (true) {
    MYSQL_RES* const result = mysql_store_result(connection);
    if (result != nullptr) mysql_free_result(result);
    const int more = mysql_next_result(connection);
    if (more > 0) give_up_on(connection);
    if (more < 0) return;
  }
}

MYSQL_BIND bind_bytes(const std::string_view& bytes, unsigned long& length) {
  MYSQL_BIND bind{};
  length = bytes.size();
  bind.buffer_type = MYSQL_TYPE_BLOB;
  bind.buffer = const_cast<char*>(bytes.data());
  bind.buffer_length = length;
  bind.length = &length;
  return bind;
}

MYSQL_BIND bind_number(std::int64_t& number) {
  MYSQL_BIND bind{};
  bind.buffer_type = MYSQL_TYPE_LONGLONG;
  bind.buffer = &number;
  return bind;
}

using Amounts = std::map<std::string_view, int>;

// How much each account gets from the messages whose ids are new.
Amounts amounts_of(std::span<const Message> messages, const std::set<std::string>& fresh) {
  Amounts amounts;
  for (const Message& message : messages)
    if (fresh.size() == messages.size() ||
        fresh.contains(std::string(CompactId(message.id).bytes())))
      ++amounts[*message.key];
  return amounts;
}

std::string update_of(const Amounts& amounts) {
  std::string changes;
  for (const auto& [account, amount] : amounts)
    changes += fmt::format("{}[{},{}]", changes.empty() ? "" : ",", account, amount);
  return "UPDATE account JOIN JSON_TABLE('[" + changes +
         "]', '$[*]' COLUMNS (number INT PATH '$[0]', amount INT PATH '$[1]')) AS due "
         "ON account.number = due.number SET balance = balance + due.amount";
}

}  // namespace

RawMysql::RawMysql(const std::string& url) : connection_(mysql_init(nullptr)) {
  const MysqlAddress address = must(MysqlAddress::parse(url));
  if (mysql_real_connect(connection_, address.host.c_str(), address.user.c_str(),
                         address.password.c_str(), address.database.c_str(), address.port, nullptr,
                         CLIENT_MULTI_STATEMENTS) == nullptr)
    give_up_on(connection_);
  run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
}

RawMysql::~RawMysql() {
  for (MYSQL_STMT* const statement : {begin_, insert_, update_, commit_})
    if (statement != nullptr) mysql_stmt_close(statement);
  mysql_close(connection_);
}

void RawMysql::run(const std::string& statement) {
  if (mysql_real_query(connection_, statement.data(), statement.size()) != 0)
    give_up_on(connection_);
  take_answers(connection_);
}

std::int64_t RawMysql::number(const std::string& statement) {
  if (mysql_real_query(connection_, statement.data(), statement.size()) != 0)
    give_up_on(connection_);
  MYSQL_RES* const result = mysql_store_result(connection_);
  MYSQL_ROW row = result == nullptr ? nullptr : mysql_fetch_row(result);
  if (row == nullptr || row[0] == nullptr) give_up("raw MySQL: " + statement + " has no answer");
  const std::int64_t answer = std::strtoll(row[0], nullptr, 10);
  mysql_free_result(result);
  return answer;
}

MYSQL_STMT* RawMysql::prepare(const std::string& statement) {
  MYSQL_STMT* const prepared = mysql_stmt_init(connection_);
  if (mysql_stmt_prepare(prepared, statement.data(), statement.size()) != 0)
    give_up_on(connection_);
  return prepared;
}

void RawMysql::prepare() {
  if (begin_ != nullptr) return;
  begin_ = prepare("BEGIN");
  insert_ = prepare("INSERT IGNORE INTO processed VALUES (?)");
  update_ = prepare(std::string(update_account));
  commit_ = prepare("COMMIT");
}

void RawMysql::execute(MYSQL_STMT* statement) {
  if (mysql_stmt_execute(statement) != 0)
    give_up(std::string("raw MySQL: ") + mysql_stmt_error(statement));
}

void RawMysql::handle(const Message& message) {
  prepare();
  execute(begin_);
  const CompactId id(message.id);
  unsigned long length = 0;
  std::array inserted{bind_bytes(id.bytes(), length)};
  mysql_stmt_bind_param(insert_, inserted.data());
  execute(insert_);
  if (mysql_stmt_affected_rows(insert_) == 1) {
    std::int64_t amount = 1;
    std::int64_t account = account_of(*message.key);
    std::array changed{bind_number(amount), bind_number(account)};
    mysql_stmt_bind_param(update_, changed.data());
    execute(update_);
  }
  execute(commit_);
}

void RawMysql::handle_all(std::span<const Message> messages, Dedup dedup) {
  dedup == Dedup::yes ? handle_new(messages) : pay_all(messages);
}

// Two packets: which ids are new, and what follows from them.
void RawMysql::handle_new(std::span<const Message> messages) {
  std::string insert = "BEGIN; INSERT IGNORE INTO processed VALUES ";
  for (const Message& message : messages) {
    if (&message != messages.data()) insert += ',';
    insert += '(';
    append_literal(insert, CompactId(message.id).bytes());
    insert += ')';
  }
  insert += " RETURNING id";
  if (mysql_real_query(connection_, insert.data(), insert.size()) != 0 ||
      mysql_next_result(connection_) != 0)
    give_up_on(connection_);
  MYSQL_RES* const result = mysql_store_result(connection_);
  if (result == nullptr) give_up_on(connection_);
  std::set<std::string> fresh;
  while (MYSQL_ROW row = mysql_fetch_row(result))
    fresh.emplace_hint(fresh.end(), row[0], mysql_fetch_lengths(result)[0]);
  mysql_free_result(result);
  run(update_of(amounts_of(messages, fresh)) + "; COMMIT");
}

void RawMysql::pay_all(std::span<const Message> messages) {
  Amounts amounts;
  for (const Message& message : messages) ++amounts[*message.key];
  run(update_of(amounts));
}

void RawMysql::fill_ledger(IdKind kind, std::uint64_t rows, std::int64_t scope,
                           const std::function<void(std::uint64_t)>& progress) {
  const std::string begin =
      "INSERT INTO once_ledger (scope, id, born_ms, recorded_ms, at_offset, source_partition, "
      "outcome, admitted_by, fingerprint) VALUES ";
  std::string insert = begin;
  std::uint64_t number = 0;
  run("SET unique_checks = 0; ALTER TABLE once_ledger DROP KEY once_ledger_born");
  for_each_id(kind, rows, [&](const std::string& id) {
    if (insert.size() > begin.size()) insert += ',';
    insert += fmt::format("({},", scope);
    append_literal(insert, CompactId(id).bytes());
    insert +=
        fmt::format(",{0},{0},{1},{2},0,0,'fffffffffffffffff')", born_ms(number), number, scope);
    ++number;
    if (number % fill_rows_per_statement != 0 && number != rows) return;
    run(insert);
    insert = begin;
    progress(number);
  });
  run("SET unique_checks = 1; ALTER TABLE once_ledger ADD KEY once_ledger_born (scope, born_ms)");
  run("ANALYZE TABLE once_ledger");
}

}  // namespace once::bench
