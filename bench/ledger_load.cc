// SPDX-License-Identifier: Apache-2.0
#include "ledger_load.h"

#include <fmt/format.h>
#include <once/open.h>
#include <once/pipeline.h>
#include <sqlite3.h>

#include "harness.h"
#include "model/compact_id.h"

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

// All messages through a pipeline; then the books are checked. Answers how long the pipeline took.
double pay_all(Store& store, const std::vector<Message>& messages, std::size_t rows) {
  const std::int64_t before = sum_of_balances(store);
  LoadSource source(messages);
  PipelineOptions options;
  options.scope = scope;
  options.id = IdRule{};
  options.batch_count_max = rows;
  const auto pipeline = must(Pipeline::make(source, store, pay(), options));
  const Stopwatch watch;
  must(pipeline->run());
  const double seconds = watch.seconds();
  const std::int64_t paid = sum_of_balances(store) - before;
  if (paid != static_cast<std::int64_t>(messages.size()))
    give_up(fmt::format("{} messages had {} effects", messages.size(), paid));
  return seconds;
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
    const CompactId compact(id);
    const std::string_view bytes = compact.bytes();
    check(sqlite3_bind_blob64(statement_, 1, bytes.data(), bytes.size(), SQLITE_TRANSIENT));
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

void Ledger::fill(IdKind kind, std::size_t rows) {
  Message first = make_message(kind, 0);  // its row is copied
  first.id = "00000000-0000-0000-0000-000000000000";
  pay_all(*store_, {first}, 1);
  store_.reset();
  {
    Plain plain(path_);
    plain.run(fast_settings);
    plain.run("CREATE TEMP TABLE copied AS SELECT * FROM once_ledger; BEGIN");
    plain.prepare(
        "INSERT INTO once_ledger SELECT scope, ?, fingerprint, born_ms, recorded_ms,"
        " outcome, source_partition, at_offset, result FROM copied");
    for_each_id(kind, rows, [&](const std::string& id) { plain.insert(id); });
    plain.run("COMMIT");
    plain.run(safe_settings);
  }
  store_ = must(open_sqlite_store(path_));
  next_ = rows;
}

double Ledger::messages_per_s(IdKind kind, std::size_t count, std::size_t rows) {
  const std::vector<Message> messages = make_messages(kind, next_, count);
  next_ += count;
  return static_cast<double>(count) / pay_all(*store_, messages, rows);
}

}  // namespace once::bench
