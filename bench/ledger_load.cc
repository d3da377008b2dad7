// SPDX-License-Identifier: Apache-2.0
#include "ledger_load.h"

#include <fmt/format.h>
#include <once/open.h>
#include <once/pipeline.h>
#include <sqlite3.h>

#include "harness.h"

namespace once::bench {
namespace {

constexpr std::string_view scope = "bench";

Handler pay() {
  return each(
      std::function([](const Delivery& delivery, SqlTransaction& transaction) -> Result<Outcome> {
        ONCE_TRY(transaction.execute(update_account, {1, account_of(delivery.key)}));
        return applied();
      }));
}

std::int64_t sum_of_balances(Store& store) {
  const auto transaction = must(store.begin(scope));
  const Rows rows = must(transaction->sql()->query("SELECT sum(balance) FROM account"));
  return std::get<std::int64_t>(rows.at(0).at(0));
}

// A connection without a store around it.
class Plain {
 public:
  explicit Plain(const std::string& path) { check(sqlite3_open(path.c_str(), &connection_)); }
  Plain(const Plain&) = delete;
  Plain& operator=(const Plain&) = delete;
  ~Plain() {
    sqlite3_finalize(statement_);
    sqlite3_close(connection_);
  }

  void run(const char* statements) {
    check(sqlite3_exec(connection_, statements, nullptr, nullptr, nullptr));
  }
  void prepare(const char* statement) {
    check(sqlite3_prepare_v2(connection_, statement, -1, &statement_, nullptr));
  }
  void insert(const std::string& id) {
    check(sqlite3_bind_text(statement_, 1, id.data(), static_cast<int>(id.size()), SQLITE_STATIC));
    if (sqlite3_step(statement_) != SQLITE_DONE) check(SQLITE_ERROR);
    check(sqlite3_reset(statement_));
  }

 private:
  void check(int answer) {
    if (answer != SQLITE_OK) give_up(std::string("filling: ") + sqlite3_errmsg(connection_));
  }

  sqlite3* connection_ = nullptr;
  sqlite3_stmt* statement_ = nullptr;
};

}  // namespace

Ledger::Ledger(const std::string& path) : path_(path) {
  {
    Plain plain(path);
    plain.run(create_accounts);
  }
  store_ = must(open_sqlite_store(path));
}

// A ledger that grew by random ids has pages that are partly full. Ids in order would leave them
// full, and every insert afterwards would split one; so three fifths of them come first and the
// others fall in between.
void Ledger::fill(IdKind kind, std::size_t rows) {
  seconds_for({make_message(kind, 0)}, 1);  // a real row, whose copies have its size
  store_.reset();
  {
    Plain plain(path_);
    plain.run(
        "PRAGMA journal_mode = DELETE; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
        "PRAGMA cache_size = -262144");
    plain.run("CREATE TEMP TABLE copied AS SELECT * FROM once_ledger; BEGIN");
    plain.prepare(
        "INSERT INTO once_ledger SELECT scope, CAST(? AS BLOB), fingerprint, born_ms, recorded_ms,"
        " outcome, partition, offset, result FROM copied");
    if (kind == IdKind::uuid7) {
      for (std::uint64_t i = 1; i < rows; ++i) plain.insert(make_id(kind, i));
    } else {
      for (std::uint64_t i = 0; i + 1 < rows; ++i)
        if (i % 5 < 3) plain.insert(make_id_at(i, rows));
      for (std::uint64_t i = 0; i + 1 < rows; ++i)
        if (i % 5 >= 3) plain.insert(make_id_at(i, rows));
    }
    plain.run("COMMIT; PRAGMA synchronous = FULL; PRAGMA journal_mode = WAL");
  }
  store_ = must(open_sqlite_store(path_));
}

double Ledger::seconds_for(const std::vector<Message>& messages, std::size_t rows) const {
  const std::int64_t before = sum_of_balances(*store_);
  LoadSource source(messages);
  PipelineOptions options;
  options.scope = scope;
  options.id = IdRule{};
  options.batch_count_max = rows;
  const auto pipeline = must(Pipeline::make(source, *store_, pay(), options));
  const Stopwatch watch;
  must(pipeline->run());
  const double seconds = watch.seconds();
  const std::int64_t paid = sum_of_balances(*store_) - before;
  if (paid != static_cast<std::int64_t>(messages.size()))
    give_up(fmt::format("{} messages had {} effects", messages.size(), paid));
  return seconds;
}

}  // namespace once::bench
