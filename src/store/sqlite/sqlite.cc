// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/sqlite.h"

#include <fmt/format.h>
#include <once/open.h>

#include <algorithm>
#include <array>

#include "model/handler_statement.h"
#include "model/ledger.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/session.h"
#include "store/sqlite/transaction.h"

namespace once {
namespace {

// The clock is that of the machine on which the file is. There is one writer: nothing to lock.
constexpr SqlWords sqlite_words{
    .dialect = SqlDialect::sqlite,
    .now_ms = "once_now_ms()",
    .insert = "INSERT INTO",
    .skip_present = "ON CONFLICT DO NOTHING",
    .lock = "",
    .share = "",
    .least = "min",
    .send_order = "target_sequence",
    .nulls_last = "NULLS LAST",
    .names_are_text = true,
};

constexpr std::string_view file_magic{"SQLite format 3\0", 16};

std::int64_t big_endian(std::string_view bytes) {
  std::int64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<std::uint8_t>(byte);
  return number;
}

}  // namespace

Result<std::int64_t> Names::number_of(Connection& writer, std::string_view name) {
  if (const auto found = known_.find(name); found != known_.end()) return found->second;
  if (const auto found = made_.find(name); found != made_.end()) return found->second;
  constexpr std::string_view select = "SELECT number FROM once_name WHERE name = ?";
  Rows rows = ONCE_TRY(writer.query(select, {name}));
  if (rows.empty()) {
    ONCE_TRY(writer.run("INSERT INTO once_name (name) VALUES (?)", {name}));
    rows = ONCE_TRY(writer.query(select, {name}));
  }
  const auto number = std::get<std::int64_t>(rows.at(0).at(0));
  made_.emplace(name, number);
  return number;
}

void Names::committed() {
  known_.merge(made_);
  made_.clear();
}

void Names::clear() {
  known_.clear();
  made_.clear();
}

SqliteStore::SqliteStore(const std::string& path, const SqliteOptions& options, Clock& clock)
    : SqlBooks("sqlite:" + path, sqlite_words, {}),
      path_(path),
      options_(options),
      clock_(clock),
      parts_(*this),
      gate_(system_files(), "sqlite:" + path, path + "-lock", options.busy_ms_max),
      next_checkpoint_pages_(options.checkpoint_pages_min) {}

SqliteStore::~SqliteStore() {
  if (writer_ == nullptr && reader_ == nullptr) return;  // never opened
  // The last connection moves the write-ahead log when it closes: that needs a turn. Without one
  // (another process is stuck) the log stays, which costs the next opener some time.
  const auto turn = gate_.enter();
  reader_.reset();
  writer_.reset();
}

Result<std::unique_ptr<SqliteStore>> SqliteStore::open(const std::string& path,
                                                       const SqliteOptions& options, Clock& clock) {
  if (path.empty() || path.starts_with(":memory:") || path.starts_with("file:"))
    return fail(
        Remedy::stop, "config",
        fmt::format("sqlite:{}: the path of a file is needed; memory: is a store in memory", path));
  std::unique_ptr<SqliteStore> store(new SqliteStore(path, options, clock));
  ONCE_TRY(store->check_file());
  if (!options.makes_tables) return store;
  {
    const auto turn = ONCE_TRY(store->gate_.enter());
    ONCE_TRY(store->open_connections());
    auto migrated = migrate(*store->writer_, clock.now_ms());
    if (!migrated) {
      Error error = std::move(migrated).error();
      if (!error.text.starts_with("sqlite:")) error.text = store->where() + ": " + error.text;
      return fail(std::move(error));
    }
    ONCE_TRY(store->read_identity());
  }
  ONCE_TRY(system_files().sync_directory(parent_directory(path)));
  return store;
}

// Tells foreign and truncated files before SQLite or we put anything beside them.
Status SqliteStore::check_file() const {
  auto file = system_files().open(path_, OpenMode::read);
  if (!file && file.error().tag == "missing") return {};
  if (!file) return fail(std::move(file).error());
  const std::int64_t bytes = ONCE_TRY((*file)->size());
  if (bytes == 0) return {};
  std::array<char, 100> buffer{};
  const std::size_t count = ONCE_TRY((*file)->read_at(0, buffer));
  const std::string_view header(buffer.data(), count);
  if (!header.starts_with(file_magic.substr(0, std::min(count, file_magic.size()))))
    return fail(
        Remedy::stop, "foreign",
        fmt::format("sqlite:{}: this file is not an SQLite database; choose another path", path_));
  const auto wal = system_files().open(path_ + "-wal", OpenMode::read);
  if (wal && ONCE_TRY((*wal)->size()) > 0) return {};  // the rest of the file may be in there
  const bool whole = count == buffer.size();
  const std::int64_t page_bytes = whole ? big_endian(header.substr(16, 2)) : 0;
  const std::int64_t pages = whole ? big_endian(header.substr(28, 4)) : 0;
  if (!whole || bytes < pages * (page_bytes == 1 ? 65'536 : page_bytes))
    return fail(Remedy::stop, "corrupt",
                fmt::format("sqlite:{}: the file was cut, it should have {} pages; restore it from "
                            "a backup, then replay the source",
                            path_, pages));
  return {};
}

Status SqliteStore::open_connections() {
  ConnectionOptions options;
  options.synchronous = options_.synchronous;
  options.cache_bytes_max = options_.cache_bytes_max;
  options.busy_ms_max = options_.busy_ms_max;
  writer_ = ONCE_TRY(Connection::open(path_, options));
  options.writes = false;
  options.cache_bytes_max = options_.cache_bytes_max / 8;
  reader_ = ONCE_TRY(Connection::open(path_, options));
  ONCE_TRY(writer_->add_clock(clock_));
  return reader_->add_clock(clock_);
}

Status SqliteStore::read_identity() {
  const Rows rows = ONCE_TRY(writer_->query("SELECT identity FROM once_identity"));
  if (rows.size() != 1)
    return fail(Remedy::stop, "corrupt",
                where() + ": the table once_identity must have exactly one row");
  identity_ = std::get<std::string>(rows[0].at(0));
  return {};
}

StoreTraits SqliteStore::traits() const {
  return {where(), StoreTraits::Durability::power, true, false, true, identity_};
}

Result<std::unique_ptr<Gate::Turn>> SqliteStore::begin_writing() {
  if (!makes_tables()) return fail(not_open());
  auto turn = ONCE_TRY(gate_.enter());
  if (in_doubt_) ONCE_TRY(revive());
  ONCE_TRY(writer_->begin());
  return turn;
}

Status SqliteStore::revive() {
  const std::lock_guard lock(reader_mutex_);
  reader_.reset();
  writer_.reset();
  names_.clear();
  ONCE_TRY(open_connections());
  // What recovery found may be in the page cache only: move it, with syncs of its own.
  ONCE_TRY(writer_->checkpoint(SQLITE_CHECKPOINT_TRUNCATE));
  in_doubt_ = false;
  return {};
}

Status SqliteStore::commit_writing() {
  auto committed = writer_->commit();
  if (!committed) {
    if (committed.error().remedy == Remedy::recheck) in_doubt_ = true;
    roll_back_writing();
    return committed;
  }
  names_.committed();
  checkpoint_if_long();
  return {};
}

void SqliteStore::roll_back_writing() {
  writer_->rollback();
  names_.rolled_back();
}

void SqliteStore::checkpoint_if_long() {
  if (writer_->wal_pages() < next_checkpoint_pages_) return;
  // The commit has happened whatever becomes of this; what cannot be moved now is moved later.
  const auto left = writer_->checkpoint(SQLITE_CHECKPOINT_PASSIVE);
  const bool done = left && *left == 0;
  next_checkpoint_pages_ = options_.checkpoint_pages_min + (done ? 0 : writer_->wal_pages());
}

Status SqliteStore::settle_doubt() {
  const auto turn = ONCE_TRY(gate_.enter());
  if (in_doubt_) ONCE_TRY(revive());
  return {};
}

// A file that is only looked at has no reader of ours, whose settings would change the file.
Result<StatementShape> SqliteStore::prepare(std::string_view statement) {
  ONCE_TRY(check_handler_statement(statement, SqlDialect::sqlite));
  const auto shape_in = [&](Connection& connection) -> Result<StatementShape> {
    const Statement prepared = ONCE_TRY(connection.prepare(statement, Connection::Side::handler));
    StatementShape shape;
    shape.parameters.resize(prepared.parameters());
    shape.columns.resize(prepared.columns());
    return shape;
  };
  if (makes_tables()) return on_reader(shape_in);
  const auto file = system_files().open(path_, OpenMode::read);
  if (!file && file.error().tag == "missing") {
    StatementShape shape;
    shape.unchecked = where() + " does not exist yet";
    return shape;
  }
  ConnectionOptions options;
  options.writes = false;
  options.looks_only = true;
  const auto connection = ONCE_TRY(Connection::open(path_, options));
  return shape_in(*connection);
}

Error SqliteStore::not_open() const {
  return {Remedy::stop, "io", where() + ": it could not be opened again; restart", std::nullopt};
}

Result<std::unique_ptr<Transaction>> SqliteStore::begin(std::string_view scope) {
  ONCE_TRY(check_scope(scope));
  auto turn = ONCE_TRY(begin_writing());
  return std::make_unique<SqliteTransaction>(*this, scope, std::move(turn));
}

Status SqliteStore::run_reading(const AnyWork& work) {
  return on_reader([&](Connection& reader) -> Status {
    SqliteSession session(reader);
    return work(session);
  });
}

Status SqliteStore::run_writing(const AnyWork& work) {
  return on_writer([&](Connection& writer) -> Status {
    SqliteSession session(writer);
    return work(session);
  });
}

Status SqliteStore::lock_horizon(SqlSession& session, std::int64_t scope) {
  return session.send(
      "INSERT INTO once_horizon (scope, horizon_ms) VALUES (?, 0) ON CONFLICT DO NOTHING", {scope});
}

Result<std::unique_ptr<Store>> open_sqlite_store(std::string_view path) {
  return ONCE_TRY(SqliteStore::open(std::string(path), {}, system_clock()));
}

}  // namespace once
