// SPDX-License-Identifier: Apache-2.0
#include "raw_postgres.h"

#include <fmt/format.h>
#include <libpq-fe.h>

#include <array>
#include <cstdlib>
#include <string_view>

#include "harness.h"
#include "model/compact_id.h"

namespace once::bench {
namespace {

constexpr std::size_t copy_bytes_goal = 1 << 16;

template <class T>
void append_number(std::string& row, T number) {
  for (int shift = 8 * (static_cast<int>(sizeof(T)) - 1); shift >= 0; shift -= 8)
    row += static_cast<char>(static_cast<std::make_unsigned_t<T>>(number) >> shift & 0xff);
}

// A field of the binary format of COPY.
template <class T>
void append_field(std::string& row, T number) {
  append_number(row, static_cast<std::int32_t>(sizeof number));
  append_number(row, number);
}

void append_field(std::string& row, std::string_view bytes) {
  append_number(row, static_cast<std::int32_t>(bytes.size()));
  row += bytes;
}

// Ids and accounts as the server reads arrays: {a,b,c}
template <class Get>
std::string array_of(std::span<const Message> messages, const Get& get) {
  std::string array = "{";
  for (const Message& message : messages) {
    if (array.size() > 1) array += ',';
    array += get(message);
  }
  return array + "}";
}

}  // namespace

RawPostgres::RawPostgres(const std::string& url) : connection_(PQconnectdb(url.c_str())) {
  if (PQstatus(connection_) != CONNECTION_OK)
    give_up(std::string("raw PostgreSQL: ") + PQerrorMessage(connection_));
}

RawPostgres::~RawPostgres() { PQfinish(connection_); }

void RawPostgres::run(const std::string& statement) {
  done(PQexec(connection_, statement.c_str()));
}

std::int64_t RawPostgres::number(const std::string& statement) {
  PGresult* const result = PQexec(connection_, statement.c_str());
  if (PQntuples(result) != 1) give_up("raw PostgreSQL: " + statement + " has no single answer");
  const std::int64_t answer = std::strtoll(PQgetvalue(result, 0, 0), nullptr, 10);
  done(result);
  return answer;
}

void RawPostgres::prepare() {
  if (prepared_) return;
  prepared_ = true;
  constexpr std::array<std::array<const char*, 2>, 6> statements{{
      {"start", "BEGIN"},
      {"mark", "INSERT INTO processed VALUES ($1) ON CONFLICT DO NOTHING"},
      {"pay", "UPDATE account SET balance = balance + $1 WHERE number = $2"},
      {"finish", "COMMIT"},
      // All of it in one statement, which is a transaction.
      {"set_based",
       "WITH offered AS (SELECT * FROM unnest($1::uuid[], $2::integer[]) AS o (id, account)), "
       "fresh AS (INSERT INTO processed SELECT id FROM offered ON CONFLICT DO NOTHING "
       "RETURNING id) "
       "UPDATE account SET balance = balance + due.amount FROM (SELECT account, count(*) AS amount "
       "FROM offered JOIN fresh USING (id) GROUP BY account) AS due WHERE number = due.account"},
      {"pay_all",
       "UPDATE account SET balance = balance + due.amount FROM (SELECT account, count(*) AS amount "
       "FROM unnest($1::integer[]) AS o (account) GROUP BY account) AS due "
       "WHERE number = due.account"},
  }};
  for (const auto& [name, statement] : statements)
    done(PQprepare(connection_, name, statement, 0, nullptr));
}

std::int64_t RawPostgres::execute(const char* name, std::span<const char* const> values) {
  return done(PQexecPrepared(connection_, name, static_cast<int>(values.size()), values.data(),
                             nullptr, nullptr, 0));
}

void RawPostgres::handle(const Message& message) {
  prepare();
  execute("start", {});
  const std::array id{message.id.c_str()};
  if (execute("mark", id) == 1) {
    const std::array change{"1", message.key->c_str()};
    execute("pay", change);
  }
  execute("finish", {});
}

void RawPostgres::handle_all(std::span<const Message> messages, Dedup dedup) {
  prepare();
  dedup == Dedup::yes ? handle_new(messages) : pay_all(messages);
}

void RawPostgres::handle_new(std::span<const Message> messages) {
  const std::string ids = array_of(messages, [](const Message& m) { return m.id; });
  const std::string accounts = array_of(messages, [](const Message& m) { return *m.key; });
  const std::array values{ids.c_str(), accounts.c_str()};
  execute("set_based", values);
}

void RawPostgres::pay_all(std::span<const Message> messages) {
  const std::string accounts = array_of(messages, [](const Message& m) { return *m.key; });
  const std::array values{accounts.c_str()};
  execute("pay_all", values);
}

void RawPostgres::fill_ledger(IdKind kind, std::uint64_t rows, std::int64_t scope,
                              const std::function<void(std::uint64_t)>& progress) {
  // The indexes are made afterwards: that is quicker. Their pages are as full as if the ids had
  // come one by one.
  run("DROP INDEX once_ledger_born; ALTER TABLE once_ledger DROP CONSTRAINT once_ledger_pkey");
  PGresult* const begun =
      PQexec(connection_,
             "COPY once_ledger (scope, id, born_ms, recorded_ms, at_offset, source_partition, "
             "outcome, fingerprint, result) FROM STDIN (FORMAT binary)");
  if (PQresultStatus(begun) != PGRES_COPY_IN) give_up(PQerrorMessage(connection_));
  PQclear(begun);
  std::string buffer("PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0", 19);
  const auto flush = [&] {
    if (PQputCopyData(connection_, buffer.data(), static_cast<int>(buffer.size())) != 1)
      give_up(PQerrorMessage(connection_));
    buffer.clear();
  };
  const std::string fingerprint(17, 'f');
  std::uint64_t number = 0;
  for_each_id(kind, rows, [&](const std::string& id) {
    append_number(buffer, std::int16_t{9});
    append_field(buffer, static_cast<std::int32_t>(scope));
    append_field(buffer, CompactId(id).bytes());
    append_field(buffer, born_ms(number));
    append_field(buffer, born_ms(number));
    append_field(buffer, static_cast<std::int64_t>(number));
    append_field(buffer, static_cast<std::int32_t>(scope));
    append_field(buffer, std::int16_t{0});
    append_field(buffer, std::string_view(fingerprint));
    append_number(buffer, std::int32_t{-1});
    ++number;
    if (buffer.size() < copy_bytes_goal) return;
    flush();
    progress(number);
  });
  append_number(buffer, std::int16_t{-1});
  flush();
  if (PQputCopyEnd(connection_, nullptr) != 1) give_up(PQerrorMessage(connection_));
  while (PGresult* const result = PQgetResult(connection_)) done(result);
  run(fmt::format("ALTER TABLE once_ledger ADD PRIMARY KEY (scope, id) WITH (fillfactor = {})",
                  kind == IdKind::random ? 70 : 90));
  run("CREATE INDEX once_ledger_born ON once_ledger (scope, born_ms)");
  run("VACUUM ANALYZE once_ledger");
  run("CHECKPOINT");
}

// How many rows it touched.
std::int64_t RawPostgres::done(PGresult* result) {
  const ExecStatusType status = PQresultStatus(result);
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
    give_up(std::string("raw PostgreSQL: ") + PQerrorMessage(connection_));
  const std::int64_t rows = std::strtoll(PQcmdTuples(result), nullptr, 10);
  PQclear(result);
  return rows;
}

}  // namespace once::bench
