// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/sqlite.h"

#include <fmt/format.h>
#include <once/open.h>

#include <algorithm>
#include <array>

#include "model/handler_statement.h"
#include "model/ledger.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/transaction.h"

namespace once {
namespace {

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
    : path_(path),
      options_(options),
      clock_(clock),
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
      if (!error.text.starts_with("sqlite:")) error.text = store->traits().name + ": " + error.text;
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
  return {};
}

Status SqliteStore::read_identity() {
  const Rows rows = ONCE_TRY(writer_->query("SELECT identity FROM once_identity"));
  if (rows.size() != 1)
    return fail(Remedy::stop, "corrupt",
                traits().name + ": the table once_identity must have exactly one row");
  identity_ = std::get<std::string>(rows[0].at(0));
  return {};
}

StoreTraits SqliteStore::traits() const {
  return {"sqlite:" + path_, StoreTraits::Durability::power, true, false, true, identity_};
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
  if (makes_tables()) return read(shape_in);
  const auto file = system_files().open(path_, OpenMode::read);
  if (!file && file.error().tag == "missing") {
    StatementShape shape;
    shape.unchecked = traits().name + " does not exist yet";
    return shape;
  }
  ConnectionOptions options;
  options.writes = false;
  options.looks_only = true;
  const auto connection = ONCE_TRY(Connection::open(path_, options));
  return shape_in(*connection);
}

Error SqliteStore::not_open() const {
  return {Remedy::stop, "io", traits().name + ": it could not be opened again; restart",
          std::nullopt};
}

Result<std::unique_ptr<Transaction>> SqliteStore::begin(std::string_view scope) {
  ONCE_TRY(check_scope(scope));
  auto turn = ONCE_TRY(begin_writing());
  return std::make_unique<SqliteTransaction>(*this, scope, std::move(turn));
}

std::uint64_t SqliteStore::first_fence() const { return next_fence(0, clock_.now_ms()); }

Result<Position> SqliteStore::take(std::string_view scope, std::string_view partition,
                                   std::string_view source_identity) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_partition(partition));
  ONCE_TRY(check_source_identity(source_identity));
  return write([&](Connection& writer) -> Result<Position> {
    const std::int64_t scope_number = ONCE_TRY(names_.number_of(writer, scope));
    const std::int64_t partition_number = ONCE_TRY(names_.number_of(writer, partition));
    const Rows known =
        ONCE_TRY(writer.query("SELECT source_identity, offset FROM once_position "
                              "WHERE scope = ? AND partition = ?",
                              {scope_number, partition_number}));
    const std::string stored = known.empty() ? "" : std::get<std::string>(known[0].at(0));
    if (is_other_source(stored, source_identity))
      return fail(other_source_error(scope, partition, std::get<std::int64_t>(known[0].at(1)),
                                     stored, source_identity));
    static const std::string take = fmt::format(
        "INSERT INTO once_position (scope, partition, offset, fence, source_identity) "
        "VALUES (?, ?, -1, ?, ?) ON CONFLICT (scope, partition) DO UPDATE SET "
        "fence = {}, source_identity = excluded.source_identity RETURNING {}",
        grown_fence, position_columns);
    const Position position = position_in(
        ONCE_TRY(writer.query(take, {scope_number, partition_number, first_fence(),
                                     Blob{source_identity.empty() ? stored : source_identity}})));
    ONCE_TRY(
        log_operation(scope_number, "take", partition, fmt::format("fence {}", position.fence)));
    ONCE_TRY(trim_operations(scope_number));
    return position;
  });
}

Position position_in(const Rows& rows) {
  if (rows.empty()) return {};
  const auto number = [&](std::size_t column) {
    return std::get<std::int64_t>(rows[0].at(column));
  };
  return {number(0),
          static_cast<std::uint64_t>(number(1)),
          {number(2), static_cast<std::uint64_t>(number(3))}};
}

Result<Position> SqliteStore::position_of(Connection& connection, std::string_view scope,
                                          std::string_view partition) {
  static const std::string select = fmt::format(
      "SELECT {} FROM once_position "
      "WHERE scope = (SELECT number FROM once_name WHERE name = ?) "
      "AND partition = (SELECT number FROM once_name WHERE name = ?)",
      position_columns);
  return position_in(ONCE_TRY(connection.query(select, {scope, partition})));
}

Result<Position> SqliteStore::position(std::string_view scope, std::string_view partition) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_partition(partition));
  return read([&](Connection& reader) { return position_of(reader, scope, partition); });
}

Status SqliteStore::log_operation(std::int64_t scope, std::string_view action,
                                  std::string_view subject, std::string_view reason) {
  return writer_->run(
      "INSERT INTO once_operation (scope, at_ms, action, subject, reason) VALUES (?, ?, ?, ?, ?)",
      {scope, clock_.now_ms(), action, Blob{subject}, reason});
}

Status SqliteStore::trim_operations(std::int64_t scope) {
  return writer_->run(
      "DELETE FROM once_operation WHERE scope = ?1 AND number <= (SELECT number FROM "
      "once_operation WHERE scope = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)",
      {scope, operations_max});
}

Result<std::unique_ptr<Store>> open_sqlite_store(std::string_view path) {
  return ONCE_TRY(SqliteStore::open(std::string(path), {}, system_clock()));
}

}  // namespace once
